"""A web server with a thread for each connection, and a bound on connections."""

from __future__ import annotations

import logging
import socket
import ssl
import threading
from collections import OrderedDict
from contextlib import suppress
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler

from prometheus_client.exposition import ThreadingWSGIServer

from monitoring.web.tls import HANDSHAKE

_LOG = logging.getLogger("evenflow.metrics")


class BoundedServer(ThreadingWSGIServer):
    """Serves at most `most` connections at once.
    A further one closes the oldest, so that probes always get through.

    Each connection has one request. The caller sets `most` and `context` (TLS, None: none) before it serves.
    """

    daemon_threads = True  # an open connection must not keep the process from ending
    request_queue_size = 128
    """Connections that wait to be accepted. More are dropped by the kernel, and a client tries again after a
    second, so a burst of connections would keep a probe out for that long."""
    most = 64
    context: ssl.SSLContext | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._open: OrderedDict[int, socket.socket] = OrderedDict()
        self._lock = threading.Lock()

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection. Its handshake is left to its thread, so that nobody waits for a silent
        client.
        """
        connection, address = super().get_request()
        connection.settimeout(HANDSHAKE)
        if self.context is not None:
            connection = self.context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        self._admit(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        """Close a connection that has been served."""
        with self._lock:
            self._open.pop(id(request), None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log the error quietly: browsers open unused connections, and leave in the middle of an answer."""
        _LOG.debug("a request of %s was not served", client_address, exc_info=True)

    @property
    def connections(self) -> int:
        """Connections that are open now."""
        with self._lock:
            return len(self._open)

    def _admit(self, connection: socket.socket) -> None:
        with self._lock:
            oldest = self._open.popitem(last=False)[1] if len(self._open) >= self.most else None
            self._open[id(connection)] = connection
        if oldest is not None:
            # This ends the wait of its thread, which then closes it.
            with suppress(OSError):
                socket.socket.shutdown(oldest, socket.SHUT_RDWR)


class BoundedServer6(BoundedServer):
    """The same for an IPv6 address."""

    address_family = socket.AF_INET6


class QuietHandler(WSGIRequestHandler):
    """One request of a connection, without a line in the log."""

    timeout = 10.0  # s: an unused connection must not hold its thread for ever

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: a scrape is not worth a line."""
