"""Routes a cell of 002 through five sources, and counts imbalance, copies of keys, and the least d (by
bisection).
"""

from __future__ import annotations

import numpy as np

from evenflow.metrics import sampled_imbalance, worker_loads
from evenflow.numeric.arrays import Int32s
from evenflow.partitioners import Partitioner
from evenflow.partitioners.choices.d_choices import DChoices, DChoicesOptions
from evenflow.simulation import KeyedStream, Scenario, entrant
from papers.cells.run_plan import Cell, RunPlan, StreamCache
from papers.cells.store import Values
from papers.paper_002.cluster import played
from papers.paper_002.formulas import shares
from papers.paper_002.grid import EPS, KEYS, ONE_VIEW, SOURCES
from papers.routing import placed

# More tuples than any stream has: the next d is never computed.
_NEVER = 1 << 62
POINTS = 20
"""Number of evenly spaced points at which the imbalance over time is taken."""


def measure(cell: Cell, opened: StreamCache, plan: RunPlan) -> Values:
    """One value per seed of the hash family. All seeds route the same stream."""
    stream = opened.at()
    if cell.experiment == "over time":
        return _measure_over_time(cell, stream, plan)
    how = {
        "least d": _measure_least_d,
        "head and tail": _measure_parts,
        "cluster": _measure_cluster,
        ONE_VIEW: _measure_cluster,
    }.get(cell.experiment, _measure_balance)
    each = [how(cell, stream, seed) for seed in plan.seeds]
    return {name: [counts[name] for counts in each] for name in each[0]}


def _sources(cell: Cell, stream: KeyedStream, seed: int) -> list[Partitioner]:
    scenario = Scenario(workers=cell.workers, sources=SOURCES, seed=seed)
    return scenario.partitioners(entrant(cell.partitioner), stream)


def _measure_balance(cell: Cell, stream: KeyedStream, seed: int) -> dict[str, float]:
    sources = _sources(cell, stream, seed)
    workers = placed(sources, stream)
    imbalance = sampled_imbalance(workers, cell.workers)[1]
    counts = {"imbalance": float(imbalance[-1]), "mean": float(imbalance.mean())}
    if cell.experiment == "balance":
        counts["copies"] = _copies(stream, workers, cell.workers)
        if cell.partitioner == "d-choices":
            counts["head"] = max(source.observe().head_keys or 0 for source in sources)
            counts["d"] = max(source.observe().choices for source in sources)
    return counts


def _measure_cluster(cell: Cell, stream: KeyedStream, seed: int) -> dict[str, float]:
    return played(stream, cell, seed)


def _measure_over_time(cell: Cell, stream: KeyedStream, plan: RunPlan) -> Values:
    """`curve`: I(t) at `POINTS` points, the median over the seeds. `imbalance`: I(m) at the end, one value
    per seed.
    """
    curves = [
        sampled_imbalance(placed(_sources(cell, stream, seed), stream), cell.workers, samples=POINTS)[1]
        for seed in plan.seeds
    ]
    p1 = float(np.bincount(stream.codes).max()) / len(stream)
    return {
        "imbalance": [float(curve[-1]) for curve in curves],
        "curve": np.median(curves, axis=0).tolist(),
        "p1": [p1],
        "keys": [float(len(np.unique(stream.codes)))],
    }


def _copies(stream: KeyedStream, workers: Int32s, n: int) -> float:
    """Distinct (key, worker) pairs. Each pair is one state in memory."""
    # A table of key x worker, flattened. Sorting the pairs would take far longer.
    presence = np.zeros(stream.key_count * n, np.bool_)
    presence[stream.codes.astype(np.int64) * n + workers] = True
    return float(presence.sum())


def _measure_parts(cell: Cell, stream: KeyedStream, seed: int) -> dict[str, float]:
    """Shares of the fullest worker: `head` is of keys with p >= 1/(8n), `tail` of all other keys."""
    n = cell.workers
    workers = placed(_sources(cell, stream, seed), stream)
    # Codes of a drawn Zipf stream are ranks, so the head is a range of codes.
    head = stream.codes < int((shares(KEYS, cell.stream.zipf) >= 1 / (8 * n)).sum())
    of_head, of_tail = (worker_loads(workers[which], n) / len(stream) for which in (head, ~head))
    fullest = int((of_head + of_tail).argmax())
    return {
        "head": float(of_head[fullest]),
        "tail": float(of_tail[fullest]),
        "fullest": float((of_head + of_tail)[fullest]),
        "emptiest": float((of_head + of_tail).min()),
    }


def _with_d(n: int, d: int, seed: int) -> list[Partitioner]:
    """Sources of D-Choices that always use the given d. With d = n the head may go to any worker."""

    class FixedDChoices(DChoices):
        def _shape(self) -> None:
            super()._shape()
            schedule = self._choosing.schedule
            # `next` is the number of tuples from which on d is computed again.
            schedule["next"], schedule["d"] = _NEVER, d

    return [
        FixedDChoices(
            name="d-choices", workers=n, seed=seed, source=number, sources=SOURCES, options=DChoicesOptions()
        )
        for number in range(SOURCES)
    ]


def _measure_least_d(cell: Cell, stream: KeyedStream, seed: int) -> dict[str, float]:
    """The d of D-Choices, and the least d that is as balanced as W-Choices.

    `least` allows a difference of eps, `matching` of s eps (s sources).
    """
    n = cell.workers

    def imbalance(sources: list[Partitioner]) -> float:
        return float(worker_loads(placed(sources, stream), n).max()) / len(stream) - 1 / n

    # D-Choices with d = n chooses among all workers for the head, as W-Choices does.
    best = imbalance(_with_d(n, n, seed))

    def least(tolerance: float) -> int:
        low, high = 2, n
        while low < high:
            middle = (low + high) // 2
            if imbalance(_with_d(n, middle, seed)) <= best + tolerance:
                high = middle
            else:
                low = middle + 1
        return low

    sources = _sources(cell, stream, seed)
    own = imbalance(sources)
    return {
        "least": least(EPS),
        "matching": least(SOURCES * EPS),
        "d": max(source.observe().choices for source in sources),
        "imbalance": own,
    }
