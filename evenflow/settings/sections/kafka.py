"""The broker, and how clients reach it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SecretStr, model_validator

from evenflow.settings.durations import Duration
from evenflow.settings.sections.exactness import Client, refused_extras
from evenflow.settings.sections.section import Section

_SASL_FIELDS = ("sasl_mechanism", "sasl_username", "sasl_password", "sasl_token_file")


class KafkaExtras(Section):
    """Raw settings that are handed to one client as they are. They override the neutral fields.

    Settings that exact results depend on are refused (evenflow/settings/sections/exactness.py).
    """

    librdkafka: dict[str, str | int | float | bool] = Field(
        default_factory=dict, repr=False, description="For confluent-kafka (producers, data plane, verify)."
    )
    faust: dict[str, str | int | float | bool] = Field(
        default_factory=dict,
        repr=False,
        description=(
            "For the control plane, by Faust's own names (broker_request_timeout, ...). Faust configures its "
            "aiokafka clients by them."
        ),
    )
    java: dict[str, str | int | float | bool] = Field(
        default_factory=dict,
        repr=False,
        description="For Spark's Kafka source and sink, without the 'kafka.' prefix.",
    )

    @model_validator(mode="after")
    def _nothing_that_exactness_rests_on(self) -> KafkaExtras:
        named: dict[Client, dict[str, Any]] = {
            "librdkafka": dict(self.librdkafka),
            "java": dict(self.java),
            "faust": dict(self.faust),
        }
        refused = [line for client, names in named.items() for line in refused_extras(client, names)]
        if refused:
            raise ValueError(f"exact results rest on what is set here: take it out: {', '.join(refused)}")
        return self


class KafkaSettings(Section):
    """The address of the broker and how to log in, in neutral names.
    `settings.kafka` translates them for each client.
    """

    bootstrap_servers: str = Field(
        default="127.0.0.1:9092",
        description="host:port[,host:port...]. May also be written `bootstrap.servers`.",
    )
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        default="PLAINTEXT", description="Transport and authentication."
    )
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] | None = Field(
        default=None, description="SASL mechanism. Required with SASL_*. None: no SASL."
    )
    sasl_username: str | None = Field(
        default=None, description="SASL user. None: no SASL, or OAUTHBEARER, whose token names the user."
    )
    sasl_password: SecretStr | None = Field(
        default=None, description="SASL password. None: no SASL, or OAUTHBEARER."
    )
    sasl_token_file: Path | None = Field(
        default=None,
        description=(
            "With OAUTHBEARER: file with the access token, a JSON Web Token with an end (`exp`). It is read"
            " again for each log-in, so whatever renews the token replaces the file."
            " None: another mechanism, or no SASL."
        ),
    )
    ssl_ca: Path | None = Field(
        default=None, description="PEM file of the authority that signed the broker. None: the system's."
    )
    ssl_certificate: Path | None = Field(
        default=None, description="PEM client certificate. None: no client TLS."
    )
    ssl_key: Path | None = Field(default=None, description="PEM (PKCS#8) client key. None: no client TLS.")
    ssl_key_password: SecretStr | None = Field(
        default=None, description="Password of ssl_key. None: not encrypted."
    )
    replication_factor: int = Field(
        default=1, ge=1, description="Replicas of topics that evenflow creates. Use 3 on a real cluster."
    )
    request_timeout: Duration = Field(
        default=30_000,
        description="How long a request waits for a broker before it fails with a clear error.",
    )
    startup_wait: Duration = Field(
        default=0,
        description=(
            "How long a starting service waits for a broker that does not answer, or for an input topic that"
            " does not exist yet, before it gives up. 0ms: it does not wait."
        ),
    )
    extras: KafkaExtras = Field(default_factory=KafkaExtras, description="Raw settings per client.")

    @model_validator(mode="before")
    @classmethod
    def _accept_the_dotted_name(cls, data: Any) -> Any:
        # An unquoted bootstrap.servers is to TOML a table `bootstrap` with the key `servers`, a quoted one is
        # one key.
        if isinstance(data, dict):
            data = dict(data)
            nested = data.pop("bootstrap", None)
            if isinstance(nested, dict) and "servers" in nested:
                data.setdefault("bootstrap_servers", nested["servers"])
            if "bootstrap.servers" in data:
                data.setdefault("bootstrap_servers", data.pop("bootstrap.servers"))
        return data

    @model_validator(mode="after")
    def _sasl_is_complete(self) -> KafkaSettings:
        set_fields = {name for name in _SASL_FIELDS if getattr(self, name) is not None}
        if not self.security_protocol.startswith("SASL_"):
            if set_fields:
                raise ValueError("sasl_* is set but security_protocol is not SASL_PLAINTEXT or SASL_SSL")
        else:
            by_token = self.sasl_mechanism == "OAUTHBEARER"
            needed = (
                "sasl_mechanism",
                *(("sasl_token_file",) if by_token else ("sasl_username", "sasl_password")),
            )
            missing = [name for name in needed if name not in set_fields]
            if missing:
                raise ValueError(f"{self.security_protocol} lacks {' and '.join(missing)}")
            if not set_fields <= set(needed):
                unused = " and ".join(sorted(set_fields - set(needed)))
                raise ValueError(
                    f"{unused} has no meaning with sasl_mechanism {self.sasl_mechanism}: take it out"
                )
        if (self.ssl_certificate is None) != (self.ssl_key is None):
            raise ValueError("ssl_certificate and ssl_key go together")
        return self

    @property
    def who(self) -> str:
        """The user as which the broker sees us, in words."""
        if self.sasl_token_file is not None:
            return f"the user of the token in {self.sasl_token_file}"
        if self.sasl_username is not None:
            return f"user {self.sasl_username}"
        return "an anonymous user" if self.ssl_certificate is None else f"the user of {self.ssl_certificate}"
