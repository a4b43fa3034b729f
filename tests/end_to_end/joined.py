# SPDX-License-Identifier: Apache-2.0
"""`artel serve` with workers that join from elsewhere, each behind proxies that can cut its links.

A worker's links are two kinds: to the coordinator, which it dials at the address in its join key,
and from its neighbours, which dial what it advertises. Both addresses are here those of proxies.
"""
import base64
import hashlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from serving import Server

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from link_proxy import LinkProxy  # noqa: E402

KEY_FIXED_BYTES = 1 + 32 + 8 + 16  # version, authority, secret's id, secret; then the address
KEY_CHECKSUM_BYTES = 4


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def readdressed(key, address):
    """The join key with another address in it (src/net/join_key.hpp has its form)."""
    prefix, _, text = key.strip().partition(".")
    body = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))[:-KEY_CHECKSUM_BYTES]
    body = body[:KEY_FIXED_BYTES] + address.encode()
    body += hashlib.sha256(body).digest()[:KEY_CHECKSUM_BYTES]
    return prefix + "." + base64.urlsafe_b64encode(body).decode().rstrip("=")


class JoinedWorker:
    """`bandwidth`: bytes a second of each connection to the coordinator; 0: no limit."""

    def __init__(self, artel, server, name, coordinator, options=(), environment=None,
                 bandwidth=0):
        self.name = name
        self.log = Path(server.directory.name, f"{name}.log")
        listen = free_port()
        self.proxies = [LinkProxy(("127.0.0.1", coordinator)).__enter__(),
                        LinkProxy(("127.0.0.1", listen)).__enter__()]
        self.set_bandwidth(bandwidth)
        address = f"127.0.0.1:{self.proxies[0].port}"
        key = readdressed(Path(server.directory.name, "key").read_text(), address)
        self.command = [str(artel), "worker", "--name", name, "--listen", f"127.0.0.1:{listen}",
                        "--advertise", f"127.0.0.1:{self.proxies[1].port}",
                        "--state-dir", str(Path(server.directory.name, name)),
                        *map(str, options)]
        self.environment = {**os.environ, "ARTEL_JOIN_KEY": key, **(environment or {})}
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=self.environment)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def wake(self):
        self.process.send_signal(signal.SIGCONT)

    def set_bandwidth(self, bytes_per_second):
        self.proxies[0].set_bandwidth(bytes_per_second)

    def cut(self):
        for proxy in self.proxies:
            proxy.cut()

    def restore(self):
        for proxy in self.proxies:
            proxy.restore()

    def stop(self):
        self.kill()
        for proxy in self.proxies:
            proxy.close()


class JoinedServer(Server):
    """`workers` is a list of (options, environment), one for each worker, in the plan's order. They
    read their weights from the model file, or with `streams_weights` get them from the coordinator.
    """

    def __init__(self, artel, model, *options, workers, streams_weights=False, bandwidth=0):
        port = free_port()
        self.workers = []
        super().__init__(artel, model, "--worker-listen", f"127.0.0.1:{port}",
                         "--expect-workers", len(workers), *options)
        try:
            key = Path(self.directory.name, "key")
            key.write_text(self.printed_key())
            for i, (worker_options, environment) in enumerate(workers):
                if not streams_weights:
                    worker_options = ["--model-dir", Path(model).parent, *worker_options]
                self.workers.append(JoinedWorker(artel, self, f"joined-{i + 1}", port,
                                                 worker_options, environment, bandwidth))
        except BaseException:
            self.stop()
            raise

    def printed_key(self, patience=20):
        end = time.time() + patience
        while time.time() < end:
            for line in self.output.read_text().splitlines():
                if line.startswith("join key"):
                    return line.rsplit(" ", 1)[1]
            time.sleep(0.02)
        raise AssertionError("the server printed no join key")

    def stop(self, patience=40):
        for worker in self.workers:
            worker.stop()
        super().stop(patience)
