"""Where the partitions stood when an instance was killed, for the log of its next start.

A process that runs out of memory while it fetches says nothing any more. So each start leaves a note with the
committed offsets, and each end in order takes it back. A start that finds the note of an unfinished run names the
partitions that have not moved since, because what kills an instance may stand there. They are looked through for
decompression bombs (`topics.bombs`). A run that ends in order with bombs before it leaves their partitions in its note,
so that the next one looks there again before it fetches.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping

from evenflow.settings import Settings
from evenflow.strict_json import INT64, NotStrict, StrictObject, read_object
from partitioner_service.records import SideRecords
from topics.reader import read_last

log = logging.getLogger(__name__)

_VERSION = 1
_MOST_BYTES = 1_000_000
_MOST_STARTS = 1_000_000
_MOST_NAMED = 20


def parse_run_note(value: bytes | None) -> tuple[int, dict[int, int]]:
    """What a note says: unfinished runs in a row, the noted one included, and offset by partition.

    Of a run that ended in order, the partitions are those that stood before a bomb. Raises NotStrict.
    """
    fields = read_object(value, most_bytes=_MOST_BYTES, depth=2)
    fields.whole("v", _VERSION, _VERSION)
    runs, at = fields.whole("runs", 0, _MOST_STARTS), fields.part("at")
    if not all(name.isascii() and name.isdigit() and len(name) < 10 for name in at.fields):
        raise NotStrict("a partition is no number")
    return runs, {int(name): _offset(at, name) for name in at.fields}


def _offset(at: StrictObject, name: str) -> int:
    return at.whole(name, 0, INT64[1])


class RunNote:
    """The note of one instance, a record of `<query>.snapshots`."""

    def __init__(self, settings: Settings, side: SideRecords) -> None:
        self._kafka, self._topic, self._side = settings.kafka, settings.topic("snapshots"), side
        self._instance = settings.partitioner.instance
        self._key = f"run/{self._instance}".encode()

    def begins(self, offsets: Mapping[int, int]) -> set[int]:
        """Say what the last run left unsaid, and leave the note of this run. offsets: committed, by partition.

        Returns the partitions that have not moved since the last run began, if it did not end in order, and those that
        stood before a bomb when it ended.
        """
        last = read_last(self._kafka, self._topic, self._key)
        runs, before = 0, dict[int, int]()
        if last is not None and last.value() is not None:
            try:
                runs, before = parse_run_note(last.value())
            except NotStrict as error:
                log.warning("the note %s in %s is not usable: %s", self._key.decode(), self._topic, error)
        if runs:
            self._tell(runs, before, offsets)
        at = {str(partition): offset for partition, offset in offsets.items()}
        note = {"v": _VERSION, "runs": min(runs + 1, _MOST_STARTS), "at": at}
        self._side.note(self._key, json.dumps(note).encode())
        # Behind an end in order, what the note has are the partitions that stood before a bomb, wherever they stand now.
        return {p for p, offset in offsets.items() if p in before and (not runs or before[p] == offset)}

    def ends(self, bombs: Mapping[int, int]) -> None:
        """Take the note back: this run ends in order. bombs: offset by partition."""
        at = {str(partition): offset for partition, offset in bombs.items()}
        self._side.note(self._key, json.dumps({"v": _VERSION, "runs": 0, "at": at}).encode())

    def _tell(self, runs: int, before: Mapping[int, int], offsets: Mapping[int, int]) -> None:
        still = sorted(p for p, offset in offsets.items() if before.get(p) == offset)
        where = ", ".join(f"[{p}] at offset {offsets[p]}" for p in still[:_MOST_NAMED])
        more = f" and {len(still) - _MOST_NAMED} more" if len(still) > _MOST_NAMED else ""
        log.warning(
            "the last %s of instance %s did not end in order: killed, or out of memory? %s; see 'A record that cannot "
            "be fetched' in docs/operations.md",
            "run" if runs == 1 else f"{runs:,} runs",
            self._instance,
            f"Since the last of them began, nothing was committed of {where}{more}"
            if still
            else "All input partitions have moved on since",
        )
