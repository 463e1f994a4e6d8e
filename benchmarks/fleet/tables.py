"""The tables of courses: how level windows are around each event, over the seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.fleet.course import Levels, levels
from benchmarks.pages.tables import table

Rows = Sequence[Mapping[str, Any]]
_HEAD = (
    "window imbalance: six slides before, mean",
    "greatest after",
    "from the seventh slide on, mean",
    "slides until level again",
    "without the floor",
)
_DIGITS = ((1e-3, 5), (1e-2, 4))
"""Below so much, an imbalance has so many digits behind the point."""


def instances_table(rows: Rows) -> str:
    """A row for each partitioner and event of `service-instances`."""
    kinds = dict.fromkeys((row["title"], event) for row in rows for event, at in row["events"].items() if at)
    return table(
        ("partitioner", "event", "runs", *_HEAD),
        [
            (
                f"`{title}`",
                event,
                len(same := _titled(rows, title)),
                *_cells(levels(row, event) for row in same),
            )
            for title, event in kinds
        ],
    )


def shift_table(rows: Rows) -> str:
    """A row for each partitioner and number of instances of `service-shift`."""
    return table(
        ("partitioner", "runs", "rounds of the exchange", *_HEAD),
        [
            (
                title,
                len(same := _titled(rows, title)),
                _rounds(same),
                *_cells(levels(row, "shift") for row in same),
            )
            for title in dict.fromkeys(row["title"] for row in rows)
        ],
    )


def _titled(rows: Rows, title: str) -> Rows:
    return [row for row in rows if row["title"] == title]


def _rounds(rows: Rows) -> str:
    known = [row["rounds"][-1] for row in rows]
    return "none" if None in known else _span([str(number + 1) for number in sorted(known)])


def _cells(found: Iterable[Levels]) -> list[str]:
    """Each field of these levels, from the smallest to the greatest."""
    return [_span([_shown(value) for value in sorted(values)]) for values in zip(*found, strict=True)]


def _span(ascending: Sequence[str]) -> str:
    least, most = ascending[0], ascending[-1]
    return least if least == most else f"{least} to {most}"


def _shown(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    digits = next((digits for below, digits in _DIGITS if value < below), 3)
    return f"{value:.{digits}f}"


PARTS = {
    "service-instances": instances_table,
    "instances-virtual": instances_table,
    "service-shift": shift_table,
}
"""Tables of the page, by the name of the kept rows and of the comment that they stand below."""
