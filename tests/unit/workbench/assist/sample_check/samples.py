"""Samples of topics as the tests of the look write them down."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from evenflow.settings import Settings
from workbench.assist.findings import Finding
from workbench.assist.sample_check.report import SampleReport, check_sample
from workbench.assist.sample_check.sample import Stretch, TopicRecords

NOW = 1_800_000_000_000
"""Early in 2027."""


def settings(**parts: Any) -> Settings:
    """A query over orders: key user, time at, sum of amount."""
    query = {"name": "q", "key": "user", "time": "at", "window": "1s", "aggregates": {"s": "sum(amount)"}}
    return Settings(query=query | parts.pop("query", {}), **parts)


def order(number: int, **other: Any) -> dict[str, Any]:
    """The number-th order: one every 10 ms, of ten users."""
    return {"user": f"u{number % 10}", "amount": number / 4, "at": NOW - 1_000_000 + 10 * number} | other


def sample(
    *partitions: Iterable[Any], keys: Sequence[bytes] | None = None, ended: bool = False
) -> TopicRecords:
    """Records (rows, or bytes as they are) of each partition."""
    stretches = []
    for number, rows in enumerate(partitions):
        values = [row if isinstance(row, bytes | None) else json.dumps(row).encode() for row in rows]
        stretch = Stretch(number, len(values), ended=ended, values=values)
        stretch.keys = list(keys) if keys is not None else [None] * len(values)
        stretch.timestamps = [NOW] * len(values)
        stretch.offsets = list(range(len(values)))
        stretches.append(stretch)
    return TopicRecords("orders", tuple(stretches))


def look(records: TopicRecords, **parts: Any) -> SampleReport:
    """A look with the settings of `settings(**parts)`."""
    return check_sample(settings(**parts), records, now=NOW)


def named(found: SampleReport, name: str) -> list[Finding]:
    """The findings of this name."""
    return [finding for finding in found.findings if finding.name == name]
