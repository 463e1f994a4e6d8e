"""How the cost per tuple and the state grow with the keys."""

from __future__ import annotations

import re
import sys
from typing import Any

from benchmarks.partitioners import WORKERS, Size, Warm, growth, labels, middle, zipf_keys

ID = "partitioners-growth-keys"
WHAT = "ns per tuple and bytes of state of every partitioner, n = 64, Zipf 1.0, over K = 1e4 ... 1e7 keys; with a chart"


def run(*, smoke: bool) -> dict[str, Any]:
    """One row a partitioner and number of keys; and what its docstring says of its state."""
    how_much = Size(10_000, 10_000, 1) if smoke else Size(2_000_000, 200_000, 3)
    rows = []
    bounds: dict[str, str] = {}
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
                }
            )
            bounds[label] = _bound(warm)
    plot = growth(rows, over="keys", title="keys", name=ID)
    return {"workers": WORKERS, "plot": plot, "partitioners": rows, "state_as_documented": bounds}


def _bound(warm: Warm) -> str:
    """The sentence on state in the module's docstring, and whether it grows with the keys."""
    text = " ".join((sys.modules[type(warm.partitioner).__module__].__doc__ or "").split())
    found = re.search(r"\b[Ss]tate: (.*?)(?: Paper:|$)", text)
    sentence = found[1] if found else "none stated"
    grows = "grows with the keys" if warm.partitioner.keeps_every_key else "bounded by workers and options"
    return f"{grows}: {sentence}"
