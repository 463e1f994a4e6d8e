"""How the cost per tuple and the state grow with the number of keys."""

from __future__ import annotations

from typing import Any

from benchmarks.partitioners.routing import SEED as SEED
from benchmarks.partitioners.routing import WORKERS, RoutingSize, Warm, labels, middle, zipf_keys
from benchmarks.pictures import PLOTS, growth_keys, keep

ID = "partitioners-growth-keys"
WHAT = (
    "ns per tuple, bytes of state and their bound, every partitioner, n = 64, Zipf 1.0, 1e4 ... 1e7 keys;"
    " with a chart"
)


def run(*, smoke: bool) -> dict[str, Any]:
    """A row for each partitioner and number of keys. `state_bound`: the most that its state can take with
    so many keys.
    """
    how_much = RoutingSize(10_000, 10_000, 1) if smoke else RoutingSize(2_000_000, 200_000, 3)
    rows = []
    for count in (1_000, 10_000) if smoke else (10_000, 100_000, 1_000_000, 10_000_000):
        keys = zipf_keys(how_much.warm, keys=count)
        for label in labels():
            warm = Warm(label, keys, how_much)
            values = [warm() for _ in range(how_much.repetitions)]
            rows.append(
                {
                    "partitioner": label,
                    "keys": count,
                    "ns": round(min(values), 3),
                    "median": middle(values),
                    "state_bytes": warm.partitioner.observe().state_bytes,
                    "state_bound": warm.partitioner.state_bound(count),
                }
            )
    plot = PLOTS / f"{ID}.svg"
    keep(rows, growth_keys, plot)
    return {"workers": WORKERS, "plot": str(plot), "partitioners": rows}
