"""The reward of 003 (eq. 9): what a parallelism is worth, from the latency bound, the queue and the instances used."""

from __future__ import annotations

from dataclasses import dataclass

from evenflow.elasticity.queues import latency_bound


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A step of one operator. arrivals, service: tuples/s. waiting: tuples at its beginning, queue: at its end."""

    arrivals: float
    service: float
    waiting: float
    queue: float
    instances: int


@dataclass(frozen=True, kw_only=True)
class Objective:
    """What is wanted of one operator. most_queue None: the tuples that come within the latency budget (Little's law)."""

    latency_s: float
    most_instances: int
    most_queue: float | None = None
    weights: tuple[float, float, float] = (1 / 3, 1 / 3, 1 / 3)
    """Of latency, queue and instances."""

    def reward(self, seen: Outcome) -> float:
        """From -1 (all is bad) to 0."""
        limit = seen.arrivals * self.latency_s if self.most_queue is None else self.most_queue
        bad = (
            latency_bound(seen.arrivals, seen.service, seen.waiting) > self.latency_s,
            seen.queue > limit,
            seen.instances / self.most_instances,
        )
        return -sum(weight * part for weight, part in zip(self.weights, bad, strict=True))
