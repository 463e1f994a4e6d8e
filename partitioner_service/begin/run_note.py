"""Where the partitions stood when an instance was killed, for the log of its next start.

A process that runs out of memory while it fetches says nothing any more. So each start leaves a note with the
committed offsets, and each end in order takes it back. A start that finds the note of an unfinished run names
the partitions that have not moved since, because what kills an instance may stand there. They are looked
through for decompression bombs (`topics.batches.bombs`). The note also names partitions in which a bomb is
known, or that could not be looked through, so that the next run looks there before it fetches, however this
one ends.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from evenflow.settings import Settings
from evenflow.text.strict_json import INT64, NotStrict, StrictObject, read_object
from partitioner_service.kafka.side_records import SideRecords
from topics.reader import read_last

log = logging.getLogger(__name__)

_VERSION = 1
_MOST_BYTES = 1_000_000
_MOST_STARTS = 1_000_000
_MOST_NAMED = 20


@dataclass(frozen=True)
class Note:
    """What a note says."""

    runs: int
    """Unfinished runs in a row, the noted one included."""
    at: Mapping[int, int]
    """Partition -> committed offset."""
    look: Mapping[int, int]
    """Partition to look through before it is fetched, wherever it stands -> an offset of it."""

    def encode(self) -> bytes:
        """The note as a record's value."""
        numbers = {"v": _VERSION, "runs": min(self.runs, _MOST_STARTS)}
        parts = {"at": self.at, "look": self.look}
        return json.dumps(
            numbers | {name: {str(p): at for p, at in part.items()} for name, part in parts.items()}
        ).encode()


def parse_run_note(value: bytes | None) -> Note:
    """What a note says. Raises NotStrict."""
    fields = read_object(value, most_bytes=_MOST_BYTES, depth=2)
    fields.whole("v", _VERSION, _VERSION)
    return Note(fields.whole("runs", 0, _MOST_STARTS), _offsets(fields, "at"), _offsets(fields, "look"))


def _offsets(fields: StrictObject, name: str) -> dict[int, int]:
    part = fields.part(name)
    if not all(number.isascii() and number.isdigit() and len(number) < 10 for number in part.fields):
        raise NotStrict("a partition is no number")
    return {int(number): _offset(part, number) for number in part.fields}


def _offset(at: StrictObject, name: str) -> int:
    return at.whole(name, 0, INT64[1])


class RunNote:
    """The note of one instance, a record of `<query>.snapshots`."""

    def __init__(self, settings: Settings, side: SideRecords) -> None:
        self._kafka, self._topic, self._side = settings.kafka, settings.topic("snapshots"), side
        self._instance = settings.partitioner.instance
        self._key = f"run/{self._instance}".encode()
        self._note = Note(0, {}, {})
        self.repeated: frozenset[int] = frozenset()
        """Partitions that have not moved since the last run began, where more than one run in a row did not
        end in order, and partitions that the last run has named. Known once this run begins."""

    def begins(self, offsets: Mapping[int, int]) -> set[int]:
        """Say what the last run left unsaid, and leave the note of this run.
        offsets: committed, by partition.

        Returns the partitions to look through before they are fetched: those that have not moved since the
        last run began, if it did not end in order, and those that it has named.
        """
        last = read_last(self._kafka, self._topic, self._key)
        before = Note(0, {}, {})
        if last is not None and last.value() is not None:
            try:
                before = parse_run_note(last.value())
            except NotStrict as error:
                log.warning("the note %s in %s is not usable: %s", self._key.decode(), self._topic, error)
        still = {p: offset for p, offset in offsets.items() if before.runs and before.at.get(p) == offset}
        if before.runs:
            self._tell(before.runs, still)
        self.repeated = frozenset(before.look) | frozenset(still if before.runs > 1 else ())
        self._note = Note(before.runs + 1, offsets, before.look)
        self._side.note(self._key, self._note.encode())
        return still.keys() | (before.look.keys() & offsets.keys())

    def looked(self, look: Mapping[int, int]) -> None:
        """Name the partitions that the next run has to look through if this one is killed.
        look: an offset of each.
        """
        if look != self._note.look:
            self._note = replace(self._note, look=look)
            self._side.note(self._key, self._note.encode())

    def ends(self, look: Mapping[int, int]) -> None:
        """Take the note back: this run ends in order. look: as of `looked`."""
        self._side.note(self._key, Note(0, {}, look).encode())

    def _tell(self, runs: int, still: Mapping[int, int]) -> None:
        where = ", ".join(f"[{p}] at offset {still[p]}" for p in sorted(still)[:_MOST_NAMED])
        more = f" and {len(still) - _MOST_NAMED} more" if len(still) > _MOST_NAMED else ""
        log.warning(
            "the last %s of instance %s did not end in order: killed, or out of memory? %s; see 'A record"
            " that cannot be fetched' in docs/operations/rejected-records.md",
            "run" if runs == 1 else f"{runs:,} runs",
            self._instance,
            (
                f"Since the last of them began, nothing was committed of {where}{more}"
                if still
                else "All input partitions have moved on since"
            ),
        )
