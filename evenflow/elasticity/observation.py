"""What a policy sees at the end of a micro-batch, live or simulated. None means "not known", never 0."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeGuard

Part = Literal["combine", "reduce"]
PARTS: tuple[Part, ...] = ("combine", "reduce")


@dataclass(frozen=True, kw_only=True)
class StageObservation:
    """One part of the chain: the combiner (scaled by p) or the reducer (scaled by r).

    * load: the part's own W, its processing time over the batch interval. In the fused wiring, its share of the
      application's W.
    * arrivals: tuples/s that arrive at the part.
    * capacity: tuples/s that the part could take in at the parallelism in force, measured while it was busy.
    * queue: tuples that wait in front of the part.
    * longest: the longest of the part's tasks over the mean of its tasks (1 means no skew).
    """

    load: float | None = None
    arrivals: float | None = None
    capacity: float | None = None
    queue: float | None = None
    longest: float | None = None


@dataclass(frozen=True, kw_only=True)
class Observation:
    """The pipeline after one more finished micro-batch.

    * step: micro-batches since the controller began. It grows by one with each observation.
    * interval_ms: the batch interval.
    * p, r: the numbers in force.
    * wiring: "fused", where one pool of slots serves both parts in turn, or "split".
    * load: W of the application. Where there are two applications, W of the slower one.
    * rate, keys: tuples/s, and distinct keys in a batch interval. Both come from the partitioners.
    * busy: the share of time in which the busiest partitioner works.
    * lag: input records that have not been read.
    * read: records/s that are read. They are more than the tuples where some records are filtered out, and fewer where
      records are taken apart.
    * backlog_ms: event time that has been routed but not aggregated, in ms of the clock at the speed at which event
      time arrives.
    * latency_ms: latency of the results.
    * stages: the observation of each part.
    * settling: whether a plan has been published that is not yet realised.
    * starting: which parts have just begun, in words. Their first micro-batches say nothing of the load, so a policy
      decides nothing.
    * stale: what is missing or too old, in words. If anything is, a policy decides nothing.
    """

    step: int
    interval_ms: float
    p: int
    r: int
    wiring: Literal["fused", "split"] = "fused"
    load: float | None = None
    rate: float | None = None
    keys: float | None = None
    busy: float | None = None
    lag: float | None = None
    read: float | None = None
    backlog_ms: float | None = None
    latency_ms: float | None = None
    stages: Mapping[Part, StageObservation] = field(default_factory=dict)
    settling: bool = False
    starting: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()

    def in_force(self, part: Part) -> int:
        """The parallelism of this part: p for the combiner, r for the reducer."""
        return self.p if part == "combine" else self.r

    def stage(self, part: Part) -> StageObservation:
        """The observation of this part. Everything in it is unknown if the part was not observed."""
        return self.stages.get(part, StageObservation())

    @property
    def worst(self) -> Part | None:
        """The part whose own load is highest. None when the load of neither part is known."""
        known = [(load, part) for part in PARTS if (load := self.stage(part).load) is not None]
        return max(known, key=lambda entry: entry[0])[1] if known else None

    @property
    def draining(self) -> bool:
        """Whether a backlog has to be worked off first: more waits than arrives in two batch intervals.

        The backlog is counted in event time (`backlog_ms`) and in unread records (`lag`). Either suffices.
        """
        if self.backlog_ms is not None and self.backlog_ms > 2 * self.interval_ms:
            return True
        pace = self.rate if self.read is None else self.read
        return bool(self.lag and pace and self.lag > pace * 2 * self.interval_ms / 1000)

    def fields(self) -> dict[str, Any]:
        """The observation as plain JSON."""
        return dataclasses.asdict(self) | {"starting": list(self.starting), "stale": list(self.stale)}


def known(value: float | None) -> TypeGuard[float]:
    """Whether this is a number that a decision may rest on: not None, NaN or infinity."""
    return value is not None and math.isfinite(value)
