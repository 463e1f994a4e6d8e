"""What is asked of a pipeline: its stream, its workers, and how long a tuple may wait.
Checked, and nothing more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from evenflow.errors import ConfigError
from evenflow.limits import MOST_WORKERS

LEAST_DELAY = 0.5
"""Seconds. A micro-batch of Spark takes a third of a second by itself."""


@dataclass(frozen=True, kw_only=True)
class Demand:
    """The stream and the machines to plan for. ConfigError for values that no pipeline can have."""

    rate: float
    """Tuples a second."""
    workers: int
    """Workers among which the tuples are divided."""
    keys: int
    """Different keys of the stream."""
    delay: float
    """Most seconds that a tuple may wait until a micro-batch has it."""
    zipf: float = 1.0
    """Exponent of Zipf's law that the keys follow. 0: all keys are equally frequent."""
    window: float = 60.0
    """Length of the window, seconds."""
    slide: float = 1.0
    """Slide of the window, seconds."""
    work: float = 0.0
    """CPU seconds that a tuple costs the combiner beside count and sum."""
    record: int = 60
    """Bytes of an input record."""
    replicas: int = 3
    """Replicas of each partition."""
    broker_cores: int = 16
    """Cores of each broker."""
    executor_cores: int = 8
    """Cores of each executor."""
    network: float = 1.25e9
    """Bytes a second that a broker's card carries each way."""

    def __post_init__(self) -> None:
        positive = ("rate", "delay", "window", "slide", "network")
        for name in positive:
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigError(f"{name} must be more than 0, not {getattr(self, name):g}")
        for name in ("workers", "keys", "record", "replicas", "broker_cores", "executor_cores"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name.replace('_', ' ')} must be at least 1, not {getattr(self, name):,}")
        if self.workers > MOST_WORKERS:
            raise ConfigError(
                f"{self.workers:,} workers are more than the {MOST_WORKERS:,} that a query may have",
                hint="divide the keys among several queries, each with workers of its own (docs/scale.md)",
            )
        if self.workers > self.rate:
            raise ConfigError(
                f"{self.workers:,} workers for {self.rate:g} tuples a second: most"
                " workers would have no tuple to work on",
                hint="--rate is in tuples per second: 10M, 250k or 1e7. Or ask for fewer workers",
            )
        if not 0 <= self.zipf <= 10:
            raise ConfigError(f"the exponent of Zipf's law must be 0 to 10, not {self.zipf:g}")
        if not 0 <= self.work <= 1:
            raise ConfigError(
                f"the work of a tuple must be 0 to 1 second of CPU time, not {self.work:g}",
                hint="--work is in microseconds",
            )
        if self.delay < LEAST_DELAY:
            raise ConfigError(
                f"a delay of {self.delay:g} s is too short: a tuple waits in a block, in a transaction and"
                " for a micro-batch, and a micro-batch of Spark takes a third of a second by itself",
                hint=f"give at least {LEAST_DELAY:g}s",
            )
        if self.slide > self.window or abs(self.window / self.slide - round(self.window / self.slide)) > 1e-9:
            raise ConfigError(
                f"the window ({self.window:g} s) is not a whole number of slides ({self.slide:g} s)"
            )
