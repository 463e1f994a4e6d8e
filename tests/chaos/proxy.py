"""A TCP proxy on loopback that can cut, slow down and refuse connections."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from threading import Event, Thread

HOST = "127.0.0.1"
_AT_ONCE = 65_536


class Proxy:
    """Passes bytes between clients and a port of this machine. `port` is known once the block is entered.

    target: the port behind it, which may change. delay: seconds that every piece waits. refusing: whether a
    new connection is closed at once.
    """

    def __init__(self) -> None:
        self.port = 0
        self.target = 0
        self.delay = 0.0
        self.refusing = False
        self._loop = asyncio.new_event_loop()
        self._writers: set[asyncio.StreamWriter] = set()
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

    def cut(self) -> None:
        """Reset every connection. New ones are taken."""
        self._loop.call_soon_threadsafe(self._abort)

    def _abort(self) -> None:
        for writer in self._writers:
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
        try:
            behind = await asyncio.open_connection(HOST, self.target)
        except OSError:
            writer.transport.abort()
            return
        ends = {writer, behind[1]}
        self._writers |= ends
        try:
            await asyncio.gather(self._pass(reader, behind[1]), self._pass(behind[0], writer))
        finally:
            self._writers -= ends
            for end in ends:
                end.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(_AT_ONCE):
                if self.delay:
                    await asyncio.sleep(self.delay)
                writer.write(piece)
                await writer.drain()
        # One side has ended, so the other has nobody to talk to.
        writer.transport.abort()
