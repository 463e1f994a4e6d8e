"""Both web servers with their pages, without a broker: that of Spark and the controller, and that of a
partitioner.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import faust

from evenflow.settings import Settings, load_settings
from monitoring.instruments.controller import ControllerInstruments
from monitoring.instruments.partitioner import PartitionerInstruments
from monitoring.live.feed import Feed
from monitoring.serving import served
from partitioner_service.app import build_app

SERVERS = ("threads", "faust")


def serving(server: str, folder: Path, **web: Any) -> AbstractContextManager[int]:
    """Pages of this server with these settings of `[web]`. Gives the port at 127.0.0.1."""
    settings = load_settings(query={"name": "q"}, input={"partitions": 2}, web=web)
    if server == "threads":
        instruments = ControllerInstruments(settings)
        return served(instruments, "127.0.0.1", 0, setting="x", glance=lambda: None, web=settings.web)
    return _faust(settings, folder)


def app_of(settings: Settings, folder: Path, listening: socket.socket) -> faust.App:
    """The app of an instance whose data plane has not begun."""
    plane: Any = SimpleNamespace(
        serves_pages_at=lambda place: None,
        channel=None,
        speeds=None,
        ask=lambda key: None,
        clock=lambda: 0.0,
        status=lambda: {"state": "starting", "seconds_since_progress": 0.0},
    )
    return build_app(settings, plane, folder, PartitionerInstruments(settings), Feed(settings), web=listening)


@contextmanager
def _faust(settings: Settings, folder: Path) -> Iterator[int]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        asyncio.set_event_loop(loop)
        web: Any = app_of(settings, folder, listening).web
        asyncio.set_event_loop(None)
        web.init_server()
        thread.start()
        asyncio.run_coroutine_threadsafe(web.start_server(), loop).result(30)
        try:
            yield listening.getsockname()[1]
        finally:
            asyncio.run_coroutine_threadsafe(web.stop_server(), loop).result(30)
            loop.call_soon_threadsafe(loop.stop)
            thread.join(10)
            loop.close()
