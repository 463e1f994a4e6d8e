"""Dhalion: from symptoms to a diagnosis to one action, as Heron's self-regulation does it (baseline).

* Backpressure (W is above `backpressure`, or a backlog drains) means too few units at the part with the
  highest W of its own. The part gets `ceil(current / (1 - s))` units, where s is the share of time under
  backpressure. At most `up_factor` times the current ones are added.
* No backpressure, and almost nothing that waits before any part, mean too many units. The part with the
  lowest W of its own loses the share `down_factor` of its units, at least one.

An action of scale-in that is followed by backpressure is undone. It is then on a blacklist, until the part's
arrivals have fallen by `tolerance`. After a change of p or r nothing is done for `wait_s`.

What was decided here, because a pipeline on Kafka has no backpressure and not every rule could be had:

* Heron measures the share of time in which a bolt stops its spouts. Here the work of a micro-batch takes W
  batch intervals. To keep up, the input would have to stop for the share 1 - 1/W. So the formula asks for
  `ceil(current * W)`.
* The limit of scale-out and the wait of 180 s are Heron's (`ScaleUpResolver.java`: 4 times more;
  `DynamicResourceAllocationPolicy.java`). The paper leaves the factor of scale-in to the user.
* When an action leaves the blacklist could not be found. The paper's diagnoses of skew and of a slow task are
  left out, because Heron has no action for them, and skew is the partitioner's work.

State: the last change, what it was made from, and the blacklist. Source: Floratou et al., "Dhalion:
Self-Regulating Stream Processing in Heron", PVLDB 10(12), 2017, and Apache Heron, `heron/healthmgr`.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from evenflow.elasticity.observation import PARTS, Observation, Part, is_known
from evenflow.elasticity.policy import Cause, Count, Decision, Policy, restored
from evenflow.elasticity.recommended import steps_in, whole_above
from evenflow.text.options import Options


class DhalionOptions(Options):
    """Options of `dhalion`."""

    backpressure: float = Field(
        default=1.0, gt=0, le=10, description="W above this is backpressure (ours; Heron measures it)."
    )
    pending: float = Field(
        default=0.05,
        ge=0,
        le=10,
        description="Almost nothing waits: at most this share of what arrives in a batch interval (ours).",
    )
    up_factor: float = Field(
        default=4.0,
        ge=0,
        le=1_000,
        description="Most that one action adds, as a share of the current (Heron: 4).",
    )
    down_factor: float = Field(
        default=0.2, gt=0, lt=1, description="What one action takes away, as a share of the current (ours)."
    )
    wait_s: float = Field(
        default=60, ge=0, le=86_400, description="No action within this time of a change, s (Heron: 180)."
    )
    tolerance: float = Field(
        default=0.1,
        ge=0,
        lt=1,
        description="A blacklisted action is allowed again once arrivals fell by this share (ours).",
    )


class _FailedScaleIn(BaseModel):
    """A scale-in that brought backpressure."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    units: Count
    """The part's units before the scale-in."""
    rate: float | None
    """Tuples/s that arrived at the part then."""


class _DhalionMemory(BaseModel):
    """What Dhalion remembers."""

    model_config = ConfigDict(extra="forbid", strict=True)

    p: Count = 0
    """Routed partitions at the last observation, 0 before the first."""
    r: Count = 0
    """Reduce buckets at the last observation, 0 before the first."""
    since: int | None = Field(default=None, ge=0, le=2**62)
    """The step at which p or r changed last."""
    shrunk: Part | None = None
    """The part of the last scale-in, if its effect is not known yet."""
    before: Count = 0
    """The units of that part before the scale-in."""
    combine: _FailedScaleIn | None = None
    """The combiner's scale-in that is on the blacklist."""
    reduce: _FailedScaleIn | None = None
    """The reducer's scale-in that is on the blacklist."""

    def failed(self, part: Part) -> _FailedScaleIn | None:
        return self.combine if part == "combine" else self.reduce


class Dhalion(Policy):
    """Symptoms, a diagnosis, one action, and a blacklist of what did not help, as Heron's Dhalion
    (baseline).
    """

    options_type: ClassVar[type[Options]] = DhalionOptions
    options: DhalionOptions

    def __init__(self, **made: Any) -> None:
        super().__init__(**made)
        self._memory = _DhalionMemory()

    def _decide(self, observation: Observation) -> Decision:
        self._take_in(observation)
        memory, load = self._memory, observation.load or 0.0
        symptom = f"W is {load:.2f}"
        left = (
            0
            if memory.since is None
            else memory.since + steps_in(self.options.wait_s, observation) - observation.step
        )
        if left > 0:
            return self._no_change(
                observation, f"{symptom}; the last change has {left} micro-batches more to show its effect"
            )
        if load > self.options.backpressure or observation.draining:
            return self._too_few(observation, f"{symptom}: backpressure")
        # The wait is over without backpressure, so the last scale-in was right.
        memory.shrunk = None
        return self._perhaps_too_many(observation, f"{symptom}: no backpressure")

    def _too_few(self, observation: Observation, symptom: str) -> Decision:
        memory = self._memory
        if memory.shrunk is not None:
            part, units = memory.shrunk, memory.before
            failed = _FailedScaleIn(units=units, rate=_rate(observation, part))
            if part == "combine":
                memory.combine = failed
            else:
                memory.reduce = failed
            memory.shrunk = None
            return self._changed(
                observation, part, units, f"{symptom} after a scale-in, which is undone and blacklisted"
            )
        able = [part for part in PARTS if observation.in_force(part) < self.bounds.side(part)[1]]
        if not able:
            return Decision(
                p=observation.p,
                r=observation.r,
                reason=f"{symptom}, but p and r are at their most",
                cause="bounds",
            )
        part = self._bottleneck(observation, able)
        load = self._load(observation, part)
        # W below 1 with a backlog still asks for more: one unit, by the maximum below.
        factor = min(max(load, 1.0), 1 + self.options.up_factor)
        current = observation.in_force(part)
        units = max(current + 1, whole_above(current * factor, most=self.bounds.side(part)[1]))
        return self._changed(observation, part, units, f"{symptom}, the {part}r has too few units")

    def _perhaps_too_many(self, observation: Observation, symptom: str) -> Decision:
        waiting = [part for part in PARTS if not self._idle(observation, part)]
        if waiting:
            return self._no_change(
                observation, f"{symptom}, but tuples wait before the {waiting[0]}r", cause="stable"
            )
        able = [part for part in PARTS if self._may_shrink(observation, part)]
        if not able:
            return self._no_change(
                observation, f"{symptom}, but every scale-in is blacklisted or at its bound", cause="stable"
            )
        part = min(able, key=lambda part: self._load(observation, part))
        current, least = observation.in_force(part), self.bounds.side(part)[0]
        units = max(least, min(current - 1, math.floor(current * (1 - self.options.down_factor))))
        self._memory.shrunk, self._memory.before = part, current
        return self._changed(
            observation, part, units, f"{symptom}, nothing waits: the {part}r has too many units"
        )

    # ---- symptoms

    def _bottleneck(self, observation: Observation, able: list[Part]) -> Part:
        """The part with the highest W of its own among those that can grow."""
        return max(able, key=lambda part: (self._own(observation, part), part == "combine"))

    def _own(self, observation: Observation, part: Part) -> float:
        load = observation.stage(part).load
        return load if is_known(load) else 0.0

    def _load(self, observation: Observation, part: Part) -> float:
        """The W by which a part is scaled.
        In the fused wiring that of the application, because both share its time.
        """
        own = self._own(observation, part)
        return own if observation.wiring == "split" and own else observation.load or 0.0

    def _idle(self, observation: Observation, part: Part) -> bool:
        """Whether almost nothing waits before a part. A queue that is not known does not speak against it."""
        stage = observation.stage(part)
        if not is_known(stage.queue):
            return True
        arriving = stage.arrivals if is_known(stage.arrivals) else 0.0
        return stage.queue <= self.options.pending * arriving * observation.interval_ms / 1000

    def _may_shrink(self, observation: Observation, part: Part) -> bool:
        current, failed = observation.in_force(part), self._memory.failed(part)
        if current <= self.bounds.side(part)[0]:
            return False
        if failed is None or current > failed.units:
            return True
        rate = _rate(observation, part)
        return (
            rate is not None and failed.rate is not None and rate < failed.rate * (1 - self.options.tolerance)
        )

    # ---- what is decided, and remembered

    def _changed(self, observation: Observation, part: Part, units: int, diagnosis: str) -> Decision:
        p, r = (units if part == side else observation.in_force(side) for side in PARTS)
        p, r = self.bounds.clamped(p, r)
        moved = (p, r) != (observation.p, observation.r)
        reason = f"{diagnosis}: p {observation.p} -> {p}, r {observation.r} -> {r}"
        return Decision(p=p, r=r, reason=reason, cause="load" if moved else "bounds")

    def _no_change(self, observation: Observation, reason: str, *, cause: Cause = "waiting") -> Decision:
        return Decision(p=observation.p, r=observation.r, reason=reason, cause=cause)

    def _missed(self, observation: Observation) -> None:
        self._take_in(observation)

    def _take_in(self, observation: Observation) -> None:
        """Notice that p or r has changed, by a plan of this policy or of someone else."""
        memory = self._memory
        if memory.p and (memory.p, memory.r) != (observation.p, observation.r):
            memory.since = observation.step
        memory.p, memory.r = observation.p, observation.r

    def _state(self) -> dict[str, Any]:
        return self._memory.model_dump()

    def _load_state(self, state: dict[str, Any]) -> None:
        self._memory = restored(_DhalionMemory, state)


def _rate(observation: Observation, part: Part) -> float | None:
    """Tuples/s that arrive at a part, or those of the whole pipeline if that is not known."""
    arrivals = observation.stage(part).arrivals
    rate = arrivals if is_known(arrivals) else observation.rate
    return rate if is_known(rate) else None
