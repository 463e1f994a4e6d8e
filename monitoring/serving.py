"""Serves `/metrics/`, `/alive/`, `/healthy/` and, for a part that has a picture, the live page over HTTP.

This is for parts that have no web server of their own.
"""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast
from wsgiref.simple_server import WSGIRequestHandler, make_server
from wsgiref.types import StartResponse, WSGIEnvironment

from prometheus_client import make_wsgi_app
from prometheus_client.exposition import ThreadingWSGIServer

from evenflow.errors import ConfigError
from monitoring.health import Checks
from monitoring.instruments.sheet import Instruments
from monitoring.live.glance import Glance
from monitoring.live.page import HEADERS, PAGE, PATH, STATE, state

_LOG = logging.getLogger("evenflow.metrics")
_CLOSING = 5.0
METRICS, ALIVE, HEALTHY = "/metrics/", "/alive/", "/healthy/"
Look = Callable[[], Glance | None]
Page = Callable[[], tuple[str, str, str]]
"""Makes a page: HTTP status, content type and text."""


@contextmanager
def served(
    instruments: Instruments,
    host: str,
    port: int,
    *,
    setting: str,
    health: Callable[[], Checks] = Checks,
    glance: Look | None = None,
) -> Iterator[int]:
    """Serve the pages in threads of their own. Yields the port, which matters if `port` is 0 (any free one).

    setting: name of the setting that holds the port, for the error. health: what probes are told. glance:
    what the live page shows, None before there is anything to show. Without `glance` there is no live page.
    Raises ConfigError if nothing can listen at that address.
    """
    try:
        kind = _Server6 if ":" in host else _Server
        server = make_server(host, port, _pages(instruments, health, glance), kind, handler_class=_Quiet)
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"metrics cannot be served at {host}:{port}: {error}",
            hint=f"another process has that port, or there is no such address: set {setting} to a free one, or to 0",
        ) from None
    thread = threading.Thread(target=server.serve_forever, name="evenflow-web", daemon=True)
    thread.start()
    try:
        where = f"http://{f'[{host}]' if ':' in host else host}:{server.server_port}"
        _LOG.info("metrics: %s%s%s", where, METRICS, f", live page: {where}{PATH}" if glance else "")
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join(_CLOSING)


class _Server(ThreadingWSGIServer):
    daemon_threads = True  # an open connection must not keep the process from ending

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log the error quietly: browsers open unused connections, and leave in the middle of an answer."""
        _LOG.debug("a request of %s was not served", client_address, exc_info=True)


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Quiet(WSGIRequestHandler):
    timeout = 30.0  # s: an unused connection must not hold its thread for ever

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: a scrape is not worth a line."""


def _pages(
    instruments: Instruments, health: Callable[[], Checks], glance: Look | None
) -> Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]:
    metrics = make_wsgi_app(instruments.registry)
    pages: dict[str, Page] = {
        ALIVE: lambda: _checked("alive", health().alive),
        HEALTHY: lambda: _checked("healthy", health().healthy),
    }
    if glance is not None:
        pages |= {STATE: lambda: _state(glance()), PATH: lambda: (_OK, "text/html; charset=utf-8", PAGE)}

    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        asked = str(environ.get("PATH_INFO", ""))
        path = asked.rstrip("/") + "/"
        if path == METRICS:
            return cast("Iterable[bytes]", metrics(environ, start))
        # The live page asks for its state by a relative address, so it must be loaded under its full path.
        if glance is not None and asked != PATH and path in ("/", PATH):
            start("302 Found", [("Location", PATH)])
            return []
        status, kind, text = pages[path]() if path in pages else _missing([METRICS, *pages])
        start(status, [("Content-Type", kind), *HEADERS.items()])
        return [text.encode()]

    return answer


_OK, _NOT_NOW, _UNKNOWN = "200 OK", "503 Service Unavailable", "404 Not Found"
_PLAIN = "text/plain; charset=utf-8"


def _state(seen: Glance | None) -> tuple[str, str, str]:
    return (_NOT_NOW, _PLAIN, "it is starting\n") if seen is None else (_OK, "application/json", state(seen))


def _checked(word: str, trouble: str | None) -> tuple[str, str, str]:
    if trouble is None:
        return _OK, "application/json", json.dumps({word: True})
    return _NOT_NOW, "application/json", json.dumps({word: False, "reason": trouble})


def _missing(known: list[str]) -> tuple[str, str, str]:
    return _UNKNOWN, _PLAIN, f"no such page; there are {', '.join(known)}\n"
