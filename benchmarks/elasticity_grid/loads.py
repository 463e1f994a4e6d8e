"""The loads of the grid: tuples/s of each step of 10 s, and the operator that they come to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenflow.arrays import Float64s
from evenflow.elasticity.arrivals import Arrivals, Pareto, Poisson, Trace
from evenflow.elasticity.operators import Operator

STEP_S = 10.0
KMAX = 64


@dataclass(frozen=True, kw_only=True)
class Load:
    """A column of the tables. words: what comes, as the page says it."""

    name: str
    words: str
    arrivals: Arrivals
    operator: Operator


def _repeated(rates: Float64s) -> Trace:
    return Trace(rates * STEP_S, period_s=STEP_S, step_s=STEP_S)


def _of(*stretches: tuple[float, int]) -> Trace:
    """So many tuples/s for so many steps, one stretch after the other."""
    return _repeated(np.concatenate([np.full(steps, rate) for rate, steps in stretches]))


_PLAIN, _SERIAL = Operator(rho=0.9), Operator(rho=0.3)
_DOUBLING = _of((80, 50), (160, 50))

LOADS: tuple[Load, ...] = tuple(
    Load(name=name, words=words, arrivals=arrivals, operator=operator)
    for name, words, arrivals, operator in (
        ("steady", "100 tuples/s", Poisson(100), _PLAIN),
        ("doubling", "80, and 160 tuples/s, 50 steps each", _DOUBLING, _PLAIN),
        (
            "staircase",
            "40, 80, 120, 160 tuples/s, 40 steps each",
            _of((40, 40), (80, 40), (120, 40), (160, 40)),
            _PLAIN,
        ),
        (
            "sine",
            "40 to 160 tuples/s within 60 steps",
            _repeated(100 - 60 * np.cos(2 * np.pi * np.arange(60) / 60)),
            _PLAIN,
        ),
        ("flash", "50 tuples/s, for 8 of 80 steps 150", _of((50, 72), (150, 8)), _PLAIN),
        (
            "outage",
            "100 tuples/s, nothing for 20 steps, then 180 for 20",
            _of((100, 60), (0, 20), (180, 20)),
            _PLAIN,
        ),
        (
            "overhead",
            "as doubling, and 20 % of each step goes to no tuple",
            _DOUBLING,
            Operator(rho=0.9, overhead=0.2),
        ),
        ("serial", "as doubling, with rho 0.3", _DOUBLING, _SERIAL),
        ("wild", "another rate in each step, of a Pareto law (2, 50)", Pareto(alpha=2, least=50), _PLAIN),
        ("wild serial", "as wild, with rho 0.3", Pareto(alpha=2, least=50), _SERIAL),
    )
)
STATED = tuple(load.name for load in LOADS if not load.name.startswith("wild"))
"""The loads that a default can be recommended for. Under the others the next step has nothing to do with the last one."""
