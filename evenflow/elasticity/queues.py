"""Queue models of an operator (003, II.B): its service rate with k instances, its latency bound, a simulated step.

Rates are tuples/s, times seconds. An operator with k instances is one server with the rate `service_rate(k)`. Gaps
between arrivals and service times are drawn from gamma laws with a given coefficient of variation, so 1 and 1 is M/M/1
and anything else a G/G/1. Waits follow Lindley's recursion, for all tuples of a step at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from evenflow.arrays import Float64s

_Number = TypeVar("_Number", float, Float64s)
LN20 = math.log(20)
"""An exponential time stays below LN20 means in 95 of 100 cases."""
_NONE = 1e-9
"""So few tuples of a step are none."""
_SPARE = 6
"""Standard deviations by which more services are drawn than a step is expected to hold."""


def service_rate(instances: _Number, *, mu: float, rho: float) -> _Number:
    """Gustafson's law: tuples/s of k instances when one does `mu` and the share `rho` of the work is parallel."""
    return (1 - rho + rho * instances) * mu


def latency_bound(arrivals: float, service: float, queue: float) -> float:
    """Seconds within which 95 of 100 tuples are done when `queue` of them wait at first. Infinite when not stable."""
    if service <= arrivals:
        return math.inf
    return LN20 / (service - arrivals) + queue * LN20 / service


def lindley(gaps: Float64s, services: Float64s, *, first: float = 0.0) -> Float64s:
    """Seconds that each tuple waits, shape (n,): tuple i comes `gaps[i]` after the one before and takes `services[i]`.

    `first` is the work, in seconds, that waits when the clock of the first gap begins.
    """
    steps = -gaps
    steps[1:] += services[:-1]
    walk = np.cumsum(steps)
    return np.maximum(walk + first, walk - np.minimum.accumulate(walk))


@dataclass(frozen=True)
class Served:
    """A step of a queue. latency_s: 95th percentile of what the tuples that came need until they are done, also where
    that is after the step. None when none came."""

    arrivals: int
    departures: int
    queue: int
    latency_s: float | None


@dataclass(frozen=True, kw_only=True)
class QueueModel:
    """Laws of a G/G/1 queue by their coefficients of variation (standard deviation over mean, 1: exponential).

    A tuple in service when a step ends is served anew in the next one, at that step's rate (no difference for M/M/1).
    """

    arrival_cv: float = 1.0
    service_cv: float = 1.0

    def step(
        self, rng: np.random.Generator, *, arrivals: float, service: float, queue: int, length_s: float
    ) -> Served:
        """A step of `length_s`: tuples come at the rate `arrivals` and are served at the rate `service`."""
        drawn = min(queue, _enough(service * length_s, self.service_cv))
        waiting = np.cumsum(_times(rng, drawn, self.service_cv, service))
        # Of those that cannot be reached within the step only the mean is reckoned with.
        work = (float(waiting[-1]) if drawn else 0.0) + (queue - drawn) / service
        done = int(np.searchsorted(waiting, length_s, side="right"))
        gaps = _times(rng, _enough(arrivals * length_s, self.arrival_cv), self.arrival_cv, arrivals)
        moments = np.cumsum(gaps)
        came = int(np.searchsorted(moments, length_s))
        if not came:
            return Served(0, done, queue - done, None)
        services = _times(rng, came, self.service_cv, service)
        stays = lindley(gaps[:came], services, first=work) + services
        done += int(np.count_nonzero(moments[:came] + stays <= length_s))
        return Served(came, done, queue + came - done, _percentile(stays))


def _percentile(values: Float64s) -> float:
    """The 95th, by nearest rank."""
    rank = math.ceil(0.95 * len(values)) - 1
    return float(np.partition(values, rank)[rank])


def _enough(mean: float, cv: float) -> int:
    """More than will be needed where `mean` are expected. 0 where none is."""
    return math.ceil(mean + _SPARE * max(1, cv) * (1 + math.sqrt(mean))) if mean > _NONE else 0


def _times(rng: np.random.Generator, count: int, cv: float, rate: float) -> Float64s:
    if not count:
        return np.empty(0)
    if cv == 0:
        return np.full(count, 1 / rate)
    drawn = rng.standard_exponential(count) if cv == 1 else rng.standard_gamma(1 / cv**2, count) * cv**2
    return drawn / rate
