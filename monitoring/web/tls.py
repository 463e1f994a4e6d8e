"""TLS of the pages, for those who serve them and for those who ask them."""

from __future__ import annotations

import ssl

from evenflow.errors import ConfigError
from evenflow.settings.sections.web import WebSettings

HANDSHAKE = 5.0
"""Seconds that a client has for its handshake."""


def server_context(settings: WebSettings) -> ssl.SSLContext | None:
    """TLS 1.2 or later with the certificate of the settings, None if they have none.

    Raises ConfigError if the files cannot be used.
    """
    if settings.tls_certificate is None or settings.tls_key is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # An encrypted key would make OpenSSL ask for its password at a terminal.
        context.load_cert_chain(settings.tls_certificate, settings.tls_key, password=lambda: b"")
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"web.tls_certificate {settings.tls_certificate} and web.tls_key"
            f" {settings.tls_key} cannot be used: {error}",
            hint="both are PEM files, the key is not encrypted and belongs to the certificate",
        ) from None
    return context


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
