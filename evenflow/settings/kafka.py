"""The translation of the neutral Kafka fields into each client's own names.

librdkafka, aiokafka and Spark's Java client name TLS and SASL differently. Only this module knows these
names. Raw `extras` override the neutral fields. The only files that are opened are those of TLS and of the
token.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from evenflow.errors import ConfigError
from evenflow.settings.sections.kafka import KafkaSettings
from evenflow.settings.token_file import TokenFile, token_endpoint

_OAUTH = "org.apache.kafka.common.security.oauthbearer"
_OWN_TOKENS = frozenset({"sasl.login.callback.handler.class", "sasl.oauthbearer.token.endpoint.url"})
"""Settings of a Java client that say where it gets tokens from, in place of the token file."""


def librdkafka_config(kafka: KafkaSettings, **more: Any) -> dict[str, Any]:
    """Configuration of a confluent-kafka client.
    `more`: further settings as keywords, with _ in place of dots.

    Raises ConfigError, which names the setting, if a file of TLS cannot be read, or if the file of the token
    holds none.
    """
    _refuse_unreadable(kafka)
    config: dict[str, Any] = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "security.protocol": kafka.security_protocol,
        "broker.address.family": "any",
    }
    if kafka.sasl_mechanism is not None and kafka.sasl_password is not None:
        config["sasl.mechanism"] = kafka.sasl_mechanism
        config["sasl.username"] = kafka.sasl_username
        config["sasl.password"] = kafka.sasl_password.get_secret_value()
    if kafka.sasl_token_file is not None:
        tokens = TokenFile(kafka.sasl_token_file)
        tokens.read()
        config["sasl.mechanism"] = "OAUTHBEARER"
        config["oauth_cb"] = tokens
    if kafka.ssl_ca is not None:
        config["ssl.ca.location"] = str(kafka.ssl_ca)
    if kafka.ssl_certificate is not None:
        config["ssl.certificate.location"] = str(kafka.ssl_certificate)
        config["ssl.key.location"] = str(kafka.ssl_key)
    if kafka.ssl_key_password is not None:
        config["ssl.key.password"] = kafka.ssl_key_password.get_secret_value()
    config.update({_librdkafka_name(name): value for name, value in more.items()})
    config.update(kafka.extras.librdkafka)
    return config


def java_config(kafka: KafkaSettings) -> dict[str, str]:
    """Configuration of a Java client. Spark's options are the same names with the prefix 'kafka.'.

    The configuration holds the PEM texts and not their paths, because executors on other machines have no
    such files. With a token file, it names an endpoint of this process where clients of this machine get the
    token, unless `extras.java` says where else. Raises ConfigError, which names the setting, if a file of TLS
    cannot be read, or if the file of the token holds none.
    """
    _refuse_unreadable(kafka)
    config = {"bootstrap.servers": kafka.bootstrap_servers, "security.protocol": kafka.security_protocol}
    if kafka.sasl_mechanism is not None and kafka.sasl_password is not None:
        module = (
            "org.apache.kafka.common.security.plain.PlainLoginModule"
            if kafka.sasl_mechanism == "PLAIN"
            else "org.apache.kafka.common.security.scram.ScramLoginModule"
        )
        user, password = (
            jaas_quoted(text) for text in (kafka.sasl_username or "", kafka.sasl_password.get_secret_value())
        )
        config["sasl.mechanism"] = kafka.sasl_mechanism
        config["sasl.jaas.config"] = f"{module} required username={user} password={password};"
    if kafka.sasl_token_file is not None:
        config |= _java_tokens(kafka, kafka.sasl_token_file)
    if kafka.ssl_ca is not None:
        config["ssl.truststore.type"] = "PEM"
        config["ssl.truststore.certificates"] = kafka.ssl_ca.read_text()
    if kafka.ssl_certificate is not None and kafka.ssl_key is not None:
        config["ssl.keystore.type"] = "PEM"
        config["ssl.keystore.certificate.chain"] = kafka.ssl_certificate.read_text()
        config["ssl.keystore.key"] = kafka.ssl_key.read_text()
    if kafka.ssl_key_password is not None:
        config["ssl.key.password"] = kafka.ssl_key_password.get_secret_value()
    config.update({name: _java_text(value) for name, value in kafka.extras.java.items()})
    return config


def own_java_tokens(kafka: KafkaSettings) -> bool:
    """Whether `extras.java` says where Java clients get their tokens from."""
    return not _OWN_TOKENS.isdisjoint(kafka.extras.java)


def _java_tokens(kafka: KafkaSettings, file: Path) -> dict[str, str]:
    """How a Java client gets tokens, for OAUTHBEARER."""
    config = {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.login.callback.handler.class": f"{_OAUTH}.OAuthBearerLoginCallbackHandler",
        "sasl.jaas.config": f"{_OAUTH}.OAuthBearerLoginModule required;",
    }
    if own_java_tokens(kafka):
        return config
    endpoint = token_endpoint(file)
    client, secret = jaas_quoted(endpoint.client), jaas_quoted(endpoint.secret)
    return config | {
        "sasl.oauthbearer.token.endpoint.url": endpoint.url,
        "sasl.jaas.config": (
            f"{_OAUTH}.OAuthBearerLoginModule required clientId={client} clientSecret={secret};"
        ),
    }


def spark_options(kafka: KafkaSettings) -> dict[str, str]:
    """Options of Spark's Kafka source and sink."""
    return {f"kafka.{name}": value for name, value in java_config(kafka).items()}


def aiokafka_config(kafka: KafkaSettings) -> dict[str, Any]:
    """Configuration for Faust's control plane as plain values.
    The service builds the TLS and credential objects.
    """
    return {
        "bootstrap_servers": kafka.bootstrap_servers.split(","),
        "security_protocol": kafka.security_protocol,
        "sasl_mechanism": kafka.sasl_mechanism,
        "sasl_plain_username": kafka.sasl_username,
        "sasl_plain_password": kafka.sasl_password.get_secret_value() if kafka.sasl_password else None,
        "tokens": TokenFile(kafka.sasl_token_file) if kafka.sasl_token_file else None,
        "ssl_cafile": str(kafka.ssl_ca) if kafka.ssl_ca else None,
        "ssl_certfile": str(kafka.ssl_certificate) if kafka.ssl_certificate else None,
        "ssl_keyfile": str(kafka.ssl_key) if kafka.ssl_key else None,
        "ssl_password": kafka.ssl_key_password.get_secret_value() if kafka.ssl_key_password else None,
    }


def _refuse_unreadable(kafka: KafkaSettings) -> None:
    """ConfigError if a file of TLS cannot be read."""
    # The clients' own messages about such a file name neither the file nor the problem.
    for name in ("ssl_ca", "ssl_certificate", "ssl_key"):
        file: Path | None = getattr(kafka, name)
        try:
            if file is not None:
                file.open("rb").close()
        except OSError as error:
            raise ConfigError(
                f"kafka.{name}: {file} cannot be read: {error.strerror}",
                hint=f"is the secret mounted there, for user {os.geteuid()}?",
            ) from None


def _librdkafka_name(name: str) -> str:
    """The name with dots in place of underscores, except for the few names
    that have underscores in confluent-kafka.
    """
    if name == "log_level" or name.endswith("_cb") or name.startswith("on_"):
        return name
    return name.replace("_", ".")


def jaas_quoted(text: str) -> str:
    """The text as a quoted value of a JAAS configuration line."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _java_text(value: str | int | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
