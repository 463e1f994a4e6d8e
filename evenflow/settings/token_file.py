"""The token with which OAUTHBEARER clients log in: a file that something else renews,
and a page of it for Java.

The file is read again for each log-in, so a new token in it needs no restart. Kafka's Java client 3.9, which
Spark brings, reads a token file once in a process, but asks a token endpoint for each log-in. So Spark's
clients get the token from such an endpoint on a loopback port of the driver (`token_endpoint`).
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from evenflow.errors import ConfigError
from evenflow.host.bounded_server import BoundedConnections
from evenflow.text.strict_json import NotStrict, read_object

_LOG = logging.getLogger("evenflow.kafka")
_MOST_BYTES = 65_536
_PATIENCE_SECONDS = 5
"""How long a connection to the endpoint may say nothing."""
_MOST_CONNECTIONS = 64
"""To the endpoint at once. Any user of this machine may open some, and each has a thread of the driver."""
_MOST_SECONDS = 2**53
_PAGES: dict[Path, TokenEndpoint] = {}
_PAGES_LOCK = threading.Lock()


@dataclass(frozen=True)
class TokenFile:
    """A file with one JSON Web Token (header.payload.signature), whose payload names its end as `exp`.

    The signature is the broker's business: it is not checked here.
    """

    path: Path
    """The file. It is read again for each log-in."""
    clock: Callable[[], float] = field(default=time.time, repr=False, compare=False)
    """Seconds since 1970."""

    def read(self) -> tuple[str, float]:
        """(the token, when it ends in seconds since 1970). Raises ConfigError, which never quotes the
        token.
        """
        try:
            with self.path.open("rb") as file:
                content = file.read(_MOST_BYTES + 1)
        except OSError as error:
            raise ConfigError(
                f"kafka.sasl_token_file: {self.path} cannot be read: {error.strerror}",
                hint=f"is the secret mounted there, for user {os.geteuid()}?",
            ) from None
        token = content.decode("ascii", errors="replace").strip()
        end = _end_of(token) if len(content) <= _MOST_BYTES else None
        if end is None:
            raise ConfigError(
                f"kafka.sasl_token_file: {self.path} holds no JSON Web Token with an end (exp)",
                hint="the file must hold the access token alone: three parts with dots between them",
            )
        if end <= self.clock():
            ended = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(end))
            raise ConfigError(
                f"kafka.sasl_token_file: the token in {self.path} ended at {ended} UTC",
                hint="does that still run which renews the file? The file is read again for each log-in",
            )
        return token, end

    def __call__(self, _: str) -> tuple[str, float]:
        """For librdkafka's `oauth_cb`. librdkafka asks again when 80 % of the time to the end are over."""
        try:
            return self.read()
        except (
            ConfigError
        ) as error:  # librdkafka tries again in 10 s, and says so at a level that is not shown
            _LOG.warning("%s", error)
            raise


@dataclass(frozen=True)
class TokenEndpoint:
    """Where Java clients of this machine get the token. Only who has the secret is answered."""

    url: str
    """Address of the page on a loopback port."""
    client: str
    """Name with which a Java client asks (the client id of RFC 6749)."""
    secret: str = field(repr=False)
    """Random hexadecimal digits that a Java client has to send with its name."""


def token_endpoint(path: Path) -> TokenEndpoint:
    """The endpoint of this process for this token file. It is started once, and lives as long as the process.

    Raises ConfigError if the file holds no token now.
    """
    tokens = TokenFile(path)
    _signed(tokens)
    with _PAGES_LOCK:
        if path not in _PAGES:
            _PAGES[path] = _serve(tokens)
        return _PAGES[path]


def _signed(tokens: TokenFile) -> tuple[str, float]:
    """As `TokenFile.read`. Raises ConfigError for a token without a signature:
    Java would refuse and quote it.
    """
    token, end = tokens.read()
    if token.endswith("."):
        raise ConfigError(
            f"kafka.sasl_token_file: the token in {tokens.path} is not signed, and"
            " Kafka's Java client takes no such token",
            hint="put a signed token there",
        )
    return token, end


class _Server(BoundedConnections, ThreadingHTTPServer):
    most = _MOST_CONNECTIONS
    request_queue_size = 128

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        self.admit(connection)
        return connection, address


def _serve(tokens: TokenFile) -> TokenEndpoint:
    client, secret = "evenflow", secrets.token_hex(32)
    authorization = b"Basic " + base64.b64encode(f"{client}:{secret}".encode())

    class Page(BaseHTTPRequestHandler):
        timeout = _PATIENCE_SECONDS

        def do_POST(self) -> None:
            """A client asks for the token, by the client credentials grant (RFC 6749, 4.4)."""
            # Compared in constant time, so that the time of a refusal tells nothing of the secret.
            if not hmac.compare_digest(self.headers.get("Authorization", "").encode(), authorization):
                self._answer(401, {"error": "invalid_client"})
                return
            try:
                token, end = _signed(tokens)
            except ConfigError as error:
                _LOG.warning("%s", error)
                self._answer(503, {"error": "temporarily_unavailable"})
                return
            left = int(end - tokens.clock())
            self._answer(200, {"access_token": token, "token_type": "Bearer", "expires_in": left})

        def _answer(self, status: int, answer: dict[str, str | int]) -> None:
            body = json.dumps(answer).encode()
            self.send_response(status)
            for name, value in (
                ("Content-Type", "application/json"),
                ("Content-Length", str(len(body))),
                ("Cache-Control", "no-store"),
            ):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing: the base class would print each request."""

    server = _Server(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, name="evenflow-token", daemon=True).start()
    return TokenEndpoint(f"http://127.0.0.1:{server.server_address[1]}/token", client, secret)


def _end_of(token: str) -> float | None:
    """The end (`exp`) of a token, in seconds since 1970. None if the text is no token with an end."""
    parts = token.split(".")
    if len(parts) != 3 or not all(letter.isalnum() or letter in "-_." for letter in token):
        return None
    try:
        raw = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        end = read_object(raw, most_bytes=_MOST_BYTES, depth=16).fields.get("exp")
    except (NotStrict, binascii.Error):
        return None
    if isinstance(end, bool) or not isinstance(end, int | float) or not 0 < end < _MOST_SECONDS:
        return None
    return float(end)
