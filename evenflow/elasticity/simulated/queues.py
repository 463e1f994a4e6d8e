"""Queue models of an operator (003, II.B): its service rate with k units, its latency bound,
a simulated step.

Rates are in tuples/s, times in seconds. An operator with k units is modelled as one server with the rate
`service_rate(k)`. Gaps between arrivals and service times are drawn from gamma laws with given coefficients
of variation. If both coefficients are 1, the queue is M/M/1, otherwise G/G/1. Waiting times follow Lindley's
recursion, computed for all tuples of a step at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from evenflow.numeric.arrays import Float64s

_Number = TypeVar("_Number", float, Float64s)
LN20 = math.log(20)
"""ln 20: an exponential time is shorter than LN20 times its mean in 95 of 100 cases."""
_NONE = 1e-9
"""A step that is expected to hold no more tuples than this holds none."""
_SPARE = 6
"""More times are drawn than a step is expected to need, by this many standard deviations."""


def service_rate(units: _Number, *, mu: float, rho: float) -> _Number:
    """Tuples/s of k units by Gustafson's law: one unit does `mu`, the share `rho` of the work is parallel."""
    return (1 - rho + rho * units) * mu


def latency_bound(arrivals: float, service: float, queue: float) -> float:
    """Seconds within which 95 of 100 tuples are done when `queue` tuples wait at first (003, II.B).

    Infinite when the queue is not stable, that is when the service rate is not above the arrival rate.
    """
    if service <= arrivals:
        return math.inf
    return LN20 / (service - arrivals) + queue * LN20 / service


def lindley(gaps: Float64s, services: Float64s, *, first: float = 0.0) -> Float64s:
    """Seconds that each tuple waits before it is served, shape (n,).

    Tuple i comes `gaps[i]` seconds after tuple i - 1 and takes `services[i]` seconds. `first` is the work, in
    seconds, that waits when the first gap begins.
    """
    steps = -gaps
    steps[1:] += services[:-1]
    # wait[i] = max(0, wait[i-1] + steps[i]) is a random walk that is reflected at 0. A reflected walk is the
    # free walk less its smallest value so far, so no loop over the tuples is needed.
    walk = np.cumsum(steps)
    return np.maximum(walk + first, walk - np.minimum.accumulate(walk))


@dataclass(frozen=True)
class QueueStep:
    """The outcome of one step of a queue."""

    arrivals: int
    """Tuples that came in the step."""
    departures: int
    """Tuples that were done in the step."""
    queue: int
    """Tuples left when the step ended."""
    latency_s: float | None
    """95th percentile of the time from a tuple's arrival until it is done, over the tuples that came in the
    step, even if they are done after it. None if no tuple came."""


@dataclass(frozen=True, kw_only=True)
class QueueModel:
    """The laws of a G/G/1 queue, given by their coefficients of variation (standard deviation over mean).

    A coefficient of 1 makes the times exponential. A tuple that is in service when a step ends is served from
    its beginning in the next step, at that step's rate. For M/M/1 this makes no difference.
    """

    arrival_cv: float = 1.0
    """Coefficient of variation of the gaps between arrivals."""
    service_cv: float = 1.0
    """Coefficient of variation of the service times."""

    def step(
        self,
        rng: np.random.Generator,
        *,
        arrivals: float,
        service: float,
        queue: int,
        length_s: float,
        pause_s: float = 0.0,
    ) -> QueueStep:
        """Simulate `length_s` seconds: tuples come at the rate `arrivals` and are served
        at the rate `service`.

        queue: tuples that wait when the step begins. Waiting tuples are served before those that come.
        pause_s: seconds from the beginning of the step on in which none is served.
        """
        drawn = min(queue, _enough(service * length_s, self.service_cv))
        waiting = np.cumsum(_times(rng, drawn, self.service_cv, service)) + pause_s
        # Waiting tuples beyond those drawn cannot be reached within the step. Their mean service time
        # suffices.
        work = (float(waiting[-1]) if drawn else pause_s) + (queue - drawn) / service
        done = int(np.searchsorted(waiting, length_s, side="right"))
        gaps = _times(rng, _enough(arrivals * length_s, self.arrival_cv), self.arrival_cv, arrivals)
        moments = np.cumsum(gaps)
        arrival_count = int(np.searchsorted(moments, length_s))
        if not arrival_count:
            return QueueStep(0, done, queue - done, None)
        services = _times(rng, arrival_count, self.service_cv, service)
        stays = lindley(gaps[:arrival_count], services, first=work) + services
        done += int(np.count_nonzero(moments[:arrival_count] + stays <= length_s))
        return QueueStep(arrival_count, done, queue + arrival_count - done, _percentile(stays))


def _percentile(values: Float64s) -> float:
    """The 95th percentile, by nearest rank."""
    rank = math.ceil(0.95 * len(values)) - 1
    return float(np.partition(values, rank)[rank])


def _enough(mean: float, cv: float) -> int:
    """How many times to draw when `mean` are expected: almost surely enough. 0 if none is expected."""
    return math.ceil(mean + _SPARE * max(1, cv) * (1 + math.sqrt(mean))) if mean > _NONE else 0


def _times(rng: np.random.Generator, count: int, cv: float, rate: float) -> Float64s:
    if not count:
        return np.empty(0)
    if cv == 0:
        return np.full(count, 1 / rate)
    # A gamma law with shape 1/cv^2 and scale cv^2 has mean 1 and standard deviation cv.
    drawn = rng.standard_exponential(count) if cv == 1 else rng.standard_gamma(1 / cv**2, count) * cv**2
    return drawn / rate
