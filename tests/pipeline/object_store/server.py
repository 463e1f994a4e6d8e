"""moto's S3 on a free port of 127.0.0.1, in moto's own environment: prints the port, then does what each line
of its standard input orders, and says so. It ends with that input.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

import moto.settings
from moto.core.authorization import ActionAuthenticatorMixin
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server


class Handler(WSGIRequestHandler):
    """Says `100 Continue` once: Python's handler says it, too, and the client takes the second one for the
    answer.
    """

    def handle_expect_100(self) -> bool:
        return True

    def log_request(self, *words: Any) -> None:
        """Nothing."""


class Server:
    def __init__(self) -> None:
        self._app = DomainDispatcherApplication(create_backend_app)
        self.port = 0
        self.start()

    def start(self) -> None:
        self._serving = make_server("127.0.0.1", self.port, self._app, threaded=True, request_handler=Handler)
        self.port = self._serving.server_port
        threading.Thread(target=self._serving.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._serving.shutdown()
        self._serving.server_close()

    def refuse(self) -> None:
        ActionAuthenticatorMixin.request_count = 0
        moto.settings.INITIAL_NO_AUTH_ACTION_COUNT = 0

    def accept(self) -> None:
        moto.settings.INITIAL_NO_AUTH_ACTION_COUNT = float("inf")


server = Server()
print(server.port, flush=True)
for order in sys.stdin:
    getattr(server, order.strip())()
    print(order.strip(), flush=True)
