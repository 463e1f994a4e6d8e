"""`/metrics/`, and the live page where there is a picture, over HTTP: for a part that has no web server of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast
from wsgiref.simple_server import WSGIRequestHandler, make_server
from wsgiref.types import StartResponse, WSGIEnvironment

from prometheus_client import make_wsgi_app
from prometheus_client.exposition import ThreadingWSGIServer

from evenflow.errors import ConfigError
from monitoring.instruments.sheet import Instruments
from monitoring.live.page import HEADERS, PAGE, PATH, STATE, state
from monitoring.live.view import View

_LOG = logging.getLogger("evenflow.metrics")
_CLOSING = 5.0
METRICS = "/metrics/"
Look = Callable[[], View | None]


@contextmanager
def served(
    instruments: Instruments, host: str, port: int, *, setting: str, view: Look | None = None
) -> Iterator[int]:
    """Serve them from threads of their own, at the port that is given out (0: a free one).

    setting: whose value `port` is. view: what the live page shows, None before there is anything; where it is left out there
    is no such page. Raises ConfigError where nothing can listen there.
    """
    try:
        server = make_server(host, port, _pages(instruments, view), _Server, handler_class=_Quiet)
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"metrics cannot be served at {host}:{port}: {error}",
            hint=f"another process has that port, or there is no such address: set {setting} to a free one, or to 0",
        ) from None
    thread = threading.Thread(target=server.serve_forever, name="evenflow-web", daemon=True)
    thread.start()
    try:
        where = f"http://{host}:{server.server_port}"
        _LOG.info("metrics: %s%s%s", where, METRICS, f", live page: {where}{PATH}" if view else "")
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join(_CLOSING)


class _Server(ThreadingWSGIServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Browsers open connections that they do not use, and leave in the middle of an answer."""
        _LOG.debug("a request of %s was not served", client_address, exc_info=True)


class _Quiet(WSGIRequestHandler):
    timeout = 30.0

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a scrape is no event."""


def _pages(
    instruments: Instruments, view: Look | None
) -> Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]:
    metrics = make_wsgi_app(instruments.registry)

    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        path = str(environ.get("PATH_INFO", "")).rstrip("/") + "/"
        if path == METRICS:
            return cast("Iterable[bytes]", metrics(environ, start))
        if view is not None and path == STATE:
            seen = view()
            if seen is None:
                return _said(
                    start, "503 Service Unavailable", "text/plain; charset=utf-8", "it is starting\n"
                )
            return _said(start, "200 OK", "application/json", state(seen))
        if view is not None and path == PATH and str(environ["PATH_INFO"]).endswith("/"):
            return _said(start, "200 OK", "text/html; charset=utf-8", PAGE)
        if view is not None and path in ("/", PATH):
            start("302 Found", [("Location", PATH)])
            return []
        known = f"{METRICS} is here" + (f", and {PATH}" if view else "")
        return _said(start, "404 Not Found", "text/plain; charset=utf-8", f"no such page; {known}\n")

    return answer


def _said(start: StartResponse, status: str, kind: str, text: str) -> Iterable[bytes]:
    start(status, [("Content-Type", kind), *HEADERS.items()])
    return [text.encode()]
