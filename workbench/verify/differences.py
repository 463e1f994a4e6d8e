"""Differences that a query finds among many rows: all are counted, and the first are kept."""

from __future__ import annotations

from typing import Any

import duckdb

from workbench.verify.report import Difference, Findings, shortened, shown_key
from workbench.verify.sql import scalar


def add_differences(
    db: duckdb.DuckDBPyConnection,
    findings: Findings,
    kind: str,
    select: str,
    *,
    detail: str,
    column: str | None = None,
    window: int = 0,
) -> None:
    """Count what the query finds, and keep the first `found.limit` rows by window, key and offset."""
    count = scalar(db, f"SELECT count(*) FROM ({select})")
    if not count:
        return
    rows: list[tuple[Any, ...]] = db.execute(
        f'SELECT * FROM ({select}) ORDER BY window_end, key, "offset" LIMIT {findings.limit}'
    ).fetchall()
    for key, end, expected, got, partition, offset, *start in rows:
        findings.add(
            Difference(
                kind=kind,
                detail=detail,
                window_start=start[0] if start else None if end is None else end - window,
                window_end=end,
                key=shown_key(key),
                column=column,
                expected=_shown(expected),
                got=_shown(got),
                partition=partition,
                offset=offset,
            )
        )
    findings.count_only(kind, count - len(rows))


def _shown(value: Any) -> int | float | str | None:
    """The value as JSON can hold it. A list becomes text, cut when long."""
    return value if value is None or isinstance(value, int | float | str) else shortened(str(value))
