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
    """One part of the chain: the combiner (scaled by p) or the reducer (scaled by r)."""

    load: float | None = None
    """The part's own W, its processing time over the batch interval.
    In the fused wiring, its share of the application's W."""
    arrivals: float | None = None
    """Tuples/s that arrive at the part."""
    capacity: float | None = None
    """Tuples/s that the part could take in at the parallelism in force, measured while it was busy."""
    queue: float | None = None
    """Tuples that wait in front of the part."""
    longest: float | None = None
    """The longest of the part's tasks over the mean of its tasks (1 means no skew)."""


@dataclass(frozen=True, kw_only=True)
class Observation:
    """The pipeline after one more finished micro-batch."""

    step: int
    """Micro-batches since the controller began. It grows by one with each observation."""
    interval_ms: float
    """The batch interval, ms: W is the processing time over it, and a step stands for it."""
    p: int
    """Routed partitions in force."""
    r: int
    """Reduce buckets in force."""
    wiring: Literal["fused", "split"] = "fused"
    """Whether one pool of slots serves both parts in turn ("fused"), or each has its own ("split")."""
    load: float | None = None
    """W of the application. Where there are two applications, W of the slower one."""
    rate: float | None = None
    """Tuples/s, from the partitioners."""
    keys: float | None = None
    """Distinct keys in a batch interval, from the partitioners."""
    busy: float | None = None
    """The share of time in which the busiest partitioner works."""
    lag: float | None = None
    """Input records that have not been read."""
    read: float | None = None
    """Records/s that are read: more than the tuples where some are filtered out,
    fewer where they are taken apart."""
    backlog_ms: float | None = None
    """Event time that has been routed but not aggregated,
    in ms of the clock at the speed at which event time arrives."""
    latency_ms: float | None = None
    """Latency of the results. Live: from when the newest windows were due until they closed, None if event
    time is not live."""
    stages: Mapping[Part, StageObservation] = field(default_factory=dict)
    """The observation of each part."""
    settling: bool = False
    """Whether a plan has been published that is not yet realised."""
    starting: tuple[str, ...] = ()
    """Which parts have just begun, in words.
    Their first micro-batches say nothing of the load, so a policy decides nothing."""
    stale: tuple[str, ...] = ()
    """What is missing or too old, in words. If anything is, a policy decides nothing."""

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


def is_known(value: float | None) -> TypeGuard[float]:
    """Whether this is a number that a decision may rest on: not None, NaN or infinity."""
    return value is not None and math.isfinite(value)
