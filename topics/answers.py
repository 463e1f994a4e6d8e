"""The answer of a broker to an admin request: a result, None, or an error in our words."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException

from evenflow.errors import ServiceError
from evenflow.settings import KafkaSettings
from topics.clients import seconds, service_error

UNKNOWN_TOPIC = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC})
REFUSED = frozenset({KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED})
NOT_YET = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.FENCED_LEADER_EPOCH,
        # The client says it of `list_offsets`, if it knows no leader of any partition that was asked for.
        KafkaError._NOENT,
    }
)
"""Errors that pass. A broker that has just started, or a topic that was just made,
may not have a known leader yet.
"""
_T = TypeVar("_T")


def result_of(
    future: Future[_T], kafka: KafkaSettings, doing: str, *, absent: frozenset[int] | set[int] = frozenset()
) -> _T | None:
    """Result of an admin future. None if it failed with one of the error codes `absent`.

    doing: what was asked, for the error's text. Raises ServiceError for any other failure. The caller must
    hold the client until here.
    """
    try:
        # The margin lets the client's own timeout come first.
        return future.result(timeout=seconds(kafka) + 5)
    except KafkaException as error:
        if error.args[0].code() in absent:
            return None
        raise service_error(error, kafka, doing) from None
    except TimeoutError:
        raise ServiceError(
            f"{doing}: no answer from {kafka.bootstrap_servers} within {seconds(kafka):g} s",
            hint="is the broker running? see `evenflow doctor`",
        ) from None


def code_of(future: Future[Any]) -> int | None:
    """Kafka's error code of a future that is done. None if the future has a result."""
    error = future.exception()
    return error.args[0].code() if isinstance(error, KafkaException) else None
