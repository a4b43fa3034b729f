#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy that stands between two artel processes and breaks their link when told to.

usage: link_proxy.py --listen HOST:PORT --to HOST:PORT

Commands come one a line on stdin, each answered with "ok" or "error: ..." on stdout:

  pass            forwards everything, at once (how it starts); also undoes cut, stall and the rest
  restore         the same
  latency S       holds each piece back for S seconds
  bandwidth B     at most B bytes a second in each direction of each connection (0: no limit)
  stall           half-open: accepts connections and bytes, forwards none
  cut             resets all connections and answers each new one with a reset

In a test: `with LinkProxy(to=(host, port)) as proxy: proxy.cut()`; `proxy.port` is where it
listens. It runs in a thread of its own; its methods may be called from any other and return when
the command holds. A stalled direction keeps at most 4 MiB; then its sender has to wait, as on a
line that lost its far end. Connections at most: 1024; more are reset.
"""
import argparse
import asyncio
import socket
import struct
import sys
import threading
import time

PIECE_BYTES = 64 << 10
HELD_BYTES_MAX = 4 << 20
CONNECTIONS_MAX = 1024
CONNECT_SECONDS = 5
COMMAND_SECONDS = 10
RESET = struct.pack("ii", 1, 0)  # SO_LINGER for no seconds: close() sends a reset


def reset(writer):
    """Closes with a reset, so that the peer notices at once."""
    sock = writer.get_extra_info("socket")
    if sock is not None and sock.fileno() >= 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()


class LinkProxy:
    def __init__(self, to, listen=("127.0.0.1", 0)):
        self.to = to
        self.listen = listen
        self.port = None
        self.bytes_forwarded = 0
        self._writers = set()
        self._latency = 0.0
        self._bandwidth = 0
        self._is_cut = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        try:
            self._call(self._open())
        except BaseException:
            self._end_thread()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self._thread.is_alive():
            self._call(self._shut())
            self._end_thread()

    def restore(self):
        self._call(self._set(is_cut=False, flows=True, latency=0.0, bandwidth=0))

    def set_latency(self, seconds):
        self._call(self._set(latency=seconds))

    def set_bandwidth(self, bytes_per_second):
        self._call(self._set(bandwidth=bytes_per_second))

    def stall(self):
        self._call(self._set(flows=False))

    def cut(self):
        self._call(self._set(is_cut=True))

    def connections(self):
        return len(self._writers) // 2

    def _call(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(COMMAND_SECONDS)

    def _end_thread(self):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(COMMAND_SECONDS)
        self._loop.close()

    async def _open(self):
        self._flows = asyncio.Event()
        self._flows.set()
        self._server = await asyncio.start_server(self._serve, *self.listen, limit=PIECE_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _shut(self):
        self._server.close()
        await self._set(is_cut=True)
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _set(self, is_cut=None, flows=None, latency=None, bandwidth=None):
        if latency is not None:
            self._latency = latency
        if bandwidth is not None:
            self._bandwidth = bandwidth
        if flows is not None:
            (self._flows.set if flows else self._flows.clear)()
        if is_cut is not None:
            self._is_cut = is_cut
        if self._is_cut:
            for writer in list(self._writers):
                reset(writer)

    async def _serve(self, reader, writer):
        if self._is_cut or self.connections() >= CONNECTIONS_MAX:
            reset(writer)
            return
        try:
            far_reader, far_writer = await asyncio.wait_for(
                asyncio.open_connection(*self.to, limit=PIECE_BYTES), CONNECT_SECONDS)
        except (OSError, asyncio.TimeoutError):
            reset(writer)
            return
        pair = {writer, far_writer}
        self._writers |= pair
        if self._is_cut:  # since the connecting began
            for one in pair:
                reset(one)
        try:
            await asyncio.gather(self._direction(reader, far_writer),
                                 self._direction(far_reader, writer))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            for one in pair:
                reset(one)
            self._writers -= pair

    async def _direction(self, reader, writer):
        """Reads ahead of what it forwards, so that latency delays each piece and not their rate."""
        held = asyncio.Queue(HELD_BYTES_MAX // PIECE_BYTES)
        sender = asyncio.create_task(self._forward(held, writer))
        try:
            while True:
                piece = await reader.read(PIECE_BYTES)
                await held.put((time.monotonic(), piece))
                if not piece:
                    break
            await sender
        finally:
            sender.cancel()

    async def _forward(self, held, writer):
        while True:
            arrived, piece = await held.get()
            wait = arrived + self._latency - time.monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
            await self._flows.wait()
            if not piece:
                if writer.can_write_eof():
                    writer.write_eof()
                return
            writer.write(piece)
            await writer.drain()
            self.bytes_forwarded += len(piece)
            if self._bandwidth:
                await asyncio.sleep(len(piece) / self._bandwidth)


def obey(proxy, line):
    """Carries out one command line. Raises ValueError saying what is wrong with it."""
    name, *values = line.split()
    plain = {"pass": proxy.restore, "restore": proxy.restore, "stall": proxy.stall,
             "cut": proxy.cut}
    with_value = {"latency": (proxy.set_latency, float), "bandwidth": (proxy.set_bandwidth, int)}
    if name in plain and not values:
        plain[name]()
    elif name in with_value and len(values) == 1:
        call, kind = with_value[name]
        value = kind(values[0])
        if not 0 <= value < float("inf"):
            raise ValueError(f"{name} is {values[0]}, and must be 0 or more")
        call(value)
    else:
        raise ValueError(f"'{line.strip()}' is no command; see link_proxy.py --help")


def address(text):
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is not HOST:PORT")
    return host, int(port)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--listen", type=address, required=True)
    parser.add_argument("--to", type=address, required=True)
    options = parser.parse_args()
    with LinkProxy(options.to, options.listen) as proxy:
        print(f"listening on port {proxy.port}", flush=True)
        for line in sys.stdin:
            if not line.strip():
                continue
            try:
                obey(proxy, line)
                print("ok", flush=True)
            except ValueError as error:
                print(f"error: {error}", flush=True)


if __name__ == "__main__":
    main()
