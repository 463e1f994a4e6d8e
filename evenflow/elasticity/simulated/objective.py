"""The reward of a step of one operator: how good its parallelism was. There are three forms.

| form | latency | queue | units |
|---|---|---|---|
| `paper` (003, eq. 9) | -1 if the bound is above the budget | -1 if more wait than may | -units / all units |
| `linear` (003, III.B) | -bound / budget, at least -1 | as `paper` | as `paper` |
| `backlog` (ours) | as `paper` | -log2(1 + drain time / budget) | as `paper` |

Each is the sum of the three, weighted. Once a backlog has formed, `paper` pays -1 for latency and -1 for the
queue, however long the queue gets. Then the fewest units pay best, and a policy that learns from it lets the
queue grow for ever. `backlog` prevents this: the drain time is the time in which the units in use would serve
what waits, so its penalty grows with the queue, and more units make it smaller.

What the paper leaves open is decided here. The latency bound counts the tuples that wait when the step
*begins*, because the bound is about tuples that come in the step. The queue is judged when the step *ends*,
because that is what the choice left behind. A bound or a queue exactly at its limit is within it. `linear` is
cut off at -1, because the bound of an unstable queue is infinite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from evenflow.elasticity.simulated.queues import latency_bound

Form = Literal["paper", "linear", "backlog"]
LEAST_SERVICE = 1e-9
"""A part that does fewer tuples/s counts as one that does so many. So a drain time is finite."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of one step of one operator."""

    arrivals: float
    """Tuples/s that arrived."""
    service: float
    """Tuples/s that the units in use could serve."""
    waiting: float
    """Tuples that waited when the step began."""
    queue: float
    """Tuples that waited when the step ended."""
    units: int
    """How many units were used."""


@dataclass(frozen=True, kw_only=True)
class Objective:
    """What is wanted from one operator."""

    latency_s: float
    """The operator's latency budget, s."""
    most_units: int
    """The units that cost the full -1."""
    most_queue: float | None = None
    """Tuples that may wait. None means as many as arrive within the latency budget (Little's law). `backlog`
    does not use it."""
    weights: tuple[float, float, float] = (1 / 3, 1 / 3, 1 / 3)
    """Weights of latency, queue and units in the reward."""
    form: Form = "paper"
    """Which of the module's three rewards is paid."""
    step_s: float = 0.0
    """Seconds from one decision to the next. Only the context of `backlog` uses it (`agents`)."""

    def reward(self, outcome: Outcome) -> float:
        """The reward of a step, at most 0.

        With weights that add up to 1, `paper` and `linear` are at least -1. `backlog` has no least value.
        """
        bad = (self._late(outcome), self._waits(outcome), outcome.units / self.most_units)
        return -sum(weight * part for weight, part in zip(self.weights, bad, strict=True))

    def _late(self, outcome: Outcome) -> float:
        bound = latency_bound(outcome.arrivals, outcome.service, outcome.waiting)
        if self.form == "linear":
            return min(bound / self.latency_s, 1.0)
        return float(bound > self.latency_s)

    def _waits(self, outcome: Outcome) -> float:
        if self.form == "backlog":
            return math.log2(1 + outcome.queue / max(outcome.service, LEAST_SERVICE) / self.latency_s)
        limit = outcome.arrivals * self.latency_s if self.most_queue is None else self.most_queue
        return float(outcome.queue > limit)
