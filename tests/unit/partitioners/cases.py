"""What the laws are tried on: every name of the registry, plain and with other options."""

import pytest

from evenflow.partitioners import Partitioner, describe, names
from evenflow.partitioners.checking import run

__all__ = [
    "CASES",
    "HLL",
    "SLIDING",
    "TUMBLING",
    "each",
    "each_micro_batch",
    "each_online",
    "keeps_every_key",
    "over",
    "run",
]

SLIDING = {"window": "sliding", "window_ms": 1000, "slide_ms": 100}
TUMBLING = {"window": "tumbling", "window_ms": 700}
HLL = {"cardinality": "hll", "window": "tumbling"}
MORE = [
    ("pkg", SLIDING),
    ("d-choices", SLIDING),
    ("d-choices", {"distinct": True}),
    ("d-choices", {"theta": 0.001, "counters": 50, "growth": 0.0}),
    ("d-choices", {"warm_up": 1000, "eps": 0.01}),
    ("dalton", {"explore": "capped", "cap_growth": 0.2, "window_ms": 1000, "slide_ms": 100}),
    ("dalton", {"heavy_hitters": "sketch", "window_ms": 900, "slide_ms": 300, "stats_ms": 250}),
    ("dalton", {"heavy_hitters": "hybrid", "sketch_from": 200, "stats_ms": 250}),
    ("dalton", {"eps": 0.5, "p1": 0.9, "p2": 0.1, "stats_ms": 2500}),
    ("dalton", {"theta": 0.0, "window_ms": 900, "slide_ms": 300, "stats_ms": 250}),
    ("dalton", {"theta": 0.002, "eps": 0.5}),
    ("dalton-batch", {"load_scope": "batch", "eps": 0.4}),
    ("dalton-batch", {"explore": "capped", "window_ms": 1000, "slide_ms": 100}),
    ("dalton-cooperative", {"dsync_ms": 250, "window_ms": 1200, "slide_ms": 300, "eps": 0.4}),
    ("dalton-cooperative", {"share_loads": True, "share_steps": True, "window_ms": 1000, "slide_ms": 100}),
    ("dalton-cooperative", {"keep_rewards": True, "window_ms": 1000, "slide_ms": 100}),
    ("time-based", {"interval_ms": 300}),
    ("partly", {"fallback": False}),
    ("prompt", {"order": "quasi"}),
    ("prompt", {"rest": "roomiest"}),
    ("prompt", {"order": "quasi", "budget": 1, "smoothing": 1.0}),
    ("d-choices", {**SLIDING, "head": "window"}),
    ("w-choices", {**SLIDING, "head": "window", "counters": 40}),
    ("rr-head", {"window_ms": 700, "slide_ms": 100, "head": "window"}),
    ("w-choices", SLIDING),
    ("w-choices", {"theta": 0.02, "counters": 30, "warm_up": 500}),
    ("rr-head", SLIDING),
    ("rr-head", {"theta": 0.0}),
    ("pstream", {"r": 2, "l": 5, "p": 0.1}),
    ("pstream", {"r": 0, "l": 2, "p": 1.0}),
    ("cm", HLL),
    ("cm", {**HLL, **SLIDING}),
    ("am", SLIDING),
    ("am", {"window": "tumbling", "window_ms": 700, "d": 5}),
    ("am", {**HLL, "d": 3}),
    ("cam", {"window": "cumulative"}),
    ("cam", SLIDING),
    ("cam", HLL),
    ("cam", {**HLL, **SLIDING, "precision": 8}),
    ("lm", {**SLIDING, "p": 0.9}),
    ("lm", {**SLIDING, "p": 0.0}),
    ("lm", {**SLIDING, "p": 1.0}),
    ("lm", HLL),
    ("lm", {**HLL, **SLIDING, "precision": 8, "d": 3}),
    ("cg", SLIDING),
    ("cg", {"alpha": 3, "eps": 0.0, "capacities": (1.0, 2.5), "check": 7}),
    ("dkg", SLIDING),
    ("evenflow", {"price": 0.0, "watch": 100, **SLIDING}),
    ("evenflow", {"window": "cumulative", "weights": (1.0, 2.5, 0.3), "cells": 256}),
    ("evenflow", {"cells": 16, "most_cells": 1024, "window_ms": 1000, "slide_ms": 100}),
    ("evenflow", {"tail": "hash", "price": 1e-5, "window_ms": 600, "slide_ms": 200}),
    ("dkg", {"check_ms": 50, "warm_up_ms": 100, "frequent": 1.0, "counters": 100}),
    ("dkg-rivetti", {"learning": 700, "theta": 0.01, "precision": 4.0, "cells": 3.5}),
    ("dkg-rivetti", {"learning": 100, "theta": 1.0, "precision": 1.0, "cells": 1.0}),
    ("mixed", {"window_ms": 500, "slide_ms": 100, "theta": 0.0, "table": 3, "counters": 20}),
    ("mixed", {"window_ms": 700, "slide_ms": 700, "plan": "min-table", "beta": 1.0}),
    ("mixed", {"window_ms": 800, "slide_ms": 200, "plan": "min-mig", "table": 5, "theta": 0.5}),
    ("gedik", {"plan_ms": 300, "share": 0.01, "migration": 0.1, "replicas": 7}),
    ("gedik", {"plan_ms": 500, "construction": "redist", "share": 0.005}),
    ("gedik", {"plan_ms": 200, "construction": "readj", "share": 0.01, "balance": 0.05}),
    ("osg", {"check": 20, "delay": 0}),
    ("osg", {"check": 7, "mu": 0.5, "columns": 16, "rows": 2, "delay": 30}),
    *((name, TUMBLING) for name in ("pkg", "d-choices", "cg", "dkg", "evenflow")),
    ("rr-head", {**TUMBLING, "head": "window"}),
    ("dagreedy", {**SLIDING, "theta": 0.05}),
    ("dagreedy", {"window": "cumulative", "slide_ms": 100, "alpha": 0.0}),
    ("dagreedy", {"window": "tumbling", "window_ms": 500, "slide_ms": 100, "alpha": 0.9}),
]
CASES = [(name, {}) for name in names()] + MORE


def over(cases: list[tuple[str, dict]]) -> pytest.MarkDecorator:
    ids = [f"{n}-{'-'.join(map(str, o.values()))}" for n, o in cases]
    return pytest.mark.parametrize(("name", "options"), cases, ids=ids)


each = over(CASES)
each_online = over([case for case in CASES if not describe(case[0]).micro_batch])
each_micro_batch = over([case for case in CASES if describe(case[0]).micro_batch])


def keeps_every_key(p: Partitioner) -> bool:
    """Whether state grows with the distinct keys of the window. False: workers and options bound it."""
    # Two large numbers, because a bound may have a floor or a ceiling, below or above which keys make no
    # difference.
    return p.state_bound(1 << 41) > p.state_bound(1 << 40)
