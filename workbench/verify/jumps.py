"""Jumps, replayed tuple by tuple: which tuples are too far ahead, and which of those are confirmed."""

from __future__ import annotations

import duckdb

from evenflow.settings import Query
from workbench.verify.lost import Lost
from workbench.verify.report import Findings, missed, wrong
from workbench.verify.sql import stream


def check_jumps(
    db: duckdb.DuckDBPyConnection, query: Query, partition: int, lost: Lost | None, found: Findings
) -> None:
    """Check which tuples were rejected as jumps.

    A jump is confirmed if the last consecutive tuples that are too far ahead lie within `max_jump` of each other. If
    tuples were lost, nothing is checked until progress is known again, that is until an accepted tuple is no earlier
    than any lost tuple.
    """
    if query.max_jump is None:
        for (offset,) in stream(
            db, "SELECT \"offset\" FROM readable WHERE reason = 'jump' AND partition = ?", [partition]
        ):
            found.add(wrong(partition, offset, "rejected as jump, but max_jump is off"))
        return
    progress: int | None = None
    run: list[int] = []
    known = lost is None
    for offset, time, reason in stream(
        db,
        'SELECT "offset", time, reason FROM readable WHERE partition = ? '
        "AND (reason IS NULL OR reason NOT IN ('unreadable', 'too-large', 'ahead')) ORDER BY \"offset\"",
        [partition],
    ):
        jump = progress is None or time - progress > query.max_jump
        if jump:
            run = [*run, time][-query.jump_confirmations :]
            jump = len(run) < query.jump_confirmations or max(run) - min(run) > query.max_jump
        if not jump:
            run = []
        if known and jump and reason != "jump":
            detail = f"a jump from {progress} to {time} that nothing had confirmed"
            found.add(missed(partition, offset, detail))
        if known and not jump and reason == "jump":
            detail = f"rejected as jump, but {time} is no unconfirmed jump from {progress}"
            found.add(wrong(partition, offset, detail))
        # What the partitioner did counts here, not what it should have done: so an error is reported once.
        if reason is None:
            progress = time if progress is None else max(progress, time)
            if lost is not None and not known and (lost.until is None or progress >= lost.until):
                known, run = True, []
