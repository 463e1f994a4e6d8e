"""How the cost per tuple grows with the number of workers."""

from __future__ import annotations

from typing import Any

from benchmarks.partitioners.routing import KEYS, RoutingSize, costs, labels, zipf_keys
from benchmarks.partitioners.routing import SEED as SEED
from benchmarks.pictures import PLOTS, growth_workers, keep

ID = "partitioners-growth-workers"
WHAT = "ns per tuple of every partitioner, 100,000 keys, Zipf 1.0, over n = 5 ... 1024 workers; with a chart"


def run(*, smoke: bool) -> dict[str, Any]:
    """A row for each partitioner and number of workers."""
    how_much = RoutingSize(10_000, 10_000, 1) if smoke else RoutingSize(700_000, 200_000, 3)
    keys = zipf_keys(how_much.warm)
    rows = []
    for workers in (5, 64) if smoke else (5, 16, 64, 256, 1024):
        for label, ns in costs(labels(), keys, how_much, workers=workers).items():
            rows.append({"partitioner": label, "workers": workers, "ns": ns["min"], "median": ns["median"]})
    plot = PLOTS / f"{ID}.svg"
    keep(rows, growth_workers, plot)
    return {"keys": KEYS, "plot": str(plot), "partitioners": rows}
