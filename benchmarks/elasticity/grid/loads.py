"""The loads of the grid: tuples/s of each step of 10 s, and the operator that they come to.

Three are the workloads of Siachamis et al., "Evaluating Stream Processing Autoscalers", DEBS 2024, as the
generators in the authors' repository (espa-autoscaling) draw them for their first query. A minute of theirs
is a step here, the rates are divided by 2,000, and their random numbers are not known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenflow.elasticity.simulated.arrivals import Arrivals, Pareto, Poisson, Trace
from evenflow.elasticity.simulated.operators import Operator
from evenflow.numeric.arrays import Float64s

STEP_S = 10.0
KMAX = 64


@dataclass(frozen=True, kw_only=True)
class Load:
    """A column of the tables."""

    name: str
    """Heading of the column."""
    words: str
    """What comes, as the page says it."""
    arrivals: Arrivals
    """When tuples come, and how many."""
    operator: Operator
    """What processes them."""


def _repeated(rates: Float64s) -> Trace:
    return Trace(rates * STEP_S, period_s=STEP_S, step_s=STEP_S)


def _stretches(*stretches: tuple[float, int]) -> Trace:
    """So many tuples/s for so many steps, one stretch after the other."""
    return _repeated(np.concatenate([np.full(steps, rate) for rate, steps in stretches]))


_DEBS_STEPS = 140
_DEBS_SEED = 23
_DEBS_SCALE = 1 / 2_000
"""Their first query begins with 150,000 tuples/s, ours with 75."""


def _debs_cosine() -> Trace:
    """A wave of 60 steps around 150,000 by 100,000, and noise up to 10,000."""
    steps = np.arange(_DEBS_STEPS)
    noise = np.random.default_rng(_DEBS_SEED).uniform(-10_000, 10_000, _DEBS_STEPS)
    return _repeated(np.abs(150_000 + 100_000 * np.cos(2 * np.pi * steps / 60) + noise) * _DEBS_SCALE)


def _debs_walk() -> Trace:
    """A random walk from 150,000."""
    moves = np.random.default_rng(_DEBS_SEED).uniform(-10_000, 10_000, _DEBS_STEPS)
    return _repeated(np.abs(150_000 + np.cumsum(moves)) * _DEBS_SCALE)


def _debs_rising() -> Trace:
    """A random walk from 2,000 that goes up more than down."""
    moves = np.random.default_rng(_DEBS_SEED).uniform(-240_000 / 30, 240_000 / 22, _DEBS_STEPS)
    return _repeated(np.abs(2_000 + np.cumsum(moves)) * _DEBS_SCALE)


_PLAIN, _SERIAL = Operator(rho=0.9), Operator(rho=0.3)
_DOUBLING = _stretches((80, 50), (160, 50))

LOADS: tuple[Load, ...] = tuple(
    Load(name=name, words=words, arrivals=arrivals, operator=operator)
    for name, words, arrivals, operator in (
        ("steady", "100 tuples/s", Poisson(100), _PLAIN),
        ("doubling", "80, and 160 tuples/s, 50 steps each", _DOUBLING, _PLAIN),
        (
            "staircase",
            "40, 80, 120, 160 tuples/s, 40 steps each",
            _stretches((40, 40), (80, 40), (120, 40), (160, 40)),
            _PLAIN,
        ),
        (
            "sine",
            "40 to 160 tuples/s within 60 steps",
            _repeated(100 - 60 * np.cos(2 * np.pi * np.arange(60) / 60)),
            _PLAIN,
        ),
        ("flash", "50 tuples/s, for 8 of 80 steps 150", _stretches((50, 72), (150, 8)), _PLAIN),
        (
            "outage",
            "100 tuples/s, nothing for 20 steps, then 180 for 20",
            _stretches((100, 60), (0, 20), (180, 20)),
            _PLAIN,
        ),
        (
            "overhead",
            "as doubling, and each step has a fixed cost of 20 %",
            _DOUBLING,
            Operator(rho=0.9, overhead=0.2),
        ),
        ("serial", "as doubling, with rho 0.3", _DOUBLING, _SERIAL),
        ("cosine", "DEBS 2024: 25 to 125 tuples/s within 60 steps, and noise", _debs_cosine(), _PLAIN),
        ("walk", "DEBS 2024: from 75 tuples/s by at most 5 up or down in each step", _debs_walk(), _PLAIN),
        (
            "rising",
            "DEBS 2024: starts at 1 tuple/s and changes by -4 to +5.5 per step",
            _debs_rising(),
            _PLAIN,
        ),
        ("wild", "another rate in each step, of a Pareto law (2, 50)", Pareto(alpha=2, least=50), _PLAIN),
        ("wild serial", "as wild, with rho 0.3", Pareto(alpha=2, least=50), _SERIAL),
    )
)
STATED = tuple(load.name for load in LOADS if not load.name.startswith("wild"))
"""The loads that a default can be recommended for. Under the others the next step has nothing to do with
the last one.
"""
