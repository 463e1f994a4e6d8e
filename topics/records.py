"""The type of what a consumer gets: a message that has a place in its topic.

confluent-kafka has one type for messages, and in that type the topic, the partition and the offset may be
missing, as they are in a message that is still to be sent. A message from a consumer always has them.
"""

from __future__ import annotations

from typing import Protocol

from confluent_kafka import KafkaError

UNFETCHABLE = frozenset(
    {
        KafkaError._BAD_COMPRESSION,
        KafkaError._BAD_MSG,
        KafkaError._NOT_IMPLEMENTED,
        KafkaError.INVALID_MSG,
        KafkaError.MSG_SIZE_TOO_LARGE,
    }
)
"""Codes of a consumer's error about one batch: it does not decompress, its checksum is wrong, its format is
not known, or it is too large. For a wrong checksum or an unknown format librdkafka goes on behind the batch.
"""


class Record(Protocol):
    """confluent-kafka's Message, as a consumer gives it."""

    def topic(self) -> str: ...
    def partition(self) -> int: ...
    def offset(self) -> int: ...
    def key(self) -> bytes | None: ...
    def value(self) -> bytes | None: ...
    def timestamp(self) -> tuple[int, int]: ...
    def headers(self) -> list[tuple[str, bytes | str | None]] | None: ...
    def error(self) -> KafkaError | None: ...
    def __len__(self) -> int: ...
