"""A TCP proxy on loopback that can cut, slow down and refuse connections."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from threading import Event, Thread

HOST = "127.0.0.1"
_AT_ONCE = 65_536
_LOOK_SECONDS = 0.01
_FRAME = struct.Struct(">ih")
"""How a request to Kafka begins: bytes that follow the length, and the number of its kind."""
_PRODUCE = 0


class _Requests:
    """What is known of the requests of a connection. bring_records: whether one of them did."""

    def __init__(self) -> None:
        self.bring_records = False
        self._bytes = bytearray()

    async def note(self, piece: bytes) -> None:
        """Bytes that the client has sent, in the order in which it sent them."""
        self._bytes += piece
        while len(self._bytes) >= _FRAME.size:
            length, kind = _FRAME.unpack_from(self._bytes)
            if len(self._bytes) < 4 + length:
                return
            del self._bytes[: 4 + length]
            self.bring_records |= kind == _PRODUCE


class Proxy:
    """Passes bytes between clients and a port of this machine. `port` is known once the block is entered.

    target: the port behind it, which may change. delay: seconds that every piece waits. refusing: whether a
    new connection is closed at once. silent: whether connections that bring records get no answers.
    taken: how many connections were.
    """

    def __init__(self) -> None:
        self.port = 0
        self.target = 0
        self.delay = 0.0
        self.refusing = False
        self.taken = 0
        self.silent = False
        self._loop = asyncio.new_event_loop()
        self._writers: dict[asyncio.StreamWriter, _Requests] = {}
        self._listening = Event()
        self._thread = Thread(target=self._run, name="chaos-proxy", daemon=True)

    def __enter__(self) -> Proxy:
        self._thread.start()
        self._listening.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def cut(self, *, with_records: bool = False) -> None:
        """Reset every connection, or only those that bring records. New ones are taken."""
        self._loop.call_soon_threadsafe(self._abort, with_records)

    def _abort(self, with_records: bool) -> None:
        for writer, requests in self._writers.items():
            if requests.bring_records or not with_records:
                writer.transport.abort()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._connected, HOST, 0))
        self.port = server.sockets[0].getsockname()[1]
        self._listening.set()
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refusing:
            writer.transport.abort()
            return
        self.taken += 1
        try:
            behind = await asyncio.open_connection(HOST, self.target)
        except OSError:
            writer.transport.abort()
            return
        requests = _Requests()
        ends = (writer, behind[1])
        self._writers |= dict.fromkeys(ends, requests)
        try:
            await asyncio.gather(
                self._pass(reader, behind[1], requests.note),
                self._pass(behind[0], writer, lambda _: self._answered(requests)),
            )
        finally:
            for end in ends:
                del self._writers[end]
                end.transport.abort()

    async def _answered(self, requests: _Requests) -> None:
        while self.silent and requests.bring_records:
            await asyncio.sleep(_LOOK_SECONDS)

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        before: Callable[[bytes], Awaitable[None]],
    ) -> None:
        with suppress(OSError):
            while piece := await reader.read(_AT_ONCE):
                if self.delay:
                    await asyncio.sleep(self.delay)
                await before(piece)
                writer.write(piece)
                await writer.drain()
        # One side has ended, so the other has nobody to talk to.
        writer.transport.abort()
