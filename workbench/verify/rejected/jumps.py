"""Jumps, replayed tuple by tuple: which tuples are too far ahead, and which of those are confirmed."""

from __future__ import annotations

from bisect import bisect_right

import duckdb

from evenflow.settings import Query
from workbench.verify.inputs import CommittedInput
from workbench.verify.report import Findings, LostRecords, missed, wrong
from workbench.verify.sql import stream


class _JumpLimits:
    """Which `max_jump` (ms) holds at which offset of an input partition."""

    def __init__(self, query: Query, state: CommittedInput) -> None:
        self._offsets = [offset for offset, _ in state.max_jumps]
        self._jumps = [query.first_max_jump, *(jump for _, jump in state.max_jumps)]

    @property
    def always_off(self) -> bool:
        return all(jump is None for jump in self._jumps)

    def at(self, offset: int) -> int | None:
        """None: off."""
        return self._jumps[bisect_right(self._offsets, offset)]


def check_jumps(
    db: duckdb.DuckDBPyConnection,
    query: Query,
    state: CommittedInput,
    lost: LostRecords | None,
    findings: Findings,
) -> None:
    """Check which tuples of an input partition were rejected as jumps.

    Each tuple is judged by the `max_jump` that held at its offset. A jump is confirmed if the last
    consecutive tuples that are too far ahead lie within `max_jump` of each other. If tuples were lost,
    nothing is checked until progress is known again, that is until an accepted tuple is no earlier than any
    lost tuple.
    """
    partition, in_force = state.partition, _JumpLimits(query, state)
    if in_force.always_off:
        for (offset,) in stream(
            db, "SELECT \"offset\" FROM readable WHERE reason = 'jump' AND partition = ?", [partition]
        ):
            findings.add(wrong(partition, offset, "rejected as jump, but max_jump is off"))
        return
    progress: int | None = None
    run: list[int] = []
    certain = lost is None
    for offset, time, reason in stream(
        db,
        'SELECT "offset", time, reason FROM readable WHERE partition = ? AND (reason IS NULL OR reason NOT'
        " IN ('unreadable', 'unmatched', 'too-large', 'ahead')) ORDER BY \"offset\"",
        [partition],
    ):
        most = in_force.at(offset)
        jump = most is not None and (progress is None or time - progress > most)
        if most is not None and jump:
            run = [*run, time][-query.jump_confirmations :]
            jump = len(run) < query.jump_confirmations or max(run) - min(run) > most
        if not jump:
            run = []
        if certain and jump and reason != "jump":
            detail = f"a jump from {progress} to {time} that nothing had confirmed"
            findings.add(missed(partition, offset, detail))
        if certain and not jump and reason == "jump":
            detail = f"rejected as jump, but {time} is no unconfirmed jump from {progress}"
            findings.add(wrong(partition, offset, detail))
        # What the partitioner did counts here, not what it should have done: so an error is reported once.
        if reason is None:
            progress = time if progress is None else max(progress, time)
            if lost is not None and not certain and (lost.until is None or progress >= lost.until):
                certain, run = True, []
