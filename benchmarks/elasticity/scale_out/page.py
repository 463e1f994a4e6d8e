"""The tables, from the figures of all runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.elasticity.scale_out.measuring import POLICY, VARIANTS, Figures
from benchmarks.pages.tables import median_and_range, table
from workbench.elastic import SHAPES

Runs = Mapping[str, Mapping[str, Figures]]
"""Name of a variant -> shape -> figures."""
_LIVE = Path(__file__).parents[3] / "docs/measurements"


def overloaded_table(runs: Runs) -> str:
    """Share of the time in overload, in percent."""
    return _by_shape(runs, lambda figures: median_and_range(_percent(figures["overloaded"]), 0))


def p99_table(runs: Runs) -> str:
    """99th percentile of the latency, in seconds, and the windows that were later than 20 s."""
    return _by_shape(runs, lambda figures: median_and_range(figures["p99"], 1) + _late(figures))


def cores_table(runs: Runs) -> str:
    """Core-seconds of executors."""
    return _by_shape(runs, lambda figures: median_and_range(figures["cores"], 0))


def live_table(runs: Runs) -> str:
    """The model beside the live runs of the policy, without reserve, forecast or bound."""
    rows = []
    for shape in SHAPES:
        live, figures = _live(shape), runs[VARIANTS[0].name][shape]
        rows.append(
            (
                shape,
                f"{100 * live['overloaded']:.0f} %",
                median_and_range(_percent(figures["overloaded"]), 0) + " %",
                f"{live['latency_p50_ms'] / 1000:.1f} / {live['latency_p99_ms'] / 1000:.1f} s",
                f"{median_and_range(figures['p50'], 1)} / {median_and_range(figures['p99'], 1)} s",
                f"{live['slot_seconds']:.0f}",
                median_and_range(figures["cores"], 0),
            )
        )
    head = ("shape", "overloaded, live", "model", "p50 / p99, live", "model", "core-seconds, live", "model")
    return table(head, rows)


def _live(shape: str) -> dict[str, Any]:
    rows = json.loads((_LIVE / f"elasticity-{shape}.json").read_text(encoding="utf-8"))
    row: dict[str, Any] = next(row for row in rows if row["policy"] == POLICY)
    return row


def _by_shape(runs: Runs, cell: Callable[[Figures], str]) -> str:
    rows = [(variant.name, *(cell(runs[variant.name][shape]) for shape in SHAPES)) for variant in VARIANTS]
    return table(("", *SHAPES), rows)


def _percent(shares: list[float]) -> list[float]:
    return [100 * share for share in shares]


def _late(figures: Figures) -> str:
    runs = sum(share > 0 for share in figures["late"])
    return f", late windows in {runs} of {len(figures['late'])} runs" if runs else ""


PARTS: dict[str, Callable[[Runs], str]] = {
    "live": live_table,
    "overloaded": overloaded_table,
    "p99": p99_table,
    "cores": cores_table,
}
"""Tables of the page, by the comment that they stand below."""
