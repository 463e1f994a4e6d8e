"""Nanoseconds per tuple of every partitioner, compared with hashing."""

from __future__ import annotations

from typing import Any

from benchmarks.partitioners.routing import KEYS, WORKERS, costs, labels, size, zipf_keys
from benchmarks.partitioners.routing import SEED as SEED

ID = "partitioners-speed"
WHAT = (
    "ns per tuple of every partitioner, one core, n = 64, 100,000 keys, Zipf 1.0, state warm, against hashing"
)

GOALS = {
    "pkg": ("hashing", 2.0),
    "d-choices": ("hashing", 8.0),
    "dalton": ("hashing", 8.0),
    "cam:cardinality=hll": ("hashing", 8.0),
    "evenflow": ("d-choices", 1.5),
}
"""Name -> (other name, factor): the cost is to be at most so many times that of the other (best of the
repetitions).
"""


def run(*, smoke: bool) -> dict[str, Any]:
    """A row for each partitioner: best, median and worst, the ratio of its best to hashing's, and its
    goal.
    """
    how_much = size(smoke=smoke)
    figures = costs(labels(), zipf_keys(how_much.warm), how_much)
    rows = []
    for label, ns in figures.items():
        row: dict[str, Any] = {
            "partitioner": label,
            "ns": ns["min"],
            "median": ns["median"],
            "worst": ns["max"],
        }
        row["times_hashing"] = round(ns["min"] / figures["hashing"]["min"], 2)
        if label in GOALS:
            other, goal = GOALS[label]
            ratio = ns["min"] / figures[other]["min"]
            row |= {"goal": f"{goal:g} x {other}", "is": round(ratio, 2), "met": ratio <= goal}
        rows.append(row)
    return {"workers": WORKERS, "keys": KEYS, "tuples_a_figure": how_much.block, "partitioners": rows}
