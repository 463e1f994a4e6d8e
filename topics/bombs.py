"""Decompression bombs: batches that grow into more than a consumer can hold.

`max.message.bytes` counts compressed bytes. For zstd, Kafka's client (librdkafka) stops at `receive.message.max.bytes` and
reports the batch. For gzip, lz4 and snappy it has no bound: it takes the memory, and a container that has less is killed.
Here the size is found out without the memory.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from evenflow.errors import ServiceError
from evenflow.limits import MAX_RECORD_BYTES
from evenflow.settings import KafkaSettings
from topics.clients import seconds
from topics.offsets import log_ends
from topics.raw_batches import DamagedBatchError, RawBatch, RawReader

log = logging.getLogger(__name__)

_FETCH_BYTES = 4_194_304
_AHEAD_BYTES = 268_435_456
"""Compressed bytes that are looked through in each partition: more than a run had read and not committed when it ended."""
_AHEAD_SECONDS = 60.0


@dataclass(frozen=True)
class Bomb:
    """A batch that grows into more than `most` bytes. first, last: its offsets."""

    first: int
    last: int
    codec: str
    compressed: int
    most: int

    @property
    def why(self) -> str:
        """What is wrong with it, for a person."""
        return (
            f"Decompression bomb ({self.codec}): a batch of {self.compressed:,} bytes grows into more than {self.most:,}, "
            "which is receive.message.max.bytes"
        )


def most_grown(kafka: KafkaSettings) -> int:
    """Into how many bytes a batch may grow: the bound that librdkafka keeps for zstd, here for every codec."""
    return int(kafka.extras.librdkafka.get("receive.message.max.bytes", 4 * MAX_RECORD_BYTES))


def bomb_in(batch: RawBatch, most: int) -> Bomb | None:
    """The batch as a bomb. None if it grows into at most `most` bytes, or if nobody can decompress it."""
    try:
        codec = batch.codec if batch.known else None
        if codec is None or batch.grown(most) <= most:
            return None
    except DamagedBatchError:
        return None
    return Bomb(batch.first, batch.last, codec, len(batch.compressed), most)


def bomb_at(kafka: KafkaSettings, topic: str, partition: int, offset: int) -> Bomb | None:
    """The bomb that holds this offset. None if its batch is none. Raises ServiceError if Kafka does not answer."""
    with RawReader(kafka, topic) as reader:
        fetched = reader.fetch(partition, offset)
    for batch in () if fetched is None else fetched.batches:
        if batch.first <= offset <= batch.last:
            return bomb_in(batch, most_grown(kafka))
    return None


def bombs_ahead(
    kafka: KafkaSettings,
    topic: str,
    offsets: Mapping[int, int],
    *,
    far: int = _AHEAD_BYTES,
    stopping: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
) -> dict[int, Bomb]:
    """By partition, the first bomb at or behind this offset, as far as a run may have come that ended there.

    All partitions are looked through side by side, because there may be no time for all of them to the end. A broker that
    does not answer is a warning: then nothing more is known. far: compressed bytes of each partition. stopping: whether to
    leave it at what is known.
    """
    bombs: dict[int, Bomb] = {}
    deadline = clock() + _AHEAD_SECONDS
    try:
        ends = log_ends(kafka, topic, offsets, timeout=seconds(kafka))
        at, looked = {p: offset for p, offset in sorted(offsets.items()) if offset < ends.get(p, 0)}, 0
        with RawReader(kafka, topic) as reader:
            while at and looked < far and not stopping():
                for partition, offset in list(at.items()):
                    if clock() >= deadline:
                        log.warning("decompression bombs were looked for during %g s only", _AHEAD_SECONDS)
                        return bombs
                    fetched = reader.fetch(partition, offset, most=_FETCH_BYTES)
                    batches = () if fetched is None else fetched.batches
                    bomb = next(filter(None, (bomb_in(batch, most_grown(kafka)) for batch in batches)), None)
                    if bomb is not None:
                        bombs[partition] = bomb
                    if bomb is not None or not batches or batches[-1].last + 1 >= ends[partition]:
                        del at[partition]
                    else:
                        at[partition] = batches[-1].last + 1
                looked += _FETCH_BYTES
    except ServiceError as error:
        log.warning("decompression bombs were not looked for to the end: %s", error)
    return bombs
