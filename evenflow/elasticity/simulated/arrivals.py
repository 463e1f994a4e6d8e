"""How many tuples/s come in each step: the loads of the experiments in 003.

Random numbers come only from the generator that the caller passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from evenflow.errors import ConfigError
from evenflow.numeric.arrays import Float64s


class Arrivals(Protocol):
    """A load. It gives the rate of each step. Within a step, tuples arrive at random at that rate."""

    def rate(self, step: int, rng: np.random.Generator) -> float:
        """Tuples/s of this step. Steps are counted from 0."""


@dataclass(frozen=True)
class Poisson:
    """The same rate in every step."""

    mean: float = 100.0
    """Tuples/s of every step."""

    def __post_init__(self) -> None:
        _positive("mean", self.mean)

    def rate(self, step: int, rng: np.random.Generator) -> float:
        """Tuples/s of this step."""
        return self.mean


@dataclass(frozen=True)
class Pareto:
    """Each step has its own rate, drawn from a Pareto law.

    For alpha above 1 the rate is on average `least * alpha / (alpha - 1)`.
    """

    alpha: float = 2.0
    """Exponent of the tail: the smaller, the more often the rate is very high."""
    least: float = 50.0
    """Least rate, tuples/s."""

    def __post_init__(self) -> None:
        _positive("alpha", self.alpha)
        _positive("least", self.least)

    def rate(self, step: int, rng: np.random.Generator) -> float:
        """Tuples/s of this step."""
        # numpy draws from the Lomax law, which is a Pareto law moved to begin at 0.
        return float(self.least * (1 + rng.pareto(self.alpha)))


class Trace:
    """A recorded load that is repeated for ever: the events in each recorded period of `period_s` seconds.

    The record is played `speed` times as fast as it was made, and each event stands for `copies` tuples. So a
    step of `step_s` seconds gets the events of `step_s * speed` recorded seconds. A part of a period gets its
    share of the period's events.
    """

    def __init__(
        self,
        counts: Float64s,
        *,
        period_s: float,
        step_s: float,
        speed: float = 1.0,
        copies: float = 1.0,
    ) -> None:
        for name, value in (
            ("period_s", period_s),
            ("step_s", step_s),
            ("speed", speed),
            ("copies", copies),
        ):
            _positive(name, value)
        counts = np.asarray(counts, np.float64)
        if not len(counts) or not np.isfinite(counts).all() or (counts < 0).any() or not counts.sum():
            raise ConfigError("a trace needs counts of events, none below 0 and not all of them 0")
        self._until = np.concatenate(([0.0], np.cumsum(counts)))
        self._periods = step_s * speed / period_s
        self._weight = copies / step_s

    def rate(self, step: int, rng: np.random.Generator) -> float:
        """Tuples/s of this step."""
        return (self._events((step + 1) * self._periods) - self._events(step * self._periods)) * self._weight

    def _events(self, periods: float) -> float:
        """Events before this moment (in recorded periods), those of earlier rounds included."""
        length = len(self._until) - 1
        rounds, within = divmod(periods, length)
        return float(rounds * self._until[-1] + np.interp(within, np.arange(length + 1), self._until))


def _positive(name: str, value: float) -> None:
    if not 0 < value < float("inf"):
        raise ConfigError(f"{name} must be more than 0, not {value}")
