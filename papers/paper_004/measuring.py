"""Routes a cell of 004 window by window: imbalance of tuples and of keys, copies, and the memory of table
4.
"""

from __future__ import annotations

import numpy as np

from evenflow import metrics
from evenflow.keys import GOLDEN
from evenflow.partitioners import create
from evenflow.text.options import parse_choice
from papers.cells.run_plan import Cell, RunPlan, StreamCache
from papers.cells.store import Values
from papers.paper_004.grid import window_ms
from papers.routing import tumbled, windows


def measure(cell: Cell, opened: StreamCache, plan: RunPlan) -> Values:
    """One value per seed. Memory is the same for every seed, so it is measured once."""
    if cell.experiment == "memory":
        return {"megabytes": [_megabytes(cell, plan)]}
    stream = opened.at()
    window = window_ms(cell.stream.kind)
    slices = list(windows(stream, window))
    series: Values = {name: [] for name in ("imbalance", "most_above", "ksr", "cardinality")}
    series["keys"] = [float(np.mean([metrics.distinct_keys(stream.codes[rows]) for rows in slices]))]
    series["tuples"] = [float(np.mean([rows.stop - rows.start for rows in slices]))]
    series["windows"] = [float(len(slices))]
    for seed in plan.seeds:
        workers = tumbled(stream, cell.partitioner, workers=cell.workers, seed=seed, window_ms=window)
        each = [_window(workers[rows], stream.codes[rows], cell.workers) for rows in slices]
        imbalance, most_above, ksr, cardinality = np.array(each).T
        series["imbalance"].append(float(imbalance.mean()))
        series["most_above"].append(float(most_above.max()))
        series["ksr"].append(float(ksr.mean()))
        series["cardinality"].append(float(cardinality.mean()))
    return series


def _window(workers: np.ndarray, codes: np.ndarray, n: int) -> tuple[float, float, float, float]:
    """Of one window: imbalance, largest load above the mean in tuples, KSR, and cardinality imbalance."""
    loads = metrics.worker_loads(workers, n)
    cardinalities = metrics.worker_cardinalities(workers, codes, n)
    return (
        metrics.imbalance(loads),
        metrics.absolute_imbalance(loads),
        float(cardinalities.sum()) / metrics.distinct_keys(codes),
        float(cardinalities.max() / cardinalities.mean() - 1),
    )


def _megabytes(cell: Cell, plan: RunPlan) -> float:
    """Megabytes of state once every key of the stream has come.

    For CM and LM every key comes twice, so that both of its candidates hold it.
    """
    name, options = parse_choice(cell.partitioner)
    rule = create(name, workers=cell.workers, seed=plan.seeds[0], window="cumulative", **options)
    # Multiples of an odd constant: distinct key hashes without hashing 8 million texts.
    keys = np.arange(1, cell.stream.keys + 1, dtype=np.uint64) * GOLDEN
    times = np.zeros(len(keys), np.int64)
    for _ in range(1 if name == "am" else 2):
        rule.assign(keys, times)
    return rule.observe().state_bytes / 1e6
