"""Who may read a page: the name that a request asks for, and the token that it brings. Knows no web
server.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import json
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evenflow.errors import ConfigError
from evenflow.settings.sections.web import WebSettings

PROBES: Mapping[str, str] = {"/alive/": "alive", "/healthy/": "healthy"}
"""Pages that answer without the token, but only with yes or no. -> the name of the answer."""
METHODS = ("GET", "HEAD")
"""What a request may be: no page changes anything."""
_FEWEST_CHARACTERS = 16
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s,:\[\]]+))(?::\d{1,5})?")


@dataclass(frozen=True)
class Refusal:
    """An answer in place of a page."""

    status: int
    """HTTP status code."""
    text: str
    """What is wrong and what to do."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers besides the usual ones."""


class Guard:
    """Judges the requests to the pages of one part.
    own: address or name that the part listens at (`web_host`).

    Raises ConfigError if `web.token_file` cannot be read or holds no token.
    """

    def __init__(self, settings: WebSettings, own: str) -> None:
        self._names = {"localhost", socket.gethostname().lower(), own.lower(), *settings.hosts} - {""}
        self._token_file = settings.token_file
        if self._token_file is not None:
            token_of(self._token_file)

    def refusal(
        self, *, method: str, path: str, hosts: Sequence[str], authorization: str | None
    ) -> Refusal | None:
        """Why this request gets no page, None if it gets one.

        hosts: values of the header Host. authorization: the header of that name. A probe is not refused for
        the lack of a token: `bare` then makes its answer.
        """
        if method not in METHODS:
            return Refusal(405, f"only {' and '.join(METHODS)}\n", {"Allow": ", ".join(METHODS)})
        # Of several headers Host a proxy in front may go by another one than these pages would.
        if len(hosts) != 1 or not self._is_known_host(hosts[0]):
            return Refusal(
                421, "these pages do not answer under the name of this request; web.hosts adds a name\n"
            )
        if _folder(path) in PROBES:
            return None
        return self._token_refusal(authorization)

    def bare(self, *, path: str, authorization: str | None, status: int) -> str | None:
        """The answer to a probe that lacks the token, as JSON without a reason.
        None if the page may be as it is.
        """
        name = PROBES.get(_folder(path))
        if name is None or self._token_refusal(authorization) is None:
            return None
        return json.dumps({name: status == 200})

    def _is_known_host(self, host: str) -> bool:
        name = _name(host)
        if name in self._names:
            return True
        # An address is none that a foreign site could have given a name of its own.
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _token_refusal(self, authorization: str | None) -> Refusal | None:
        if self._token_file is None:
            return None
        try:
            # Read for each request, so that a new secret counts without a restart.
            token = token_of(self._token_file)
        except ConfigError as error:
            return Refusal(503, f"{error.message}\n")
        # compare_digest, so that the time of the answer does not tell how much of a token was right.
        if any(hmac.compare_digest(offer, token.encode()) for offer in _offers(authorization)):
            return None
        return Refusal(
            401,
            "this page needs the token of web.token_file: `Authorization: Bearer TOKEN`, or as a password\n",
            {"WWW-Authenticate": 'Basic realm="evenflow", charset="UTF-8"'},
        )


def token_of(file: Path) -> str:
    """The token in the file, without white space around it.

    Raises ConfigError, which does not repeat what the file holds, if there is none or it is too short.
    """
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ConfigError(
            f"web.token_file: {file} cannot be read: {why}", hint="is the secret mounted there?"
        ) from None
    if len(token) < _FEWEST_CHARACTERS or not (token.isascii() and token.isprintable()) or " " in token:
        raise ConfigError(
            f"web.token_file: {file} holds no token of at least"
            f" {_FEWEST_CHARACTERS} ASCII characters in one line",
            hint="make one: python3 -c 'import secrets; print(secrets.token_urlsafe(32))'",
        )
    return token


def _folder(path: str) -> str:
    return path.rstrip("/") + "/"


def _name(host: str) -> str:
    """The name or address in a header Host, without its port. Empty if the header is none."""
    match = _HOST.fullmatch(host.strip())
    return "" if match is None else (match[1] or match[2]).lower().removesuffix(".")


def _offers(authorization: str | None) -> list[bytes]:
    """The tokens that a header offers: one, or none."""
    scheme, _, rest = (authorization or "").partition(" ")
    if scheme.lower() == "bearer":
        return [rest.strip().encode(errors="surrogateescape")]
    if scheme.lower() == "basic":
        try:
            return [base64.b64decode(rest.strip(), validate=True).partition(b":")[2]]
        except (binascii.Error, ValueError):
            return []
    return []
