"""TLS of the pages, for those who serve them and for those who ask them."""

from __future__ import annotations

import logging
import ssl
import threading
from contextlib import suppress
from pathlib import Path

from evenflow.errors import ConfigError
from evenflow.settings.sections.web import WebSettings

_LOG = logging.getLogger("evenflow.metrics")
HANDSHAKE = 5.0
"""Seconds that a client has for its handshake."""


def server_context(settings: WebSettings) -> ssl.SSLContext | None:
    """TLS 1.2 or later with the certificate of the settings, None if they have none.

    A handshake after the files were replaced has the new certificate. Raises ConfigError if the files cannot
    be used.
    """
    if settings.tls_certificate is None or settings.tls_key is None:
        return None
    files = _Files(settings.tls_certificate, settings.tls_key)
    context = files.context()
    # OpenSSL calls it in each handshake, also if the client names no server.
    context.sni_callback = lambda connection, name, first: files.renew(connection)
    return context


class _Files:
    """A certificate and its key, read again when the files are others."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._certificate, self._key = certificate, key
        self._lock = threading.Lock()
        self._seen = self._state()
        self._newest: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        """What the files hold now. Raises ConfigError if they cannot be used."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            # An encrypted key would make OpenSSL ask for its password at a terminal.
            context.load_cert_chain(self._certificate, self._key, password=lambda: b"")
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"web.tls_certificate {self._certificate} and web.tls_key"
                f" {self._key} cannot be used: {error}",
                hint="both are PEM files, the key is not encrypted and belongs to the certificate",
            ) from None
        return context

    def renew(self, connection: ssl.SSLObject | ssl.SSLSocket) -> None:
        """Give a connection that shakes hands the newest certificate that could be used."""
        with self._lock:
            state = self._state()
            if state != self._seen:
                self._seen = state
                try:
                    self._newest = self.context()
                    _LOG.info("the pages have the new certificate of %s", self._certificate)
                except ConfigError as error:
                    _LOG.warning("the pages keep the certificate that they have: %s", error.message)
            newest = self._newest
        if newest is not None:
            connection.context = newest

    def _state(self) -> list[tuple[int, int, int]]:
        """What tells a file from the one that was there before. Of a missing file, nothing."""
        states = []
        for file in (self._certificate, self._key):
            with suppress(OSError):
                status = file.stat()
                states.append((status.st_ino, status.st_mtime_ns, status.st_size))
        return states


def client_context(settings: WebSettings) -> ssl.SSLContext | None:
    """TLS for those who ask pages of these settings, None if the pages are HTTP.

    Raises ConfigError if `web.tls_ca` cannot be used.
    """
    if settings.tls_certificate is None:
        return None
    try:
        return ssl.create_default_context(cafile=settings.tls_ca)
    except OSError as error:
        raise ConfigError(f"web.tls_ca {settings.tls_ca} cannot be used: {error}") from None
