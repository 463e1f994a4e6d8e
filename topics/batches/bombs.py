"""Decompression bombs: batches that grow into more than a consumer can hold.

`max.message.bytes` counts compressed bytes. For zstd, Kafka's client (librdkafka) stops at
`receive.message.max.bytes` and reports the batch. For gzip, lz4 and snappy it has no bound: it takes the
memory, and a container that has less is killed. Here the size is found out without the memory.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from evenflow.errors import ServiceError
from evenflow.limits import MAX_RECORD_BYTES
from evenflow.settings import KafkaSettings
from topics.batches.raw_batches import DamagedBatchError, RawBatch, RawReader, RawRecord
from topics.clients import seconds
from topics.offsets import log_ends

log = logging.getLogger(__name__)

_FETCH_BYTES = 4_194_304
_AHEAD_BYTES = 268_435_456
"""Compressed bytes that are looked through in each partition: more than a run had read and not committed
when it ended.
"""
_AHEAD_SECONDS = 60.0
_SUSPECT_BYTES = 16_777_216
_HEAVY = 32
_RECORD_BYTES, _HEADER_BYTES = 400, 64
"""What a record and a header take while librdkafka or we hold them, however short they are."""


@dataclass(frozen=True)
class Bomb:
    """A batch that grows into more than `most` bytes."""

    first: int
    """First offset of the batch."""
    last: int
    """Last offset of the batch."""
    codec: str
    """Compression of the batch, such as "gzip"."""
    compressed: int
    """Bytes of the batch as the broker holds it."""
    most: int
    """Into how many bytes a batch may grow, `receive.message.max.bytes`."""

    def is_behind(self, offset: int) -> bool:
        """Whether a partition that stands at this offset is past it."""
        return offset > self.last

    @property
    def why(self) -> str:
        """What is wrong with it, for a person."""
        return (
            f"Decompression bomb ({self.codec}): a batch of {self.compressed:,} bytes grows into more than"
            f" {self.most:,}, which is receive.message.max.bytes"
        )


@dataclass(frozen=True)
class Suspect:
    """The beginning of what is left of a partition. Runs ended there again and again, or there was no time to
    look for bombs in it.

    Several batches of one fetch, or the headers of many records, may take more memory together than there is:
    librdkafka decompresses a whole fetch at once. Batch by batch they are read in little memory, for as long
    as `Calm` asks for it. A bomb among them is known when its turn comes.
    """

    first: int
    """Offset at which it begins."""
    reach: int
    """Offset up to which it is read batch by batch in any case."""

    def is_behind(self, offset: int) -> bool:
        """False: not the offset decides, but what came before it (`Calm`)."""
        return False


def is_heavy(batch: RawBatch) -> bool:
    """Whether the batch takes 32 times its size in memory. False if nobody can decompress it."""
    most = _HEAVY * len(batch.data)
    try:
        return batch.is_version_2 and batch.grown(most) + _RECORD_BYTES * max(0, batch.count) > most
    except DamagedBatchError:
        return False


class Calm:
    """Whether the batches of a partition have become ordinary ones again: none of the last 16 MB, as the
    broker holds them, took 32 times its size. Records and headers count as what they take in memory.
    """

    def __init__(self) -> None:
        self._bytes = 0

    def add(self, size: int, *, heavy: bool) -> None:
        """Note the next batch: its bytes, and whether `is_heavy`."""
        self._bytes = 0 if heavy else self._bytes + size

    def add_headers(self, headers: int, batch: RawBatch) -> None:
        """Note how many headers the records of the newest batch have."""
        if headers * _HEADER_BYTES > _HEAVY * len(batch.data):
            self._bytes = 0

    def __bool__(self) -> bool:
        return self._bytes >= _SUSPECT_BYTES


def most_grown(kafka: KafkaSettings) -> int:
    """Into how many bytes a batch may grow: the bound that librdkafka keeps for zstd, here for every
    codec.
    """
    return int(kafka.extras.librdkafka.get("receive.message.max.bytes", 4 * MAX_RECORD_BYTES))


def bomb_in(batch: RawBatch, most: int) -> Bomb | None:
    """The batch as a bomb. None if it grows into at most `most` bytes, or if nobody can decompress it."""
    try:
        codec = batch.codec if batch.is_version_2 else None
        if codec is None or batch.grown(most) <= most:
            return None
    except DamagedBatchError:
        return None
    return Bomb(batch.first, batch.last, codec, len(batch.compressed), most)


def unreadable_at(
    kafka: KafkaSettings, topic: str, partition: int, offset: int
) -> tuple[int, int, str] | None:
    """First and last offset of the batch that holds this offset, and why it is a bomb or no records can be
    had of it.

    None if there is no such batch. Raises ServiceError if Kafka does not answer.
    """
    with RawReader(kafka, topic) as reader:
        fetched = reader.fetch(partition, offset)
    if (
        fetched is None
        or not fetched.batches
        or not fetched.batches[0].first <= offset <= fetched.batches[0].last
    ):
        return None
    batch, aborted = next(fetched.verdicts)
    most = most_grown(kafka)
    bomb = bomb_in(batch, most)
    if bomb is not None:
        return bomb.first, bomb.last, bomb.why
    try:
        for _ in batch.records(most, aborted=aborted):
            pass
    except DamagedBatchError as error:
        return batch.first, batch.last, str(error)
    return None


def raw_records(
    reader: RawReader,
    partition: int,
    begin: int,
    end: int,
    *,
    kafka: KafkaSettings,
    most: int,
    stopping: Callable[[], bool] = lambda: False,
) -> Iterator[RawRecord]:
    """The committed records between these offsets, or up to a batch
    of which none can be had (DamagedBatchError).

    most: bytes of a fetch. stopping: whether to leave it at what has come, asked before each fetch and batch
    and within large ones. Raises ServiceError if Kafka does not answer.
    """
    offset = begin
    while offset < end and not stopping():
        fetched = reader.fetch(partition, offset, most=most)
        if fetched is None or not fetched.batches:
            return
        for batch, aborted in fetched.verdicts:
            if stopping():
                return
            grown = most_grown(kafka)
            for record in batch.records(grown, aborted=aborted, begin=begin, stopping=stopping):
                if record.offset >= end:
                    return
                yield record
        offset = fetched.batches[-1].last + 1  # not the last record: compaction and markers leave gaps


@dataclass(frozen=True)
class Lookahead:
    """What lies ahead."""

    bombs: Mapping[int, Bomb]
    """Partition -> the first bomb in it."""
    suspects: Mapping[int, Suspect]
    """Partition -> what stands first in it. Of partitions that were asked about, and of those for which there
    was no time. None of them has a known bomb."""
    unfinished: Mapping[int, int]
    """Partition -> the offset from which on nobody has looked. Empty if all were looked through."""


def bombs_ahead(
    kafka: KafkaSettings,
    topic: str,
    offsets: Mapping[int, int],
    *,
    repeated: Collection[int] = (),
    stopping: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
) -> Lookahead:
    """Look for bombs at and behind these offsets (by partition),
    as far as a run may have come that ended there.

    All partitions are looked through side by side, because there may be no time for all of them to the end:
    of the others, suspects are wanted, too. A broker that does not answer is a warning, and its partitions
    are no suspects: batch by batch they could not be read either. repeated: the partitions on which more than
    one run in a row has ended. Of these, suspects are wanted up to the last batch that takes much more memory
    than its size. stopping: whether to leave it at what is known.
    """
    bombs: dict[int, Bomb] = {}
    suspects: dict[int, Suspect] = {}
    at = dict(sorted(offsets.items()))
    deadline = clock() + _AHEAD_SECONDS
    try:
        ends = log_ends(kafka, topic, offsets, timeout=seconds(kafka))
        # A partition whose leader does not answer is looked at: it is absent from `ends`.
        at, looked = {p: offset for p, offset in at.items() if offset < ends.get(p, offset + 1)}, 0
        with RawReader(kafka, topic) as reader:
            while at and looked < _AHEAD_BYTES and not stopping():
                silent = True
                for partition, offset in list(at.items()):
                    fetched = reader.fetch(partition, offset, most=_FETCH_BYTES)
                    batches = () if fetched is None else fetched.batches
                    # An answer may also be empty because the broker makes its clients wait (a quota).
                    over = fetched is None or (not batches and fetched.stable <= offset)
                    silent = silent and not batches and not over
                    for batch in batches or (None,):
                        # A batch may take a second, and a fetch may have hundreds.
                        if clock() >= deadline:
                            log.warning(
                                "decompression bombs were looked for during %g s only; what nobody has looked"
                                " at is read batch by batch",
                                _AHEAD_SECONDS,
                            )
                            late = {p: Suspect(offsets[p], next_offset) for p, next_offset in at.items()}
                            return Lookahead(bombs, _without(suspects | late, bombs), at)
                        if batch is None:
                            break
                        bomb = bomb_in(batch, most_grown(kafka))
                        if bomb is not None:
                            bombs[partition] = bomb
                            break
                        if partition in repeated and is_heavy(batch):
                            suspects[partition] = Suspect(offsets[partition], batch.last)
                        at[partition] = batch.last + 1
                    if partition in bombs or over or at[partition] >= ends.get(partition, 0):
                        del at[partition]
                looked += 0 if silent else _FETCH_BYTES
    except ServiceError as error:
        log.warning("decompression bombs were not looked for to the end: %s", error)
        return Lookahead(bombs, _without(suspects, bombs), at)
    return Lookahead(bombs, _without(suspects, bombs), at if stopping() else {})


def _without(suspects: Mapping[int, Suspect], bombs: Collection[int]) -> dict[int, Suspect]:
    return {partition: suspect for partition, suspect in suspects.items() if partition not in bombs}
