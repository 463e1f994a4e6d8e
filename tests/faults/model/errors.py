"""Kafka's errors as librdkafka gives them to a program."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException


class Refused(Exception):
    """The broker refuses a request. code: Kafka's number of the error."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def kafka_error(
    code: int, text: str = "", *, fatal: bool = False, retriable: bool = False, abort: bool = False
) -> KafkaException:
    """The exception that a client raises. abort: the transaction has to be aborted."""
    return KafkaException(
        KafkaError(code, text or None, fatal=fatal, retriable=retriable, txn_requires_abort=abort)
    )


def timed_out() -> KafkaException:
    """No answer came."""
    return kafka_error(KafkaError._TIMED_OUT, "Local: Timed out")


def timed_out_may_retry() -> KafkaException:
    """No answer came to a call about a transaction. The call may be repeated."""
    return kafka_error(KafkaError._TIMED_OUT, "Local: Timed out", retriable=True)
