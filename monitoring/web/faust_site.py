"""The same guard, headers, TLS and bound for a web server of aiohttp, which Faust has."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable

from aiohttp.web import (
    Application,
    AppRunner,
    HTTPException,
    Request,
    RequestHandler,
    Response,
    SockSite,
    StreamResponse,
    middleware,
)
from aiohttp.web_runner import BaseSite

from monitoring.web.guard import Guard
from monitoring.web.headers import BARE
from monitoring.web.tls import HANDSHAKE

_LOG = logging.getLogger("evenflow.metrics")
Handler = Callable[[Request], Awaitable[StreamResponse]]


def protect(application: Application, guard: Guard) -> None:
    """Let the guard judge every request, and give every answer the headers that it lacks."""

    @middleware
    async def judge(request: Request, handler: Handler) -> StreamResponse:
        path, authorization = request.path, request.headers.get("Authorization")
        refusal = guard.refusal(
            method=request.method,
            path=path,
            hosts=request.headers.getall("Host", []),
            authorization=authorization,
        )
        if refusal is not None:
            return Response(status=refusal.status, text=refusal.text, headers=refusal.headers)
        try:
            answer = await handler(request)
        except HTTPException:
            raise
        except Exception:  # aiohttp's own answer to it would lack the headers
            _LOG.exception("the page %s failed", request.match_info.route.resource)
            answer = Response(status=500, text="the page failed, and the log says why\n")
        bare = guard.bare(path=path, authorization=authorization, status=answer.status)
        if bare is None:
            return answer
        return Response(status=answer.status, text=bare, content_type="application/json")

    async def complete(request: Request, answer: StreamResponse) -> None:
        for name, value in BARE.items():
            answer.headers.setdefault(name, value)

    application.middlewares.append(judge)
    application.on_response_prepare.append(complete)


class BoundedSite(SockSite):
    """Serves at a socket that listens already, `most` connections at once. A further one closes the
    oldest.
    """

    __slots__ = ("_most",)

    def __init__(
        self, runner: AppRunner, listening: socket.socket, *, most: int, context: ssl.SSLContext | None
    ) -> None:
        super().__init__(runner, listening, ssl_context=context)
        self._most = most

    async def start(self) -> None:
        """Begin to serve."""
        await BaseSite.start(self)
        self._server = await asyncio.get_running_loop().create_server(
            self._connection,
            sock=self._sock,
            ssl=self._ssl_context,
            ssl_handshake_timeout=None if self._ssl_context is None else HANDSHAKE,
            backlog=self._backlog,
        )

    def _connection(self) -> RequestHandler:
        server = self._runner.server
        if server is None:
            raise RuntimeError("the runner was not set up")
        for oldest in server.connections[: 1 - self._most]:
            transport = oldest.transport
            oldest.force_close()
            # Closing alone would wait until a client that does not read has read everything.
            if transport is not None:
                transport.abort()
        return server()
