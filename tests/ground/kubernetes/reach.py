"""From this process into a network namespace: a port on loopback whose connections go on in there."""

from __future__ import annotations

import ctypes
import os
import socket
import socketserver
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

_CLONE_NEWNET = 0x4000_0000
_CHUNK = 1 << 16


@contextmanager
def forwarded(pid: int, host: str, port: int) -> Iterator[int]:
    """A port on 127.0.0.1 that stands for `host:port` as the process `pid` sees it."""
    with (
        Path(f"/proc/{pid}/ns/net").open("rb") as namespace,
        _Server(namespace.fileno(), host, port) as server,
    ):
        Thread(target=server.serve_forever, daemon=True).start()
        yield int(server.server_address[1])
        server.shutdown()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, namespace: int, host: str, port: int) -> None:
        self.namespace = namespace
        self.target = (host, port)
        super().__init__(("127.0.0.1", 0), _Connection)

    def handle_error(self, request: object, client_address: object) -> None:
        """Whoever is connected sees its end; a test that ends in mid-stream is no error."""


class _Connection(socketserver.BaseRequestHandler):
    server: _Server

    def handle(self) -> None:
        _enter(self.server.namespace)  # this thread alone; it ends with the connection
        with socket.create_connection(self.server.target) as there:
            Thread(target=_copy, args=(self.request, there), daemon=True).start()
            _copy(there, self.request)


def _enter(namespace: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.setns(namespace, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Until the source ends; then the target is told."""
    with suppress(OSError):
        while content := source.recv(_CHUNK):
            target.sendall(content)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
