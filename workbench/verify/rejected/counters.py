"""read = routed + rejected + filtered, and the committed progress of each input partition.

The markers' tuple counts are a lower bound. A partition ends when every announced producer has ended,
whatever was written before. A replay without an end, or a replay that was interrupted, leaves tuples that no
marker announces. The partitioner reads and counts these tuples like all others, so they belong to the
results, and verify only says how many they are. Fewer tuples than announced are a difference: some were lost
on the way.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from evenflow.settings import Query
from workbench.verify.inputs import END_MARK, NO_MARK, CommittedInput
from workbench.verify.rejected.delays import Delays
from workbench.verify.rejected.ends import end_of
from workbench.verify.report import Counters, Difference, Findings, LostRecords
from workbench.verify.sql import OFFSETS, SPAN, scalar


def check_counters(
    db: duckdb.DuckDBPyConnection,
    query: Query,
    committed: Sequence[CommittedInput],
    lost: dict[int, LostRecords],
    findings: Findings,
) -> tuple[Counters, ...]:
    """Count the tuples below each committed offset and compare with what was committed with it."""
    counted = {
        partition: (read, rejected)
        for partition, read, rejected in db.execute(
            f"SELECT partition, {OFFSETS}, coalesce(sum({SPAN}) FILTER (reason IS NOT NULL), 0)::BIGINT"
            " FROM records WHERE marker IS NULL GROUP BY partition"
        ).fetchall()
    }
    filtered = dict(
        db.execute(
            "SELECT partition, count(*) FROM readable WHERE reason IS NULL AND NOT kept GROUP BY partition"
        ).fetchall()
    )
    largest = {
        partition: (time, own)
        for partition, time, own in db.execute(
            "SELECT partition, max(time), max(own) FROM marked WHERE reason IS NULL GROUP BY partition"
        ).fetchall()
    }
    all_counters = []
    for state in committed:
        read, rejected = counted.get(state.partition, (0, 0))
        loss = lost.get(state.partition)
        counters = Counters(
            partition=state.partition,
            offset=state.offset,
            read=read,
            routed=read - rejected - filtered.get(state.partition, 0),
            rejected=rejected,
            filtered=filtered.get(state.partition, 0),
            committed_read=state.read,
            committed_routed=state.routed,
            committed_rejected=state.rejected,
            committed_filtered=state.filtered,
            ended=state.ended,
            unannounced=_unannounced(db, state, loss, findings),
        )
        _compare(counters, loss, findings)
        _check_state(db, query, state, largest.get(state.partition, (None, None)), loss, findings)
        all_counters.append(counters)
    return tuple(all_counters)


def _compare(counters: Counters, lost: LostRecords | None, findings: Findings) -> None:
    """Compare what is there with what was counted. If the partition has lost tuples, less may be there."""
    for name in ("read", "routed", "rejected", "filtered"):
        recount, committed = getattr(counters, name), getattr(counters, f"committed_{name}")
        if recount > committed or (recount < committed and lost is None):
            findings.add(
                _off("counters", counters.partition, name, recount, committed, "the committed counter is off")
            )
    total = counters.committed_routed + counters.committed_rejected + counters.committed_filtered
    if counters.committed_read != total:
        detail = "committed read is not routed + rejected + filtered"
        findings.add(_off("counters", counters.partition, "read", total, counters.committed_read, detail))


def _unannounced(
    db: duckdb.DuckDBPyConnection, state: CommittedInput, lost: LostRecords | None, findings: Findings
) -> int:
    """Tuples of an ended partition beyond what its producers announced."""
    end = end_of(db, state.partition)
    if end is None:
        return 0
    tuples = scalar(
        db,
        f'SELECT {OFFSETS} FROM records WHERE marker IS NULL AND partition = ? AND "offset" < ?',
        [state.partition, end.offset],
    )
    tuples += 0 if lost is None else lost.tuples
    # Producers also count what they wrote before the place where the query began: at most `begin` records.
    if tuples + state.begin < end.announced:
        detail = "the producers' markers announce more tuples than the partition holds"
        findings.add(_off("counters", state.partition, "tuples", end.announced, tuples, detail))
    return max(0, tuples - end.announced)


def _check_state(
    db: duckdb.DuckDBPyConnection,
    query: Query,
    state: CommittedInput,
    largest: tuple[int | None, int | None],
    lost: LostRecords | None,
    findings: Findings,
) -> None:
    """Compare the committed maximum, mark and end with those that follow from the records.

    largest: the largest event time (ms) of the accepted records, and the largest mark that one of them gave.
    """
    maximum, own = largest
    if state.began_again not in (None, state.begin):
        detail = "the committed state begins elsewhere than the query did: what lies between may be lost"
        findings.add(_off("state", state.partition, "begin", state.begin, state.began_again, detail))
    # If a lost tuple can have had the largest event time, `until` is the committed maximum itself.
    if state.max_time not in (maximum, None if lost is None else lost.until):
        findings.add(
            _off("state", state.partition, "max_time", maximum, state.max_time, "the committed maximum")
        )
    ended = end_of(db, state.partition) is not None
    if ended != state.ended and (ended or lost is None):  # the markers may be lost
        detail = "whether the partition has ended"
        findings.add(_off("state", state.partition, "ended", str(ended), str(state.ended), detail))
    marks = [own, state.idle_mark]
    if lost is not None and state.max_time is not None:
        marks += [state.max_time - Delays(query, state).last, state.floor]
    mark = max((candidate for candidate in marks if candidate is not None), default=NO_MARK)
    if ended or (lost is not None and state.ended):
        mark = END_MARK
    if mark != state.mark:
        findings.add(_off("state", state.partition, "mark", mark, state.mark, "the committed mark"))


def _off(
    kind: str, partition: int, name: str, expected: int | str | None, got: int | str | None, detail: str
) -> Difference:
    return Difference(kind=kind, detail=detail, partition=partition, column=name, expected=expected, got=got)
