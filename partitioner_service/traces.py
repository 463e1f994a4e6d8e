"""What a query's own topics tell of how far its input was read: frames, the marks that they tell, rejected records.

All of a block becomes visible in one transaction with its offsets. So whatever is visible here was committed, and nothing
before it is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import methodcaller
from typing import NamedTuple

from evenflow.errors import DataLossError
from evenflow.settings import Settings
from evenflow.windows import END_MARK
from evenflow.wire import decode_frame
from partitioner_service.sink import CLOCK, MARK, REASON, SKIPPED, SOURCE, THROUGH
from topics.reader import read_range
from topics.records import Record
from topics.state import TopicState

_VALUE = methodcaller("value")


class Ruling(NamedTuple):
    """Why an input record was rejected.

    mark, clock (ms): what it was held against, None if the record names none. through: the last offset that was skipped
    by an order that began here, None for any other reason.
    """

    reason: str
    mark: int | None
    clock: int | None
    through: int | None = None


@dataclass
class Routed:
    """What the routed frames tell, by input partition.

    routed: the offset behind the last record that a frame holds. reached: the offset up to which everything was read.
    marks: the largest mark (ms) that was told, without those that say that the partition has ended. lanes: the routed
    partitions in which there is a word about the input partition.
    """

    routed: dict[int, int] = field(default_factory=dict)
    reached: dict[int, int] = field(default_factory=dict)
    marks: dict[int, int] = field(default_factory=dict)
    lanes: dict[int, set[int]] = field(default_factory=dict)

    def _note(self, partition: int, offset: int, worker: int) -> None:
        self.reached[partition] = max(self.reached.get(partition, 0), offset)
        self.lanes.setdefault(partition, set()).add(worker)

    def add(self, worker: int, data: bytes, *, fingerprint: str) -> None:
        """Take a frame of this worker. Raises ProtocolError or IncompatibleStateError for one that is not ours."""
        header = decode_frame(data, fingerprint=fingerprint).header
        for partition, _, last in header.offsets.tolist():
            self._note(partition, last + 1, worker)
            self.routed[partition] = max(self.routed.get(partition, 0), last + 1)
        for partition, mark, reached in header.told.tolist():
            self._note(partition, reached, worker)
            if mark < END_MARK:
                self.marks[partition] = max(self.marks.get(partition, mark), mark)


def read_routed(settings: Settings) -> Routed:
    """Read all routed frames that are left."""
    found = Routed()
    for block in read_range(settings.kafka, settings.topic("routed")):
        for record in block:
            found.add(record.partition(), _VALUE(record) or b"", fingerprint=settings.fingerprint)
    return found


def refuse_trimmed(routed: TopicState, found: Routed, ends: Mapping[int, int]) -> None:
    """Raise DataLossError if deleted frames can have told of more than the frames that are left.

    Within a routed partition the offsets of an input partition only grow. So a deleted frame told less than any that is
    left in the same routed partition. ends: where the logs of the input partitions in question end.
    """
    trimmed = {worker for worker, first in routed.begin.items() if first > 0}
    doubtful = sorted(
        partition
        for partition, end in ends.items()
        if trimmed - found.lanes.get(partition, set()) and found.reached.get(partition, 0) < end
    )
    if doubtful:
        raise DataLossError(
            f"retention has deleted frames of {routed.name}, and those that are left do not tell how far the input "
            f"partitions {doubtful} were read",
            hint="see 'Rebuild after data loss' in docs/operations.md: a query of another name computes results anew",
        )


def read_rejected(settings: Settings, rejected: TopicState, partition: int) -> dict[int, Ruling]:
    """The rejections of an input partition by offset.

    Memory: about 300 bytes for each. Records that name no record of this partition are not ours.
    """
    where = partition % rejected.partitions
    others = {other: first for other, first in rejected.begin.items() if other != where}
    found: dict[int, Ruling] = {}
    for block in read_range(settings.kafka, rejected.name, end=others):
        found.update(_rulings(block, f"{settings.topic('input')}:{partition}:"))
    return found


def _rulings(block: list[Record], ours: str) -> Iterator[tuple[int, Ruling]]:
    for record in block:
        # An input record may have been rejected elsewhere before. Of several headers ours are the last.
        headers = {name: _text(value) for name, value in record.headers() or ()}
        source = headers.get(SOURCE, "")
        offset = _whole(source.removeprefix(ours)) if source.startswith(ours) else None
        if offset is not None and offset >= 0:
            reason = headers.get(REASON, "")
            through = max(offset, _whole(headers.get(THROUGH)) or offset) if reason == SKIPPED else None
            yield offset, Ruling(reason, _whole(headers.get(MARK)), _whole(headers.get(CLOCK)), through)


def _text(value: bytes | str | None) -> str:
    return value if isinstance(value, str) else (value or b"").decode("utf-8", "replace")


def _whole(text: str | None) -> int | None:
    """The number in this header. None if it is missing, or no number of 64 bits."""
    digits = (text or "").removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        return None
    number = int(text or "")
    return number if -(2**63) <= number < 2**63 else None
