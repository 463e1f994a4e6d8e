"""Whether anything grows, and whether every window is right, while the pipeline runs for half an hour at 0.8
of its sustained rate on this machine.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from benchmarks.measuring.machine import machine
from benchmarks.measuring.step_lines import tell
from benchmarks.measuring.stream import SEED as SEED
from benchmarks.pictures import PLOTS
from benchmarks.soak.course import Soak, soak
from benchmarks.soak.picture import sizes
from benchmarks.soak.sizes import thirds_after_start
from evenflow.charts.page import save
from evenflow.errors import ServiceError

ID = "service-soak"
WHAT = "half an hour at 0.8 of the sustained rate while verify reads along: what grows, and every window"

MINUTES = 30.0
EVERY = 5.0
"""Seconds between two looks."""


def run(*, smoke: bool) -> dict[str, object]:
    """Each size in the first and in the last third. ServiceError if something was not as it must be."""
    if smoke:
        result = soak(minutes=0.75, every=2.0, rate=20_000, period=10.0, retention=0.1)
    else:
        result = soak(minutes=MINUTES, every=EVERY)
    if result.violations:
        tell_all(result)
        raise ServiceError("\n".join(result.violations))
    growth = {name: thirds_after_start(values) for name, values in result.sizes.items()}
    if not smoke:
        keep(result)
    return {
        "sustained_tuples_per_second": result.sustained,
        "tuples_per_second": result.rate,
        "tuples": result.tuples,
        "runs_of_verify": len(result.comparisons),
        "runs_broken_off": result.interruptions,
        "rows_compared": sum(each.rows for each in result.comparisons),
        "differences": sum(each.differences for each in result.comparisons),
        "cpu_seconds_per_million_tuples": result.cpu_seconds_per_million_tuples,
        "sizes": [{"what": name, "first": first, "last": last} for name, (first, last) in growth.items()],
    }


def tell_all(result: Soak) -> None:
    """Say on standard error how large everything was at the first and at the last look."""
    for name, values in result.sizes.items():
        tell(name, {"at first": values[0], "at last": values[-1]})


def keep(result: Soak) -> None:
    """Write the rows and the picture beside those of other scenarios."""
    PLOTS.mkdir(parents=True, exist_ok=True)
    rows = rows_of(result)
    (PLOTS / "soak.json").write_text(json.dumps(rows) + "\n", encoding="utf-8")
    save(sizes(rows), PLOTS / "soak.svg")


def rows_of(result: Soak) -> dict[str, Any]:
    """What is kept of a run."""
    comparisons = [each._asdict() for each in result.comparisons]
    return {"machine": machine()} | asdict(result) | {"comparisons": comparisons}
