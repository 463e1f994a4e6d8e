"""What a policy sees at the end of a micro-batch, live or simulated. None is "not known", never 0."""

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
    """One part of the chain, the combiner (scaled by p) or the reducer (scaled by r).

    load: its own W, processing time over batch interval. In the fused wiring its share of the application's. arrivals:
    tuples/s that come to it. capacity: tuples/s that it could take in at the parallelism in force, as measured while it
    was busy. queue: tuples that wait in front of it. longest: longest task over the mean of its tasks (1: no skew).
    """

    load: float | None = None
    arrivals: float | None = None
    capacity: float | None = None
    queue: float | None = None
    longest: float | None = None


@dataclass(frozen=True, kw_only=True)
class Observation:
    """The pipeline after one more finished micro-batch.

    step: micro-batches since the controller began. It grows by one with each observation. interval_ms: batch interval. p,
    r: in force. wiring: fused, where one pool of slots serves both parts in turn, or split. load: W of the application (of
    the slower one where there are two). rate: tuples/s, and keys: distinct keys in a batch interval, both from the
    partitioners. busy: share of time that the busiest partitioner is. lag: input records that are not read. read: records/s
    that are read, which are more than tuples where some are filtered, and fewer where records are taken apart. backlog_ms:
    event time that is routed and not aggregated, in ms of the clock at the speed at which it comes. latency_ms: of results.
    settling: a plan is published and not yet realised. stale: what is missing or too old, in words. A policy decides
    nothing then.
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
    stale: tuple[str, ...] = ()

    def in_force(self, part: Part) -> int:
        """p for the combiner, r for the reducer."""
        return self.p if part == "combine" else self.r

    def stage(self, part: Part) -> StageObservation:
        """That part. All unknown where nothing is said of it."""
        return self.stages.get(part, StageObservation())

    @property
    def worst(self) -> Part | None:
        """The part whose own load is highest. None when neither is known."""
        known = [(load, part) for part in PARTS if (load := self.stage(part).load) is not None]
        return max(known, key=lambda entry: entry[0])[1] if known else None

    @property
    def draining(self) -> bool:
        """More waits than two batch intervals of event time or of arriving records: it must be worked off first."""
        if self.backlog_ms is not None and self.backlog_ms > 2 * self.interval_ms:
            return True
        pace = self.rate if self.read is None else self.read
        return bool(self.lag and pace and self.lag > pace * 2 * self.interval_ms / 1000)

    def fields(self) -> dict[str, Any]:
        """As plain JSON."""
        return dataclasses.asdict(self) | {"stale": list(self.stale)}


def known(value: float | None) -> TypeGuard[float]:
    """Whether this is a number to decide by. None, NaN and infinity are not."""
    return value is not None and math.isfinite(value)
