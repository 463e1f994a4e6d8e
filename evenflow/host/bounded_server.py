"""A bound on the connections of a server that has a thread for each."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections import OrderedDict
from contextlib import suppress
from typing import Any


class BoundedConnections(socketserver.BaseServer):
    """Lets at most `most` connections be open at once. A further one closes the oldest.

    It stands before the server's own class among the bases. The server calls `admit` for each connection that
    it has accepted.
    """

    daemon_threads = True  # an open connection must not keep the process from ending
    most = 64

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._open: OrderedDict[int, socket.socket] = OrderedDict()
        self._lock = threading.Lock()

    def admit(self, connection: socket.socket) -> None:
        """Count this connection, and close the oldest if there are too many."""
        with self._lock:
            oldest = self._open.popitem(last=False)[1] if len(self._open) >= self.most else None
            self._open[id(connection)] = connection
        if oldest is not None:
            # This ends the wait of its thread, which then closes it.
            with suppress(OSError):
                socket.socket.shutdown(oldest, socket.SHUT_RDWR)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection that has been served."""
        with self._lock:
            self._open.pop(id(request), None)
        super().shutdown_request(request)

    @property
    def connections(self) -> int:
        """Connections that are open now."""
        with self._lock:
            return len(self._open)
