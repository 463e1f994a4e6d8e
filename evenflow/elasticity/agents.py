"""The agent of one part of the chain (003, III.B): it keeps the part's parallelism by a contextual bandit.

Context of k instances: 1, the part's latency bound without a queue over its budget, `ln 20 / (mu(k) - lambda)`, and what
the queue adds to it, `omega ln 20 / mu(k)`. Both end at 1, as the reward does not ask how far a budget is missed.
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
"""Features of a context."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """What a part has to do. arrivals: tuples/s, mu: tuples/s of one instance, queue: tuples that wait."""

    arrivals: float
    mu: float
    queue: float


class Agent:
    """Chooses from `least` to `most` instances. rho: share of the work that is parallel."""

    def __init__(self, *, least: int, most: int, rho: float, alpha: float) -> None:
        self.least, self.most, self.rho = least, most, rho
        self.bandit = DisjointLinUCB(arms=most - least + 1, width=WIDTH, alpha=alpha)
        self.before: Load | None = None
        """What the choice that has not been judged yet was made on."""

    def contexts(self, load: Load, latency_s: float) -> Float64s:
        """The context of each number of instances, shape (arms, WIDTH)."""
        rates = service_rate(np.arange(self.least, self.most + 1, dtype=np.float64), mu=load.mu, rho=self.rho)
        spare = np.maximum(rates - load.arrivals, LN20 / latency_s)
        alone = LN20 / (spare * latency_s)
        queued = np.minimum(load.queue * LN20 / (rates * latency_s), 1)
        return np.column_stack((np.ones(len(rates)), alone, queued))

    def choose(self, load: Load, latency_s: float) -> int:
        """Instances with the highest upper bound of reward."""
        return self.least + self.bandit.choose(self.contexts(load, latency_s))

    def settled(self, load: Load, latency_s: float) -> int:
        """Instances with the highest expected reward."""
        return self.least + int(np.argmax(self.bandit.expected(self.contexts(load, latency_s))))

    def judge(self, instances: int, after: Load, objective: Objective) -> None:
        """So many instances served what `before` said, and then this is seen. Of numbers that are no choice it says
        nothing."""
        if self.before is None or not self.least <= instances <= self.most:
            return
        seen = Outcome(
            arrivals=after.arrivals,
            service=service_rate(instances, mu=after.mu, rho=self.rho),
            waiting=self.before.queue,
            queue=after.queue,
            instances=instances,
        )
        arm = instances - self.least
        context = self.contexts(self.before, objective.latency_s)[arm]
        self.bandit.learn(arm, context, objective.reward(seen))

    def says(self, instances: int, load: Load, latency_s: float) -> str:
        """Why so many, in words."""
        contexts, arm = self.contexts(load, latency_s), instances - self.least
        expected, doubt = self.bandit.expected(contexts)[arm], self.bandit.doubt(contexts)[arm]
        return (
            f"{instances} of {self.least}..{self.most} for {load.arrivals:.4g} tuples/s at {load.mu:.4g} each and "
            f"{load.queue:.4g} waiting (reward {expected:.2f}, at most {expected + doubt:.2f})"
        )

    def state(self) -> dict[str, Any]:
        """As plain JSON."""
        return {
            "before": None if self.before is None else asdict(self.before),
            "bandit": self.bandit.state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what `state` gave. ValueError, KeyError or TypeError for anything else."""
        self.bandit.load_state(state["bandit"])
        self.before = None if state["before"] is None else read_load(state["before"])


def read_load(fields: dict[str, Any]) -> Load:
    """A load as plain JSON has it. ValueError or KeyError for anything else."""
    load = Load(**{name: float(fields[name]) for name in ("arrivals", "mu", "queue")})
    if not (0 <= load.arrivals < math.inf and 0 < load.mu < math.inf and 0 <= load.queue < math.inf):
        raise ValueError(f"no load: {fields}")
    return load
