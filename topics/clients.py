"""confluent-kafka clients that say what is wrong instead of waiting for ever.

Every client proves when it is made that it reaches the broker and may log in. After that, errors that no
retry heals (refused login, fenced producer) are raised as ServiceError from the client's own `poll`,
`consume` or `flush`. librdkafka itself retries after passing outages, bounded by the timeouts set here.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from evenflow.errors import ConfigError, ServiceError
from evenflow.limits import MAX_RECORD_BYTES
from evenflow.settings import KafkaSettings
from evenflow.settings.kafka import librdkafka_config

_ADMINS: dict[str, AdminClient] = {}
"""Admin clients of this process, by their settings."""
_ADMINS_LOCK = threading.Lock()
_LOG = logging.getLogger("evenflow.kafka")
_LOG.addHandler(logging.NullHandler())

_LOG_IN = "check kafka.sasl_mechanism, sasl_username and sasl_password, or sasl_token_file"
_HINTS: dict[int, str] = {
    KafkaError._AUTHENTICATION: _LOG_IN,
    KafkaError.SASL_AUTHENTICATION_FAILED: _LOG_IN,
    KafkaError._SSL: "check kafka.ssl_ca, ssl_certificate and ssl_key",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "ask for an ACL on that topic, or use another user",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "ask for an ACL on that consumer group, or use another user",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "ask for an ACL on the cluster, or use another user",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "ask for an ACL on that transactional.id",
    KafkaError.UNKNOWN_TOPIC_OR_PART: "any evenflow service creates its topics; see `evenflow doctor`",
    KafkaError._UNKNOWN_TOPIC: "any evenflow service creates its topics; see `evenflow doctor`",
    KafkaError._UNKNOWN_PARTITION: "the topic has fewer partitions than that; see `evenflow doctor`",
    KafkaError.MSG_SIZE_TOO_LARGE: (
        f"the topic must allow records of {MAX_RECORD_BYTES} bytes (max.message.bytes); "
        "a producer counts a record before it is compressed, a broker afterwards"
    ),
    KafkaError.INVALID_REPLICATION_FACTOR: "lower kafka.replication_factor, or start more brokers",
}
FENCED = frozenset({KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED})
"""Errors of a transactional producer that say that its id has a newer producer,
or that a transaction timed out.
"""
_NO_TOKEN = "Failed to acquire SASL OAUTHBEARER token"
"""How librdkafka begins when our callback has no token for it. It has the code of a refused log-in."""
_HOPELESS = frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._FATAL})
"""Errors that no retry heals."""


def producer(kafka: KafkaSettings, **config: Any) -> Producer:
    """An idempotent producer.

    config: librdkafka settings with _ or dots in their names. They override ours.
    """
    made: Producer = producer_of(kafka, Producer, **config)
    return made


def producer_of(kafka: KafkaSettings, kind: Callable[[dict[str, Any]], Any], **config: Any) -> Any:
    """As `producer`, but of another kind: a client that is made from the same settings."""
    ours = {
        "message_max_bytes": MAX_RECORD_BYTES,
        "enable_idempotence": True,
        "acks": "all",
        "compression_type": "lz4",
        "linger_ms": 5,
        "queue_buffering_max_kbytes": 262_144,
    }
    return _connected(kafka, kind, ours | config)


def consumer(kafka: KafkaSettings, *, group: str, **config: Any) -> Consumer:
    """A read_committed consumer that commits nothing by itself and never guesses an offset.

    config: librdkafka settings with _ or dots in their names. They override ours.
    """
    # The limit per partition may be below the largest record: a broker sends the first record of a fetch
    # whatever its size.
    ours = {
        "group_id": group,
        "enable_auto_commit": False,
        "enable_auto_offset_store": False,
        "auto_offset_reset": "error",
        "isolation_level": "read_committed",
        "check_crcs": True,
        "fetch_message_max_bytes": 4_194_304,
        "fetch_max_bytes": 2 * MAX_RECORD_BYTES,
        "receive_message_max_bytes": 4 * MAX_RECORD_BYTES,
        "queued_max_messages_kbytes": 65_536,
    }
    return _connected(kafka, Consumer, ours | config)


def admin(kafka: KafkaSettings) -> AdminClient:
    """The admin client of this process for this broker. It is made once and kept for good.

    A client costs three threads and a connection, and it must outlive its futures. Raises ServiceError or
    ConfigError as any client does.
    """
    config_key = repr(sorted(librdkafka_config(kafka).items())) + str(kafka.request_timeout)
    with _ADMINS_LOCK:
        if config_key not in _ADMINS:
            _ADMINS[config_key] = _connected(kafka, AdminClient, {})
        return _ADMINS[config_key]


def flush(client: Producer, kafka: KafkaSettings, *, timeout: float | None = None) -> None:
    """Wait until every record is delivered.

    Raises ServiceError if no record is delivered for `timeout` seconds (default: `kafka.request_timeout`).
    """
    patience = seconds(kafka) if timeout is None else timeout
    left, deadline = len(client), time.monotonic() + patience
    while left:
        now_left = client.flush(min(1.0, patience))
        if now_left < left:
            deadline = time.monotonic() + patience
        elif now_left and time.monotonic() >= deadline:
            raise ServiceError(
                f"{now_left} records are not accepted by {kafka.bootstrap_servers} within {patience:g} s",
                hint="is it running? see `evenflow doctor`",
            )
        left = now_left


def seconds(kafka: KafkaSettings) -> float:
    """`kafka.request_timeout` in seconds."""
    return kafka.request_timeout / 1000


def service_error(error: KafkaException | KafkaError, kafka: KafkaSettings, doing: str) -> ServiceError:
    """A Kafka error in words for a person, with a hint. doing: what was tried."""
    if isinstance(error, KafkaException):
        error = error.args[0]
    if not isinstance(error, KafkaError):
        return ServiceError(f"{doing}: {error}")
    hint = _HINTS.get(
        error.code(), "is it running? `evenflow doctor` checks; `evenflow broker` starts one here"
    )
    return ServiceError(f"{doing} at {kafka.bootstrap_servers}: {error.name()}: {error.str()}", hint=hint)


def _connected(kafka: KafkaSettings, kind: Callable[..., Any], config: dict[str, Any]) -> Any:
    """A client of this kind that has reached its broker. Raises ConfigError or ServiceError."""
    watch = _ErrorWatch(kafka)
    config = {"error_cb": watch, "logger": _LOG} | config
    try:
        client = kind(librdkafka_config(kafka, **config))
    except KafkaException as error:
        raise ConfigError(
            f"Kafka's client refuses its settings: {error.args[0].str()}",
            hint="look at [kafka] and [kafka.extras.librdkafka]",
        ) from None
    _prove(client, kafka, watch)
    return client


def _prove(client: Any, kafka: KafkaSettings, watch: _ErrorWatch) -> None:
    """Ask for the brokers, in short steps, so that a refused login is noticed at once.

    Raises ServiceError.
    """
    deadline = time.monotonic() + seconds(kafka)
    while True:
        step = max(0.05, min(1.0, deadline - time.monotonic()))
        try:
            client.list_topics(timeout=step)
            return
        except KafkaException as error:
            # `poll` is what runs the error callback, which notes a refused login.
            if not isinstance(client, Consumer):
                client.poll(0)
            if watch.hopeless is not None:
                raise watch.hopeless from None
            if time.monotonic() >= deadline:
                last = watch.last or error
                raise service_error(last, kafka, f"no broker answers within {seconds(kafka):g} s") from None


class _ErrorWatch:
    """Error callback of one client. It remembers the last error, and raises errors that no retry heals.

    librdkafka calls it inside `poll`, `consume` or `flush`, and that call raises what the callback raises.
    """

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka = kafka
        self.last: KafkaError | None = None
        self.hopeless: ServiceError | None = None

    def __call__(self, error: KafkaError) -> None:
        _LOG.debug("kafka: %s", error)
        self.last = error
        if _NO_TOKEN in error.str():  # the file may hold a token again when librdkafka reads it next, in 10 s
            return
        if error.fatal() or error.code() in _HOPELESS:
            self.hopeless = service_error(error, self._kafka, "refused by the broker")
            raise self.hopeless
