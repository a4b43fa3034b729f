# SPDX-License-Identifier: Apache-2.0
"""Garbage, silent and half-open connections to both ports leave them serving."""
import os
import re
import socket

import pytest
from serving import FRANCE, Server

SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"
COUNT = int(os.environ.get("ARTEL_GARBAGE_COUNT", "1500"))
PIECES = [b"", b"\x00", b"GET / HTTP/1.1\r\n\r\n",
          b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 99",
          b"\x16\x03\x01\x02\x00\x01\x00", os.urandom(300), b"ARTELNET" + bytes(24), b"\r\n" * 50]


def storm(port, count):
    """Returns how many connections were taken, and those left open."""
    open_sockets = []
    taken = 0
    for i in range(count):
        try:
            connection = socket.create_connection(("127.0.0.1", port), timeout=5)
            taken += 1
            connection.sendall(PIECES[i % len(PIECES)])
        except OSError:
            continue
        if i % 3 == 0:
            open_sockets.append(connection)  # left silent
        else:
            connection.close()
        if len(open_sockets) > 400:
            for left in open_sockets[:200]:
                left.close()
            del open_sockets[:200]
    return taken, open_sockets


@pytest.mark.parametrize("target", ["api", "worker"])
def test_a_storm_of_bad_connections_changes_nothing(artel, models, target):
    with Server(artel, models / SMOLLM2, "--local-workers", 2, "--context", 512) as server:
        server.wait_until_serving()
        ports = {"api": server.port, "worker": worker_port(server)}
        taken, left = storm(ports[target], COUNT)
        assert taken == COUNT
        status, _, answer = server.post({"model": "test", "temperature": 0, "max_tokens": 16,
                                         "messages": FRANCE}, timeout=60)
        assert status == 200 and "Paris" in answer["choices"][0]["message"]["content"]
        assert server.process.poll() is None
        for connection in left:
            connection.close()


def worker_port(server):
    """The port that the workers are connected to, from the server's own listening sockets."""
    listening = set()
    inodes = {os.readlink(f"/proc/{server.process.pid}/fd/{fd}")
              for fd in os.listdir(f"/proc/{server.process.pid}/fd")
              if os.path.exists(f"/proc/{server.process.pid}/fd/{fd}")}
    with open("/proc/net/tcp") as table:
        for line in table:
            fields = line.split()
            if len(fields) > 9 and fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                listening.add(int(re.split(":", fields[1])[1], 16))
    listening.discard(server.port)
    assert len(listening) == 1, listening
    return listening.pop()
