"""The agent of one part of the chain (003, III.B):
it chooses the part's parallelism with a contextual bandit.

The context of k units has three features, the last two as shares of the part's latency budget:

* the constant 1;
* the latency bound without a queue, `ln 20 / (mu(k) - lambda)`;
* what the queue adds to this bound, `omega ln 20 / mu(k)`.

Both shares are cut off at 1, because the rewards `paper` and `linear` do not depend on how far a budget is
missed. The reward `backlog` does. Its context has a fourth feature without a limit:
`log2(1 + drain time / budget)` at the end of the step, where the queue is `omega + (lambda - mu(k)) * step`,
if the load stays as it is. In this feature the reward is linear.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, TypeGuard

import numpy as np

from evenflow.elasticity.learning.disjoint import DisjointLinUCB
from evenflow.elasticity.simulated.objective import LEAST_SERVICE, Form, Objective, Outcome
from evenflow.elasticity.simulated.queues import LN20, service_rate
from evenflow.numeric.arrays import Float64s

WIDTHS: dict[Form, int] = {"paper": 3, "linear": 3, "backlog": 4}
"""Number of features in a context."""
_MOST = 1e100
"""Most tuples, or tuples/s, that count as measured. So nothing that is computed from them overflows."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """The work of a part."""

    arrivals: float
    """Tuples/s that arrive."""
    mu: float
    """Tuples/s that one unit can do."""
    queue: float
    """Tuples that wait."""


class Agent:
    """Chooses between `least` and `most` units of p or r (both included).

    rho: share of the work that is parallel. alpha: weight of the doubt in the bandit's upper bounds. form: of
    the objectives that the agent will be given.
    """

    def __init__(self, *, least: int, most: int, rho: float, alpha: float, form: Form = "paper") -> None:
        self.least, self.most, self.rho = least, most, rho
        self.bandit = DisjointLinUCB(arms=most - least + 1, width=WIDTHS[form], alpha=alpha)
        self._before: Load | None = None
        """The load for which the last choice was made. None when no choice waits to be judged."""

    def contexts(self, load: Load, objective: Objective) -> Float64s:
        """The context of each number of units, shape (arms, width)."""
        latency_s = objective.latency_s
        units = np.arange(self.least, self.most + 1, dtype=np.float64)
        rates = np.maximum(service_rate(units, mu=load.mu, rho=self.rho), LEAST_SERVICE)
        # With at least this much spare rate, `alone` is at most 1. It also covers an unstable queue (spare <=
        # 0).
        spare = np.maximum(rates - load.arrivals, LN20 / latency_s)
        features = [
            np.ones(len(rates)),
            LN20 / (spare * latency_s),
            np.minimum(load.queue * LN20 / (rates * latency_s), 1),
        ]
        if objective.form == "backlog":
            left = np.maximum(load.queue + (load.arrivals - rates) * objective.step_s, 0)
            features.append(np.log2(1 + left / (rates * latency_s)))
        return np.column_stack(features)

    def choose(self, load: Load, objective: Objective, *, least: int | None = None) -> int:
        """The number of units with the highest upper bound of reward. Of equals, the most.

        least: a smaller number is not chosen. None: `self.least`. A number outside the agent's range becomes
        the nearest one within.
        """
        # The first arm that may be chosen.
        first = 0 if least is None else min(max(least, self.least), self.most) - self.least
        return self.least + self.bandit.choose(self.contexts(load, objective), first=first)

    def settled(self, load: Load, objective: Objective) -> int:
        """The number of units with the highest expected reward. It does not explore. Of equals, the
        fewest.
        """
        return self.least + int(np.argmax(self.bandit.expected(self.contexts(load, objective))))

    def await_outcome(self, load: Load) -> None:
        """A choice has been made for this load. `judge` will learn from its outcome."""
        self._before = load

    def move_on(self, load: Load) -> None:
        """The load has become this one before the choice took effect.
        Only a choice that waits is judged from here.
        """
        if self._before is not None:
            self._before = load

    def forget_choice(self) -> None:
        """The outcome of the last choice will not be known, so no choice waits to be judged."""
        self._before = None

    def judge(self, units: int, after: Load, objective: Objective) -> None:
        """Learn from the outcome of a choice: `units` served the load that it was made for,
        and left the load `after`.

        Nothing is learnt when no choice waits to be judged, or when `units` is outside the agent's range.
        """
        if self._before is None or not self.least <= units <= self.most:
            return
        outcome = Outcome(
            arrivals=after.arrivals,
            service=service_rate(units, mu=after.mu, rho=self.rho),
            waiting=self._before.queue,
            queue=after.queue,
            units=units,
        )
        arm = units - self.least
        # The context in which the choice was made. The load after it is in the reward only.
        context = self.contexts(self._before, objective)[arm]
        self.bandit.learn(arm, context, objective.reward(outcome))

    def explanation(self, units: int, load: Load, objective: Objective) -> str:
        """Why this number of units was chosen, in words."""
        contexts, arm = self.contexts(load, objective), units - self.least
        expected, doubt = self.bandit.expected(contexts)[arm], self.bandit.doubt(contexts)[arm]
        return (
            f"{units} of {self.least}..{self.most} for {load.arrivals:.4g} tuples/s at {load.mu:.4g} each and"
            f" {load.queue:.4g} waiting (reward {expected:.2f}, at most {expected + doubt:.2f})"
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


def is_amount(value: float | None) -> TypeGuard[float]:
    """Whether a number of tuples, or of tuples/s, is known and credible: from 0 to 1e100."""
    return value is not None and 0 <= value <= _MOST


def read_load(fields: dict[str, Any]) -> Load:
    """A load from plain JSON. Raises ValueError, KeyError or TypeError for anything else."""
    load = Load(**{name: float(fields[name]) for name in ("arrivals", "mu", "queue")})
    if not (is_amount(load.arrivals) and is_amount(load.mu) and load.mu and is_amount(load.queue)):
        raise ValueError(f"no load: {fields}")
    return load
