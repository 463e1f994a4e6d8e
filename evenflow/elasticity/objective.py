"""The reward of 003 (eq. 9): how good a parallelism was, from the latency bound, the queue and the units used."""

from __future__ import annotations

from dataclasses import dataclass

from evenflow.elasticity.queues import latency_bound


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of one step of one operator.

    arrivals, service: tuples/s. waiting: tuples that waited when the step began. queue: tuples that waited when it
    ended. units: how many were used.
    """

    arrivals: float
    service: float
    waiting: float
    queue: float
    units: int


@dataclass(frozen=True, kw_only=True)
class Objective:
    """What is wanted from one operator.

    latency_s: its latency budget in seconds. most_units: the units that cost the full -1. most_queue: tuples
    that may wait. None means as many as arrive within the latency budget (Little's law).
    """

    latency_s: float
    most_units: int
    most_queue: float | None = None
    weights: tuple[float, float, float] = (1 / 3, 1 / 3, 1 / 3)
    """Weights of latency, queue and units in the reward."""

    def reward(self, seen: Outcome) -> float:
        """The reward of a step. With weights that add up to 1 it lies between -1 (all is bad) and 0."""
        limit = seen.arrivals * self.latency_s if self.most_queue is None else self.most_queue
        bad = (
            latency_bound(seen.arrivals, seen.service, seen.waiting) > self.latency_s,
            seen.queue > limit,
            seen.units / self.most_units,
        )
        return -sum(weight * part for weight, part in zip(self.weights, bad, strict=True))
