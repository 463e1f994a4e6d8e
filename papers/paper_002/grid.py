"""The settings of 002's figures: one cell each."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from papers.cells.run_plan import Cell, RunPlan, Stream
from papers.drawn_streams import DAILY, SUDDEN

NAME = "d-choices"
SOURCES = 5
EPS = 1e-4
KEYS = 10_000
PAPER_TUPLES = 10_000_000
TUPLES = 1_000_000
QUICK_TUPLES = 5_000
FORMULA_ZIPFS = tuple(round(0.1 * step, 1) for step in range(1, 21))
FORMULA_WORKERS = (50, 100)
ZIPFS = tuple(round(0.2 * step, 1) for step in range(1, 11))
TABLE_ZIPFS = (0.4, 0.8, 1.2, 1.6, 2.0)
"""Exponents that the table shows. The chart shows all of `ZIPFS`."""
SKEWED = tuple(z for z in ZIPFS if z >= 1.2)
WORKERS = (5, 10, 20, 50, 100)
MORE_KEYS = (100_000, 1_000_000)
MORE_ZIPFS = (1.2, 2.0)
RULES = ("pkg", "d-choices", "w-choices", "rr-head")
THETAS = (2.0, 1.0, 0.5, 0.25, 0.125)
THETA_ZIPFS = (0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)
SHOWN_THETA_ZIPFS = (0.8, 1.4, 2.0)
"""Exponents that the table of thresholds shows."""
THETA_WORKERS = (5, 50, 100)
LEAST_D_ZIPFS = (1.2, 1.4, 1.6, 1.8, 2.0)
LEAST_D_WORKERS = (50, 100)
WORDS_WORKERS = (5, 10, 20, 50, 100)
DRIFT_TUPLES, DRIFT_KEYS = 690_000, 2_900
"""Tuples and keys of the cashtags in the paper's table I."""
DRIFTS = (SUDDEN, DAILY)
CLUSTER_SOURCES, CLUSTER_MESSAGES = 48, 2_000_000
CLUSTER_ZIPFS = (1.4, 1.7, 2.0)
CLUSTER_RULES = ("hashing", "pkg", "shuffle", "d-choices", "w-choices")
ONE_VIEW = "cluster, one view"
"""The experiment in which all sources route by one partitioner, so each knows the loads that all make."""


def _zipf(plan: RunPlan, zipf: float, keys: int = KEYS, tuples: int | None = None) -> Stream:
    # A quick run makes the other numbers of keys smaller, but keeps `KEYS`: the formulas and figure 8 assume
    # it.
    shown = keys if keys == KEYS else plan.pick(keys, keys // 20)
    return Stream("zipf", tuples or plan.pick(TUPLES, QUICK_TUPLES), shown, zipf)


def _cell(experiment: str, stream: Stream, workers: int, partitioner: str = "") -> Cell:
    return Cell(NAME, experiment, stream, workers, partitioner)


def balance_cell(plan: RunPlan, zipf: float, n: int, rule: str, keys: int = KEYS) -> Cell:
    """Figure 10: imbalance, and copies of keys, at `n` workers."""
    return _cell("balance", _zipf(plan, zipf, keys), n, rule)


def long_cell(plan: RunPlan, zipf: float, rule: str) -> Cell:
    """Figure 10 with the paper's number of tuples, n = 100."""
    return _cell("balance", _zipf(plan, zipf, tuples=plan.pick(PAPER_TUPLES, 2 * QUICK_TUPLES)), 100, rule)


def theta_cell(plan: RunPlan, zipf: float, n: int, rule: str, factor: float) -> Cell:
    """Figure 7: threshold `factor` / n."""
    return _cell("theta", _zipf(plan, zipf), n, f"{rule}:theta={factor / n:g}")


def parts_cell(plan: RunPlan, rule: str) -> Cell:
    """Figure 8: head and tail apart, n = 5, z = 2.0."""
    return _cell("head and tail", _zipf(plan, 2.0), 5, rule if rule == "pkg" else f"{rule}:theta={1 / 40:g}")


def least_d_cell(plan: RunPlan, zipf: float, n: int) -> Cell:
    """Figure 9: d, and the least d that would do."""
    return _cell("least d", _zipf(plan, zipf), n, "d-choices")


def words_cell(plan: RunPlan, n: int, rule: str) -> Cell:
    """Figure 11: imbalance on the words of a text."""
    return _cell("balance", Stream("words", plan.pick(0, QUICK_TUPLES)), n, rule)


def drift_cell(plan: RunPlan, drift: str, n: int, rule: str) -> Cell:
    """Figure 12: imbalance over time, on a stream with the statistics of the cashtags."""
    stream = Stream(drift, plan.pick(DRIFT_TUPLES, QUICK_TUPLES), DRIFT_KEYS)
    return _cell("over time", stream, n, rule)


def cluster_cell(plan: RunPlan, zipf: float, rule: str) -> Cell:
    """Figures 13 and 14: queues of a cluster."""
    return _cell("cluster", _zipf(plan, zipf, tuples=plan.pick(CLUSTER_MESSAGES, 4 * QUICK_TUPLES)), 80, rule)


def one_view_cell(plan: RunPlan, zipf: float, rule: str) -> Cell:
    """The same, with one partitioner for all sources."""
    return replace(cluster_cell(plan, zipf, rule), experiment=ONE_VIEW)


def cells(plan: RunPlan) -> list[Cell]:
    """Every setting."""
    return [
        *(cluster_cell(plan, *at) for at in product(CLUSTER_ZIPFS, CLUSTER_RULES)),
        *(one_view_cell(plan, *at) for at in product(CLUSTER_ZIPFS, CLUSTER_RULES[-2:])),
        *(drift_cell(plan, *at) for at in product(DRIFTS, WORKERS, RULES[:3])),
        *(balance_cell(plan, z, n, rule) for z, n, rule in product(ZIPFS, WORKERS, RULES)),
        *(
            balance_cell(plan, z, n, rule, keys)
            for keys, z, n, rule in product(MORE_KEYS, MORE_ZIPFS, FORMULA_WORKERS, RULES)
        ),
        *(
            theta_cell(plan, *at)
            for at in product(THETA_ZIPFS, THETA_WORKERS, ("w-choices", "rr-head"), THETAS)
        ),
        *(parts_cell(plan, rule) for rule in ("pkg", "w-choices", "rr-head")),
        *(least_d_cell(plan, z, n) for z, n in product(LEAST_D_ZIPFS, LEAST_D_WORKERS)),
        *(words_cell(plan, n, rule) for n, rule in product(WORDS_WORKERS, RULES[:3])),
        *(long_cell(plan, z, rule) for z, rule in product(MORE_ZIPFS, RULES)),
    ]
