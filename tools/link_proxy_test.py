#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of link_proxy.py against an echo server: what passes, and what each fault does to it."""
import socket
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

from link_proxy import LinkProxy, obey

PATIENCE = 20


class Echo:
    """Sends back whatever arrives, until the end of the stream."""

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.echo, args=(connection,), daemon=True).start()

    def echo(self, connection):
        with connection:
            try:
                while piece := connection.recv(65536):
                    connection.sendall(piece)
            except OSError:
                pass


def read_exactly(connection, count):
    got = b""
    while len(got) < count:
        piece = connection.recv(count - len(got))
        if not piece:
            break
        got += piece
    return got


class LinkProxyTest(unittest.TestCase):
    def setUp(self):
        self.echo = self.enterContext(Echo())
        self.proxy = self.enterContext(LinkProxy(self.echo.address))

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.proxy.port), PATIENCE)
        self.addCleanup(connection.close)
        return connection

    def assert_echoes(self, connection, message=b"hello"):
        connection.sendall(message)
        self.assertEqual(read_exactly(connection, len(message)), message)

    def test_passes_bytes_both_ways_and_the_end_of_the_stream(self):
        connection = self.connect()
        self.assert_echoes(connection, bytes(range(256)) * 2000)
        connection.shutdown(socket.SHUT_WR)
        self.assertEqual(connection.recv(1), b"")
        self.assertEqual(self.proxy.bytes_forwarded, 2 * 512000)

    def test_a_cut_resets_the_connections_and_refuses_new_ones_until_restored(self):
        connection = self.connect()
        self.assert_echoes(connection)
        self.proxy.cut()
        with self.assertRaises(ConnectionResetError):
            connection.recv(1)
        with self.assertRaises(ConnectionError):
            late = self.connect()
            late.sendall(b"x")
            if not late.recv(1):
                raise ConnectionResetError("closed")
        self.proxy.restore()
        self.assert_echoes(self.connect())

    def test_a_stall_takes_bytes_and_delivers_them_when_restored(self):
        connection = self.connect()
        self.assert_echoes(connection)
        self.proxy.stall()
        connection.sendall(b"later")
        late = self.connect()
        late.sendall(b"new")
        connection.settimeout(0.3)
        with self.assertRaises(TimeoutError):
            connection.recv(1)
        self.proxy.restore()
        connection.settimeout(PATIENCE)
        self.assertEqual(read_exactly(connection, 5), b"later")
        self.assertEqual(read_exactly(late, 3), b"new")

    def test_latency_holds_each_piece_back(self):
        connection = self.connect()
        self.proxy.set_latency(0.2)
        begin = time.monotonic()
        self.assert_echoes(connection)
        self.assertGreaterEqual(time.monotonic() - begin, 0.4)  # there and back

    def test_bandwidth_limits_the_rate(self):
        connection = self.connect()
        self.proxy.set_bandwidth(400_000)
        begin = time.monotonic()
        self.assert_echoes(connection, b"x" * 200_000)
        self.assertGreaterEqual(time.monotonic() - begin, 0.3)  # the last piece does not wait

    def test_a_dead_far_end_is_a_reset(self):
        free = socket.create_server(("127.0.0.1", 0))
        nowhere = free.getsockname()
        free.close()
        with LinkProxy(nowhere) as proxy:
            with self.assertRaises(ConnectionError):
                with socket.create_connection(("127.0.0.1", proxy.port), PATIENCE) as connection:
                    connection.sendall(b"x")
                    if not connection.recv(1):
                        raise ConnectionResetError("closed")

    def test_bad_commands_are_refused_by_name(self):
        for line in ("explode", "latency", "latency -1", "latency nan", "bandwidth x", "cut now"):
            with self.subTest(line), self.assertRaises(ValueError):
                obey(self.proxy, line)

    def test_the_command_line_obeys_its_stdin(self):
        host, port = self.echo.address
        done = subprocess.run(
            [sys.executable, str(Path(__file__).with_name("link_proxy.py")), "--listen",
             "127.0.0.1:0", "--to", f"{host}:{port}"], input="cut\nexplode\nrestore\n",
            capture_output=True, text=True, timeout=PATIENCE)
        answers = [line.split()[0] for line in done.stdout.splitlines()]
        self.assertEqual(answers, ["listening", "ok", "error:", "ok"], done.stderr)


if __name__ == "__main__":
    unittest.main()
