"""A pipeline with a constant load whose Spark driver begins: slow first micro-batches, a backlog, and
noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from tests.unit.controller.parts import Pipeline, batch, heartbeat, partitioner, settings_of

WORKERS = 4


@dataclass(frozen=True)
class Shape:
    """How a driver begins.

    first: intervals that its first micro-batch takes beyond its load. slow: share by which the code is slower
    at first. tau: s in which this becomes e times less. backlog: intervals of input that wait at the
    beginning.
    """

    first: float
    slow: float
    tau: float
    backlog: float

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> Shape:
        return cls(
            first=float(rng.uniform(0, 8)),
            slow=float(rng.uniform(0, 1)),
            tau=float(rng.uniform(1, 6)),
            backlog=float(rng.choice([0, 0, 2, 10])),
        )


@dataclass
class Run:
    """A controller sees a driver begin. load: W that `WORKERS` workers have once all is warm. noise: of W,
    as a share.
    """

    load: float
    interval: float
    rng: np.random.Generator
    noise: float = 0.06
    policy: str = "prompt-plus"
    changes: list[tuple[float, int, int]] = field(default_factory=list)
    """(s since the driver began, p, r) of each plan."""

    def __post_init__(self) -> None:
        settings = settings_of(
            spark={"batch_interval": round(1000 * self.interval)}, control={"policy": self.policy}
        )
        self.pipeline = Pipeline(settings)

    def drive(self, shape: Shape, seconds: float) -> None:
        """A driver begins, and runs for this time."""
        begun, finished, first_ended, waiting = self.pipeline.now, 0, 0.0, 1 + shape.backlog
        while self.pipeline.now < begun + seconds:
            age = self.pipeline.now - begun
            share = waiting * (0.3 + 0.7 * WORKERS / self.pipeline.log.pair.p)
            slow = 1 + shape.slow * math.exp(-age / shape.tau)
            took = self.load * share * slow * float(self.rng.lognormal(0, self.noise))
            took += shape.first if finished == 0 else 0.0
            self._pass(took * self.interval, finished, first_ended, begun)
            finished += 1
            first_ended = first_ended or self.pipeline.now
            warm_ms = round(1000 * (self.pipeline.now - first_ended))
            self._hear(
                batch(
                    self.pipeline.settings,
                    batch=finished,
                    duration_ms=round(1000 * took * self.interval),
                    batch_interval_ms=round(1000 * self.interval),
                    finished=finished,
                    warm_ms=warm_ms,
                    mark=self._time - 1_000,
                ),
                begun,
            )
            self.pipeline.now += max(0.0, 1 - took) * self.interval
            waiting = max(1.0, took)

    def _pass(self, seconds: float, finished: int, first_ended: float, begun: float) -> None:
        """A micro-batch runs. Every five seconds its stage says that it lives."""
        ends, started = self.pipeline.now + seconds, self.pipeline.now
        while self.pipeline.now + 5 < ends:
            self.pipeline.now += 5
            warm_ms = round(1000 * (self.pipeline.now - first_ended)) if finished else None
            beat = heartbeat(
                self.pipeline.settings,
                batch=finished or None,
                running_ms=round(1000 * (self.pipeline.now - started)),
                batch_interval_ms=round(1000 * self.interval),
                finished=finished,
                warm_ms=warm_ms,
            )
            self._hear(beat, begun)
        self.pipeline.now = ends

    @property
    def _time(self) -> int:
        return round(1000 * self.pipeline.now)

    def _hear(self, said: object, begun: float) -> None:
        routes = partitioner(
            self.pipeline.settings,
            workers=self.pipeline.log.pair.p,
            event_time=self._time,
            mark=self._time - 100,
            rate=1_000 * float(self.rng.lognormal(0, self.noise)),
            keys=100 * float(self.rng.lognormal(0, self.noise)),
        )
        judged = len(self.pipeline.judged)
        self.pipeline.hear(routes, said)  # type: ignore[arg-type]
        for one in self.pipeline.judged[judged:]:
            if one.plan is not None:
                self.changes.append((self.pipeline.now - begun, one.plan.p, one.plan.r))
                self.pipeline.publish(one.plan)

    def directions(self, until: float = math.inf) -> list[int]:
        """Of each change up to this time (s): 1 for growth, -1 for the opposite."""
        steps = [(0.0, WORKERS, 4), *(change for change in self.changes if change[0] <= until)]
        return [1 if now[1] + now[2] > before[1] + before[2] else -1 for before, now in pairwise(steps)]
