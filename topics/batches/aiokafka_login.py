"""How aiokafka's clients log in: TLS contexts and tokens, from evenflow's settings."""

from __future__ import annotations

import logging
import ssl
from typing import Any

from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaConnectionError

from evenflow.errors import ConfigError
from evenflow.settings import KafkaSettings
from evenflow.settings.kafka import aiokafka_config
from evenflow.settings.token_file import TokenFile

log = logging.getLogger(__name__)


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka has no types
    """Reads the token's file for each connection that aiokafka makes."""

    def __init__(self, tokens: TokenFile) -> None:
        super().__init__()
        self._tokens = tokens

    async def token(self) -> str:
        """The token. Raises KafkaConnectionError if the file cannot be read."""
        try:
            return self._tokens.read()[0]
        except ConfigError as error:  # aiokafka tries again after its own errors alone
            log.warning("%s", error)
            raise KafkaConnectionError(str(error)) from None


def tls_context(kafka: KafkaSettings) -> ssl.SSLContext | None:
    """The TLS context of these settings, None if they say no TLS."""
    words = aiokafka_config(kafka)
    if "SSL" not in words["security_protocol"].split("_"):
        return None
    context = ssl.create_default_context(cafile=words["ssl_cafile"])
    if words["ssl_certfile"]:
        context.load_cert_chain(words["ssl_certfile"], words["ssl_keyfile"], words["ssl_password"])
    return context


def client_words(kafka: KafkaSettings) -> dict[str, Any]:
    """Arguments for aiokafka's clients: addresses, and how to log in."""
    words = aiokafka_config(kafka)
    login = {
        "bootstrap_servers": words["bootstrap_servers"],
        "security_protocol": words["security_protocol"],
        "ssl_context": tls_context(kafka),
    }
    if words["sasl_mechanism"] is not None:
        login["sasl_mechanism"] = words["sasl_mechanism"]
    if words["tokens"] is not None:
        login["sasl_oauth_token_provider"] = TokenProvider(words["tokens"])
    elif words["security_protocol"].startswith("SASL_"):
        login["sasl_plain_username"] = words["sasl_plain_username"]
        login["sasl_plain_password"] = words["sasl_plain_password"]
    return login
