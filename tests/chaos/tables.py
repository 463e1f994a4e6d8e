"""What became of rounds, as rows that are kept and as tables of docs/correctness.md."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.measuring.machine import machine
from benchmarks.pages.tables import into_page, table
from tests.chaos.course import PARTS
from tests.chaos.rounds import Outcome

PAGE = Path("docs/correctness.md")
ROWS = Path("docs/measurements/chaos.json")

Row = dict[str, Any]
"""A round: the fields of its course, and of its outcome."""


def row_of(outcome: Outcome) -> Row:
    """The round as a row."""
    course = asdict(outcome.course)
    del course["strikes"]
    return course | {
        "faults": dict(sorted(outcome.faults.items())),
        "missed": dict(sorted(outcome.missed.items())),
        "tuples": outcome.tuples,
        "rejected": outcome.rejected,
        "rows": outcome.rows,
        "batches": outcome.batches,
        "ends": {str(status): times for status, times in sorted(outcome.ends.items())},
        "growth": {sort: round(times, 2) for sort, times in outcome.growth.items()},
        "violations": outcome.violations,
    }


def faults_table(rows: Sequence[Row]) -> str:
    """A line for each kind of fault: how often it hit, in how many rounds, and what became of these."""
    lines = []
    for part, kinds in PARTS.items():
        for kind in kinds:
            hit = [row for row in rows if row["faults"].get(kind)]
            lines.append((part, kind, sum(row["faults"][kind] for row in hit), len(hit), _outcome(hit)))
    total = sum(sum(row["faults"].values()) for row in rows)
    return (
        table(("part", "fault", "hits", "rounds", "outcome"), lines)
        + f"\n| all | | {total} | {len(rows)} | {_outcome(rows)} |"
    )


def rounds_table(rows: Iterable[Row]) -> str:
    """A line for each round: what it was, and what became of it."""
    heads = (
        "seed", "pipeline", "faults", "tuples", "rows", "micro-batches", "memory: partitioner, Java, broker",
        "outcome",
    )  # fmt: skip
    lines = []
    for row in rows:
        memory = ", ".join(
            f"x{row['growth'][sort]:.2f}" if sort in row["growth"] else "-"
            for sort in ("partitioner", "Java", "broker")
        )
        lines.append((
            row["seed"], ", ".join(_shape(row)), sum(row["faults"].values()), f"{row['tuples']:,}",
            f"{row['rows']:,}", row["batches"], memory, _outcome([row]),
        ))  # fmt: skip
    return table(heads, lines)


def _shape(row: Row) -> Iterator[str]:
    yield from (row["wiring"], f"`{row['sink']}`", f"`{row['partitioner']}`")
    yield f"{row['instances']} instance{'s' if row['instances'] > 1 else ''}"
    yield from (word for word in ("views", "registered", "executors") if row[word])
    yield from ["late tuples update"] if row["late"] == "update" else []
    yield from ["forwarding"] if row["forwarding"] == "on" else []
    yield from ["a controller"] if row["controlled"] else []


def _outcome(rows: Sequence[Row]) -> str:
    violated = [str(row["seed"]) for row in rows if row["violations"]]
    if not rows:
        return "not drawn"
    return f"violated: {', '.join(violated)}" if violated else "every row exact"


def write(
    outcomes: Sequence[Outcome],
    *,
    here: dict[str, Any] | None = None,
    page: Path = PAGE,
    rows: Path = ROWS,
) -> None:
    """Keep these rounds, and put the tables of all that are kept into the page. A seed that is played again
    has a new row, and the others stay.

    here: facts of the machine and its commit, from before anything was written: what is kept changes the
    working tree. Raises ValueError if the page has no place for a table.
    """
    here = here or machine()
    by_seed = {row["seed"]: row for row in (_kept(rows) if rows.exists() else [])}
    by_seed |= {one.course.seed: row_of(one) | {"commit": here["commit"]} for one in outcomes}
    made = [by_seed[seed] for seed in sorted(by_seed)]
    rows.write_text(json.dumps({"machine": here, "rounds": made}, indent=1) + "\n", encoding="utf-8")
    text = page.read_text(encoding="utf-8")
    for part, lines in (("faults", faults_table(made)), ("rounds", rounds_table(made))):
        text = into_page(text, "chaos", part, lines)
    page.write_text(text, encoding="utf-8")


def _kept(rows: Path) -> list[Row]:
    return list(json.loads(rows.read_text(encoding="utf-8"))["rounds"])
