"""The agent of one part of the chain (003, III.B): it chooses the part's parallelism with a contextual bandit.

The context of k units has three features, the last two as shares of the part's latency budget:

* the constant 1;
* the latency bound without a queue, `ln 20 / (mu(k) - lambda)`;
* what the queue adds to this bound, `omega ln 20 / mu(k)`.

Both shares are cut off at 1, because the reward does not depend on how far a budget is missed.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evenflow.arrays import Float64s
from evenflow.elasticity.disjoint import DisjointLinUCB
from evenflow.elasticity.objective import Objective, Outcome
from evenflow.elasticity.queues import LN20, service_rate

WIDTH = 3
"""Number of features in a context."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """The work of a part. arrivals: tuples/s. mu: tuples/s that one unit can do. queue: tuples that wait."""

    arrivals: float
    mu: float
    queue: float


class Agent:
    """Chooses between `least` and `most` units of p or r (both included).

    rho: share of the work that is parallel. alpha: weight of the doubt in the bandit's upper bounds.
    """

    def __init__(self, *, least: int, most: int, rho: float, alpha: float) -> None:
        self.least, self.most, self.rho = least, most, rho
        self.bandit = DisjointLinUCB(arms=most - least + 1, width=WIDTH, alpha=alpha)
        self._before: Load | None = None
        """The load for which the last choice was made. None when no choice waits to be judged."""

    def contexts(self, load: Load, latency_s: float) -> Float64s:
        """The context of each number of units, shape (arms, WIDTH). latency_s: the part's budget in seconds."""
        rates = service_rate(np.arange(self.least, self.most + 1, dtype=np.float64), mu=load.mu, rho=self.rho)
        # With at least this much spare rate, `alone` is at most 1. It also covers an unstable queue (spare <= 0).
        spare = np.maximum(rates - load.arrivals, LN20 / latency_s)
        alone = LN20 / (spare * latency_s)
        queued = np.minimum(load.queue * LN20 / (rates * latency_s), 1)
        return np.column_stack((np.ones(len(rates)), alone, queued))

    def choose(self, load: Load, latency_s: float) -> int:
        """The number of units with the highest upper bound of reward."""
        return self.least + self.bandit.choose(self.contexts(load, latency_s))

    def settled(self, load: Load, latency_s: float) -> int:
        """The number of units with the highest expected reward. It does not explore."""
        return self.least + int(np.argmax(self.bandit.expected(self.contexts(load, latency_s))))

    def await_outcome(self, load: Load) -> None:
        """A choice has been made for this load. `judge` will learn from its outcome."""
        self._before = load

    def move_on(self, load: Load) -> None:
        """The load has become this one before the choice took effect. Only a choice that waits is judged from here."""
        if self._before is not None:
            self._before = load

    def forget_choice(self) -> None:
        """The outcome of the last choice will not be known, so no choice waits to be judged."""
        self._before = None

    def judge(self, units: int, after: Load, objective: Objective) -> None:
        """Learn from the outcome of a choice: `units` served the load that it was made for, and left the load `after`.

        Nothing is learnt when no choice waits to be judged, or when `units` is outside the agent's range.
        """
        if self._before is None or not self.least <= units <= self.most:
            return
        seen = Outcome(
            arrivals=after.arrivals,
            service=service_rate(units, mu=after.mu, rho=self.rho),
            waiting=self._before.queue,
            queue=after.queue,
            units=units,
        )
        arm = units - self.least
        context = self.contexts(self._before, objective.latency_s)[arm]
        self.bandit.learn(arm, context, objective.reward(seen))

    def says(self, units: int, load: Load, latency_s: float) -> str:
        """Why this number of units was chosen, in words."""
        contexts, arm = self.contexts(load, latency_s), units - self.least
        expected, doubt = self.bandit.expected(contexts)[arm], self.bandit.doubt(contexts)[arm]
        return (
            f"{units} of {self.least}..{self.most} for {load.arrivals:.4g} tuples/s at {load.mu:.4g} each and "
            f"{load.queue:.4g} waiting (reward {expected:.2f}, at most {expected + doubt:.2f})"
        )

    def state(self) -> dict[str, Any]:
        """What the agent remembers, as plain JSON."""
        return {
            "before": None if self._before is None else asdict(self._before),
            "bandit": self.bandit.state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned. Raises ValueError, KeyError or TypeError for anything else."""
        self.bandit.load_state(state["bandit"])
        self._before = None if state["before"] is None else read_load(state["before"])


def read_load(fields: dict[str, Any]) -> Load:
    """A load from plain JSON. Raises ValueError, KeyError or TypeError for anything else."""
    load = Load(**{name: float(fields[name]) for name in ("arrivals", "mu", "queue")})
    if not (0 <= load.arrivals < math.inf and 0 < load.mu < math.inf and 0 <= load.queue < math.inf):
        raise ValueError(f"no load: {fields}")
    return load
