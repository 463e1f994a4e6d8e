"""A web server with a thread for each connection, and a bound on connections."""

from __future__ import annotations

import logging
import socket
import ssl
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler

from prometheus_client.exposition import ThreadingWSGIServer

from evenflow.host.bounded_server import BoundedConnections
from monitoring.web.tls import HANDSHAKE

_LOG = logging.getLogger("evenflow.metrics")


class BoundedServer(BoundedConnections, ThreadingWSGIServer):
    """Serves at most `most` connections at once.
    A further one closes the oldest, so that probes always get through.

    Each connection has one request. The caller sets `most` and `context` (TLS, None: none) before it serves.
    """

    request_queue_size = 128
    """Connections that wait to be accepted. More are dropped by the kernel, and a client tries again after a
    second, so a burst of connections would keep a probe out for that long."""
    context: ssl.SSLContext | None = None

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection. Its handshake is left to its thread, so that nobody waits for a silent
        client.
        """
        connection, address = super().get_request()
        connection.settimeout(HANDSHAKE)
        if self.context is not None:
            connection = self.context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        self.admit(connection)
        return connection, address

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log the error quietly: browsers open unused connections, and leave in the middle of an answer."""
        _LOG.debug("a request of %s was not served", client_address, exc_info=True)


class BoundedServer6(BoundedServer):
    """The same for an IPv6 address."""

    address_family = socket.AF_INET6


class QuietHandler(WSGIRequestHandler):
    """One request of a connection, without a line in the log."""

    timeout = 10.0  # s: an unused connection must not hold its thread for ever

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: a scrape is not worth a line."""
