"""Serves `/metrics/`, `/alive/`, `/healthy/` and, for a part that has a picture, the live page over HTTP.

This is for parts that have no web server of their own.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, cast
from wsgiref.simple_server import make_server
from wsgiref.types import StartResponse, WSGIEnvironment

from prometheus_client import make_wsgi_app

from evenflow.errors import ConfigError
from evenflow.settings.sections.web import WebSettings
from monitoring.health import Checks
from monitoring.instruments.sheet import Instruments
from monitoring.live.glance import Glance
from monitoring.live.page import HEADERS, PAGE, PATH, STATE, state
from monitoring.web.guard import Guard
from monitoring.web.headers import BARE
from monitoring.web.threads import BoundedServer, BoundedServer6, QuietHandler
from monitoring.web.tls import server_context

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
    web: WebSettings | None = None,
) -> Iterator[int]:
    """Serve the pages in threads of their own. Yields the port, which matters if `port` is 0 (any free one).

    setting: name of the setting that holds the port, for the error. health: what probes are told. glance:
    what the live page shows, None before there is anything to show. Without `glance` there is no live page.
    web: who may read the pages, and over which transport. None: the defaults.
    Raises ConfigError if nothing can listen at that address, or if a file that `web` names cannot be used.
    """
    web = web or WebSettings()
    context, guard = server_context(web), Guard(web, host)
    try:
        kind = BoundedServer6 if ":" in host else BoundedServer
        pages = _guarded(guard, _pages(instruments, health, glance))
        server = make_server(host, port, pages, kind, handler_class=QuietHandler)
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"metrics cannot be served at {host}:{port}: {error}",
            hint=(
                "another process has that port, or there is no such address:"
                f" set {setting} to a free one, or to 0"
            ),
        ) from None
    server.most, server.context = web.connections, context
    thread = threading.Thread(target=server.serve_forever, name="evenflow-web", daemon=True)
    thread.start()
    try:
        where = f"{web.scheme}://{f'[{host}]' if ':' in host else host}:{server.server_port}"
        _LOG.info("metrics: %s%s%s", where, METRICS, f", live page: {where}{PATH}" if glance else "")
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join(_CLOSING)


Pages = Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]


def _guarded(guard: Guard, pages: Pages) -> Pages:
    """The same pages for requests that the guard lets through, and with the headers that they lack."""

    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        method, path = str(environ.get("REQUEST_METHOD", "")), str(environ.get("PATH_INFO", ""))
        authorization = environ.get("HTTP_AUTHORIZATION")
        # wsgiref joins several headers of one name with commas, and no name of ours has one.
        hosts = [str(environ["HTTP_HOST"])] if "HTTP_HOST" in environ else []
        refusal = guard.refusal(method=method, path=path, hosts=hosts, authorization=authorization)
        if refusal is not None:
            phrase = f"{refusal.status} {HTTPStatus(refusal.status).phrase}"
            start(phrase, [("Content-Type", _PLAIN), *{**BARE, **refusal.headers}.items()])
            return [refusal.text.encode()]
        codes: list[int] = []

        def complete(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            codes.append(int(status[:3]))
            names = {name.lower() for name, _ in headers}
            return start(
                status, headers + [header for header in BARE.items() if header[0].lower() not in names], *more
            )

        body = pages(environ, complete)
        bare = guard.bare(path=path, authorization=authorization, status=codes[0])
        body = body if bare is None else [bare.encode()]
        return [] if method == "HEAD" else body

    return answer


def _pages(instruments: Instruments, health: Callable[[], Checks], glance: Look | None) -> Pages:
    metrics = make_wsgi_app(instruments.registry)
    pages: dict[str, Page] = {
        ALIVE: lambda: _checked("alive", health().alive),
        HEALTHY: lambda: _healthy(health()),
    }
    if glance is not None:
        pages |= {STATE: lambda: _state(glance()), PATH: lambda: (_OK, "text/html; charset=utf-8", PAGE)}

    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        request_path = str(environ.get("PATH_INFO", ""))
        path = request_path.rstrip("/") + "/"
        if path == METRICS:
            return cast("Iterable[bytes]", metrics(environ, start))
        # The live page asks for its state by a relative address, so it must be loaded under its full path.
        if glance is not None and request_path != PATH and path in ("/", PATH):
            start("302 Found", [("Location", PATH)])
            return []
        status, kind, text = pages[path]() if path in pages else _missing([METRICS, *pages])
        start(status, [("Content-Type", kind), *(HEADERS if path == PATH else BARE).items()])
        return [text.encode()]

    return answer


_OK, _NOT_NOW, _UNKNOWN = "200 OK", "503 Service Unavailable", "404 Not Found"
_PLAIN = "text/plain; charset=utf-8"


def _state(glance: Glance | None) -> tuple[str, str, str]:
    return (
        (_NOT_NOW, _PLAIN, "it is starting\n") if glance is None else (_OK, "application/json", state(glance))
    )


def _healthy(checks: Checks) -> tuple[str, str, str]:
    return _checked("healthy", checks.healthy, {"warnings": checks.warnings} if checks.warnings else {})


def _checked(word: str, trouble: str | None, more: Mapping[str, Any] | None = None) -> tuple[str, str, str]:
    if trouble is None:
        return _OK, "application/json", json.dumps({word: True, **(more or {})})
    return _NOT_NOW, "application/json", json.dumps({word: False, "reason": trouble, **(more or {})})


def _missing(known: list[str]) -> tuple[str, str, str]:
    return _UNKNOWN, _PLAIN, f"no such page; there are {', '.join(known)}\n"
