"""Was each rejection right, and was everything rejected that had to be?

Each input partition is judged by itself, in offset order. Progress comes from the tuples that were not
rejected. So a wrong rejection is reported once, and does not make later rejections look wrong. Lateness and
jumps have files of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from evenflow.settings import Settings
from partitioner_service.kafka.sink import SKIPPED
from workbench.registered.records import WITHHELD
from workbench.verify.inputs import REASONS, CommittedInput
from workbench.verify.rejected.ends import end_of
from workbench.verify.rejected.jumps import check_jumps
from workbench.verify.rejected.lateness import check_lateness
from workbench.verify.report import Difference, Findings, LostRecords, missed, wrong
from workbench.verify.sql import quoted, scalar, stream


def check_rejections(
    db: duckdb.DuckDBPyConnection,
    settings: Settings,
    committed: Sequence[CommittedInput],
    lost: dict[int, LostRecords],
    findings: Findings,
) -> None:
    """Check everything about the rejected topic but its counters."""
    _foreign(db, findings)
    _sources(db, findings)
    _unreadable(db, settings, findings)
    for state in committed:
        _after_end(db, state, lost.get(state.partition), findings)
        check_jumps(db, settings.query, state, lost.get(state.partition), findings)
    check_lateness(db, settings.query, findings)


def _foreign(db: duckdb.DuckDBPyConnection, findings: Findings) -> None:
    for partition, offset in stream(
        db, "SELECT at_partition, at_offset FROM rejected WHERE partition IS NULL ORDER BY ALL"
    ):
        detail = "a record of the rejected topic that names no record of this input: who else writes there?"
        findings.add(Difference(kind="malformed", detail=detail, partition=partition, offset=offset))
    db.execute("DELETE FROM rejected WHERE partition IS NULL")


def _sources(db: duckdb.DuckDBPyConnection, findings: Findings) -> None:
    """Every rejected record stands for one input record, once, with a known reason, unchanged."""
    for partition, offset, count in stream(
        db, 'SELECT partition, "offset", count(*) FROM rejected GROUP BY ALL HAVING count(*) > 1'
    ):
        findings.add(wrong(partition, offset, f"rejected {count} times"))
    for partition, offset, reason in stream(
        db,
        'SELECT r.partition, r."offset", r.reason FROM rejected r '
        'LEFT JOIN records i ON i.partition = r.partition AND i."offset" = r."offset" '
        'WHERE r.through = r."offset" AND (i.partition IS NULL OR i.marker IS NOT NULL) ORDER BY ALL',
    ):
        findings.add(wrong(partition, offset, f"rejected as {reason}, but there is no such input record"))
    _stretches(db, findings)
    for partition, offset, reason in stream(
        db,
        'SELECT partition, "offset", reason FROM rejected WHERE reason IS NULL OR reason NOT IN '
        f"({', '.join(repr(reason) for reason in REASONS)}) ORDER BY ALL",
    ):
        findings.add(wrong(partition, offset, f"rejected for an unknown reason: {reason!r}"))
    for partition, offset in stream(
        db,
        'SELECT r.partition, r."offset" FROM rejected r '
        'JOIN records i ON i.partition = r.partition AND i."offset" = r."offset" AND i.marker IS NULL '
        "WHERE r.omitted = false AND "
        "(r.key_digest IS DISTINCT FROM md5_number(i.raw_key) OR r.value_digest IS DISTINCT FROM "
        "md5_number(i.raw_value)) ORDER BY ALL",
    ):
        findings.add(wrong(partition, offset, "the rejected record is not the input record unchanged"))


def _stretches(db: duckdb.DuckDBPyConnection, findings: Findings) -> None:
    """Every offset that an order skipped is one of the input, and nothing else stands for it."""
    skips = '(SELECT DISTINCT partition, "offset", through FROM rejected WHERE through > "offset")'
    if not scalar(db, f"SELECT count(*) FROM {skips}"):
        return  # the joins go through all records
    for partition, offset, reason in stream(
        db,
        f'SELECT DISTINCT r.partition, r."offset", r.reason FROM rejected r JOIN {skips} s '
        'ON s.partition = r.partition AND r."offset" > s."offset" AND r."offset" <= s.through ORDER BY ALL',
    ):
        findings.add(wrong(partition, offset, f"rejected as {reason}, and skipped by an order too"))
    for partition, offset, through, count in stream(
        db,
        'SELECT s.partition, s."offset", s.through, coalesce(sum(least(i.through, s.through) '
        '- greatest(i."offset", s."offset") + 1), 0)::BIGINT AS there '
        f"FROM {skips} s LEFT JOIN records i ON i.partition = s.partition AND i.marker IS NULL "
        'AND i."offset" <= s.through AND i.through >= s."offset" '
        'GROUP BY ALL HAVING there <= s.through - s."offset" ORDER BY ALL',
    ):
        gone = through + 1 - offset - count
        findings.add(wrong(partition, offset, f"skipped up to {through}, but {gone} of these are no records"))


def without_schema(db: duckdb.DuckDBPyConnection, settings: Settings) -> int:
    """How many records were rejected because the registry had no schema for us, and can be read now."""
    return (
        int(scalar(db, f"SELECT count(*) FROM strict s WHERE {_WITHOUT_SCHEMA}"))
        if settings.input.registered
        else 0
    )


def withheld(db: duckdb.DuckDBPyConnection, settings: Settings) -> int:
    """How many records were rejected as unreadable whose schema the registry does not hand out to verify."""
    return (
        int(scalar(db, f"SELECT count(*) FROM strict WHERE starts_with(why, {quoted(WITHHELD)})"))
        if settings.input.registered
        else 0
    )


_WITHOUT_SCHEMA = """(readable OR why IS NULL) AND reason = 'unreadable' AND EXISTS (
    FROM rejected r WHERE r.partition = s.partition AND r."offset" = s."offset" AND r.without_schema)"""
"""Such a rejection is no difference. The registry hands the schema out now, and may not have done so when the
record was read."""


def _unreadable(db: duckdb.DuckDBPyConnection, settings: Settings, findings: Findings) -> None:
    but = f"AND NOT ({_WITHOUT_SCHEMA})" if settings.input.registered else ""
    for partition, offset in stream(
        db,
        f"SELECT partition, \"offset\" FROM strict s WHERE readable AND reason = 'unreadable' {but} ORDER"
        " BY ALL",
    ):
        findings.add(wrong(partition, offset, "rejected as unreadable, but it is readable"))
    for partition, offset in stream(
        db,
        "SELECT partition, \"offset\" FROM strict WHERE NOT coalesce(large, false) AND reason = 'too-large'"
        " ORDER BY ALL",
    ):
        findings.add(wrong(partition, offset, "rejected as too-large, but it is not"))
    for partition, offset in stream(
        db,
        'SELECT partition, "offset" FROM strict WHERE NOT coalesce(unmatched, false) AND reason ='
        " 'unmatched' ORDER BY ALL",
    ):
        findings.add(wrong(partition, offset, "rejected as unmatched, but it is not"))
    # A record may be both, if the partitioner need not read all of it to see that it is too large.
    for partition, offset, reason, large, unmatched, why in stream(
        db,
        'SELECT partition, "offset", reason, coalesce(large, false) AS large, coalesce(unmatched, false)'
        f" AS unmatched, why FROM strict s WHERE NOT readable {but} AND NOT coalesce(large AND reason ="
        " 'too-large' OR why IS NOT NULL AND reason = 'unreadable' OR unmatched AND reason = 'unmatched',"
        " false) AND NOT coalesce(NOT large AND reason = 'too-large' OR NOT unmatched AND reason ="
        " 'unmatched', false) ORDER BY ALL",
    ):
        description = (
            "too large"
            if large
            else "without a row in the lookup file"
            if unmatched
            else f"unreadable ({why})"
        )
        if reason is None:
            kind = "too-large" if large else "unmatched" if unmatched else "unreadable"
            detail = f"{description} but not rejected"
            findings.add(Difference(kind=kind, detail=detail, partition=partition, offset=offset))
        else:
            findings.add(wrong(partition, offset, f"rejected as {reason}, but it is {description}"))


def _after_end(
    db: duckdb.DuckDBPyConnection, state: CommittedInput, lost: LostRecords | None, findings: Findings
) -> None:
    end = end_of(db, state.partition)
    last = 2**62 if end is None else end.offset  # 2**62: after every offset
    # If the markers are lost, the first record that was rejected as `after-end` says where the partition
    # ended.
    if end is None and lost is not None and state.ended:
        first = scalar(
            db,
            "SELECT min(\"offset\") FROM records WHERE partition = ? AND reason = 'after-end'",
            [state.partition],
        )
        last = last if first is None else first
    for (offset,) in stream(
        db,
        "SELECT \"offset\" FROM records WHERE partition = ? AND marker IS NULL AND reason = 'after-end' "
        'AND "offset" < ? ORDER BY ALL',
        [state.partition, last],
    ):
        findings.add(wrong(state.partition, offset, "rejected as after-end, but the partition had not ended"))
    for (offset,) in stream(
        db,
        'SELECT "offset" FROM records WHERE partition = ? AND marker IS NULL '
        f"AND reason IS DISTINCT FROM 'after-end' AND reason IS DISTINCT FROM '{SKIPPED}' "
        'AND "offset" > ? ORDER BY ALL',
        [state.partition, last],
    ):
        findings.add(missed(state.partition, offset, "comes after every announced producer had ended"))
