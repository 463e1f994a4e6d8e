"""The settings of 003's figures: one cell each."""

from __future__ import annotations

from itertools import product

from papers.cells.run_plan import Cell, RunPlan, Stream

NAME = "bandits"
KMAX = 64
LINUCB = "linucb:alpha=1"
PAPER = "mblinucb:alpha=1,breadth=1,samples=10000,rate=100,mu=10"
WIDER = PAPER.replace("breadth=1", "breadth=2")
"""`PAPER`, but it also practises on half and twice the load."""
FEWER = PAPER.replace("samples=10000", "samples=1000")
"""`PAPER` with a tenth of the practice."""
BOTH = WIDER.replace("samples=10000", "samples=1000")
"""`WIDER` with a tenth of the practice."""
OURS = "mblinucb"
"""`mblinucb` with its defaults but for the objective, which `measuring` sets for all bandits.

It watches first, practises also on half and twice the load, and explores less.
"""
LEARNERS = ("ppo", "a2c", "dqn")
NAMES = {PAPER: "MBLinUCB", OURS: "MBLinUCB, ours", LINUCB: "LinUCB"} | {
    name: name.upper() for name in LEARNERS
}
BEST_FIXED = "fixed"
"""The best parallelism that is never changed. It is found by trying all of them."""
LOADS = {"poisson": 10_000, "pareto": 10_000, "flights-by-hour": 20_000}
"""Loads, and how many steps each has."""
LEARNER_STEPS = 5_000
LOAD_NAMES = {
    "poisson": "Poisson(100/s)",
    "pareto": "Pareto(2, 50/s) in each step",
    "flights-by-hour": "flights by the hour",
}
OPERATORS = {"mu=5": {"mu": 5.0}, "mu=20": {"mu": 20.0}, "rho=0.5": {"rho": 0.5}, "rho=0.7": {"rho": 0.7}}
"""Operators of figures 8 and 9. Each differs in one value from the default operator (mu = 10, rho = 0.9)."""
OPERATOR_STEPS = 3_000
UNKNOWN = {
    f"rho={rho:g}, {bound}": {"rho": rho, "omega_max": tuples}
    for rho in (0.3, 0.5, 0.7, 0.9)
    for bound, tuples in (("queue of 1 s", None), ("queue of 10 s", 1_000.0))
    if (rho, tuples) != (0.9, None)
}
"""Other values of what the paper does not say: rho and the bound of the queue, here what comes in 1 s (the
latency budget) or in 10 s (a step). `load_cell` has rho 0.9 with 1 s."""
UNKNOWN_LOAD, UNKNOWN_STEPS = "poisson", 2_000
"""The load under which all of them are played, and the steps of each."""


def load_cell(plan: RunPlan, load: str, policy: str) -> Cell:
    """Figures 5-7: a policy under a load."""
    steps = LEARNER_STEPS if policy in LEARNERS else LOADS[load]
    return Cell(NAME, "load", Stream(load, plan.pick(steps, 150)), KMAX, policy)


def operator_cell(plan: RunPlan, operator: str, policy: str) -> Cell:
    """Figures 8-9: another operator."""
    return Cell(NAME, operator, Stream("poisson", plan.pick(OPERATOR_STEPS, 150)), KMAX, policy)


def unknown_cell(plan: RunPlan, load: str, unknown: str, policy: str) -> Cell:
    """Figures 5-7 with other values of what the paper does not say."""
    return Cell(NAME, unknown, Stream(load, plan.pick(UNKNOWN_STEPS, 150)), KMAX, policy)


def unknown_settings() -> list[tuple[str, str]]:
    """Pairs (load, other values). Loads other than `UNKNOWN_LOAD` have the bound of 1 s only."""
    return [
        (load, unknown)
        for load, unknown in product(LOADS, UNKNOWN)
        if load == UNKNOWN_LOAD or UNKNOWN[unknown]["omega_max"] is None
    ]


def doubling_cell(plan: RunPlan, policy: str) -> Cell:
    """Ours: the load doubles half-way."""
    return Cell(NAME, "doubling", Stream("poisson", plan.pick(1_000, 150)), KMAX, policy)


def cells(plan: RunPlan) -> list[Cell]:
    """Every load with every policy, other operators, and the load that doubles."""
    cells_of_page = [load_cell(plan, *at) for at in product(LOADS, (*NAMES, BEST_FIXED))]
    cells_of_page += [operator_cell(plan, *at) for at in product(OPERATORS, (PAPER, LINUCB))]
    for load, unknown in unknown_settings():
        cells_of_page += [unknown_cell(plan, load, unknown, policy) for policy in (PAPER, LINUCB, *LEARNERS)]
    return cells_of_page + [doubling_cell(plan, policy) for policy in (PAPER, WIDER, LINUCB)]
