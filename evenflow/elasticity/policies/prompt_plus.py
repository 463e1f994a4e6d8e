"""Prompt+ (001, chapters 3.3 to 3.5, Algorithm 4): three zones of W = processing time / batch interval.

| zone | W | what happens when it has held for `d` micro-batches |
|---|---|---|
| 3, overload | above `thres` | scale out |
| 2, stable | between | nothing: short spikes are queued, short lulls are ignored |
| 1, under-used | at most `thres` - `step` | scale in |

The last `d` micro-batches are compared with the `d` before them, by the partitioners' own numbers. If the
data rate rose, p grows. If the number of distinct keys rose, r grows. If both rose, both grow. Scale-in
mirrors this. A number "rose" or "fell" if it changed by more than `tolerance`, because both numbers are
noisy. A number that is not known counts as unchanged.

The paper does not say what happens in the following cases. Here it is:

* Algorithm 4 looks at its counter before it counts, so it acts on micro-batch d + 1 in a zone. A good one
  never sets the counter back. The text speaks of `d` consecutive ones. Here the d-th one acts, and one in
  another zone sets the count back.
* If neither number moved, or if its side is at its bound, the parts' own W decides. Scale-out adds one unit
  to the part with the highest W, and scale-in takes one unit from the part with the lowest W.
* If the part with the highest W is at its bound, nothing changes in the split wiring, because more units for
  the other part would not help. In the fused wiring both parts share one pool, so the other part gets the
  unit.
* If the own W of no part is known, nothing is decided.
* With `proportional`, a scale-out by rate or keys adds `ceil(current * (W/thres - 1))` units, at most
  `max_step`. W is the mean of the last `d` micro-batches. Scale-in always takes one unit.
* For `grace` micro-batches after a change of p or r there is no action in the opposite direction.
* While a backlog drains there is no scale-in, and micro-batches do not count towards one.
* After a gap in the observations, and after every change of p or r, the count of consecutive micro-batches
  begins anew.

With `look_ahead` (beyond the paper) a side shrinks only if W then stays out of zone 3. W is foretold as if
all the work were on that side: it is the largest W of the last `d` micro-batches, times current/(current -
1), and may be at most `thres`. Then a constant load never makes p or r swing. Without `look_ahead` the
paper's rule holds alone, and p and r can swing for ever: at W = 0.7, two workers become one, W becomes 1.4,
one worker becomes two, and so on.

State: the last 2d micro-batches. Cost: a few comparisons for each observation.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_serializer, field_validator, model_validator

from evenflow.elasticity.observation import PARTS, Observation, Part, is_known
from evenflow.elasticity.policy import Cause, Count, Decision, ParallelismAt, Policy, restored
from evenflow.elasticity.recommended import whole_above
from evenflow.text.options import Options

OVERLOAD, STABLE, UNDER_USED = 3, 2, 1


class PromptPlusOptions(Options):
    """Options of `prompt-plus`."""

    thres: float = Field(default=0.90, gt=0, le=10, description="W above this is zone 3.")
    step: float = Field(
        default=0.10, gt=0, le=10, description="Width of zone 2. W at or below thres - step is zone 1."
    )
    d: int = Field(
        default=3,
        ge=1,
        le=100,
        description="Consecutive micro-batches in a zone before an action.",
        json_schema_extra={"unit": "micro-batches"},
    )
    grace: int | None = Field(
        default=None,
        ge=0,
        le=1_000,
        description="Micro-batches after a change without an action in the opposite direction. None: d.",
        json_schema_extra={"unit": "micro-batches"},
    )
    tolerance: float = Field(
        default=0.05,
        ge=0,
        le=1,
        description="Rate or keys rose or fell if they changed by more than this share.",
    )
    proportional: bool = Field(
        default=False,
        description="Scale out by as many units as W asks for. False: by one unit, as in the paper.",
    )
    max_step: int = Field(
        default=8,
        ge=1,
        le=4_096,
        description="Most units that a proportional step adds.",
        json_schema_extra={"unit": "units of p or r"},
    )
    look_ahead: bool = Field(
        default=True,
        description="Shrink a side only if W then stays out of zone 3. False: the paper's rule alone.",
    )

    @model_validator(mode="after")
    def _zones_are_there(self) -> PromptPlusOptions:
        if self.step >= self.thres:
            raise ValueError("step must be below thres, or there is no zone 1")
        return self


class _Batch(BaseModel):
    """One micro-batch."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    load: float | None
    """W of the micro-batch, None if nothing was decided on it."""
    rate: float | None
    """Tuples/s of the micro-batch."""
    keys: float | None
    """Distinct keys of the micro-batch."""


class _PromptPlusMemory(BaseModel):
    """What Prompt+ remembers."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    last: ParallelismAt | None = None
    """What was in force at the newest observation."""
    batches: list[_Batch] = Field(default_factory=list, max_length=200)
    """Consecutive micro-batches, newest last, at most 2d."""
    over: Count = 0
    """How many consecutive micro-batches were in zone 3."""
    under: Count = 0
    """How many consecutive micro-batches were in zone 1."""
    direction: int = Field(default=0, ge=-1, le=1)
    """The direction of the last action: 1 out, -1 in, 0 none."""
    grace: Count = 0
    """Micro-batches for which an action in the opposite direction is still not allowed."""

    # In a snapshot, a policy that has seen nothing has an empty list for `last`.
    @field_serializer("last")
    def _saved(self, last: ParallelismAt | None) -> list[int]:
        return list(last or ())

    @field_validator("last", mode="before")
    @classmethod
    def _restored(cls, saved: Any) -> Any:
        return None if saved == [] else saved


class PromptPlus(Policy):
    """Three zones of W. Rate and keys decide which side scales (Prompt+)."""

    options_type: ClassVar[type[Options]] = PromptPlusOptions
    options: PromptPlusOptions

    def __init__(self, **made: Any) -> None:
        super().__init__(**made)
        self._memory = _PromptPlusMemory()

    def zone(self, load: float) -> int:
        """The zone of this W: 1 under-used, 2 stable or 3 overload."""
        if load > self.options.thres:
            return OVERLOAD
        # Rounded, because a difference of floats is not exact: 0.9 - 0.2 is a little more than 0.7.
        return UNDER_USED if load <= round(self.options.thres - self.options.step, 9) else STABLE

    def _decide(self, observation: Observation) -> Decision:
        load = observation.load or 0.0  # never None here, because `needs` names it
        zone = self.zone(load)
        self._take_in(observation, load)
        memory = self._memory
        memory.over = memory.over + 1 if zone == OVERLOAD else 0
        memory.under = memory.under + 1 if zone == UNDER_USED and not observation.draining else 0
        decision = self._judged(observation, zone)
        # After judging, so that a grace of d covers d micro-batches. Before `_acted`, which begins a new
        # grace.
        memory.grace = max(0, memory.grace - 1)
        if (decision.p, decision.r) != (observation.p, observation.r):
            self._acted(1 if zone == OVERLOAD else -1)
        return decision

    def _missed(self, observation: Observation) -> None:
        self._take_in(observation, None)
        self._memory.over = self._memory.under = 0

    # ---- what is remembered

    def _take_in(self, observation: Observation, load: float | None) -> None:
        """Remember this micro-batch, and notice gaps and changes of p or r."""
        memory = self._memory
        last = memory.last
        if last and observation.step != last.step + 1:
            memory.batches.clear()
            memory.over = memory.under = 0
        # A plan has taken effect, ours or one that someone else published. The grace period begins with it.
        if last and (last.p, last.r) != (observation.p, observation.r):
            self._acted(1 if observation.p + observation.r > last.p + last.r else -1)
        memory.last = ParallelismAt.of(observation)
        counts = not (observation.stale or observation.starting)
        rate, keys = (
            value if is_known(value) and counts else None for value in (observation.rate, observation.keys)
        )
        memory.batches = [*memory.batches, _Batch(load=load, rate=rate, keys=keys)][-2 * self.options.d :]

    def _acted(self, direction: int) -> None:
        memory = self._memory
        memory.over = memory.under = 0
        memory.direction = direction
        memory.grace = self.options.d if self.options.grace is None else self.options.grace

    # ---- what is decided

    def _judged(self, observation: Observation, zone: int) -> Decision:
        memory, d = self._memory, self.options.d
        status = f"W {observation.load:.2f} is in zone {zone}"
        if zone == STABLE:
            return self._no_change(observation, zone, status, cause="stable")
        if zone == UNDER_USED and observation.draining:
            return self._no_change(
                observation, zone, f"{status}, but a backlog drains: no scale-in", cause="waiting"
            )
        held_for = memory.over if zone == OVERLOAD else memory.under
        if held_for < d:
            return self._no_change(
                observation, zone, f"{status} for {held_for} of {d} micro-batches", cause="waiting"
            )
        direction = 1 if zone == OVERLOAD else -1
        if memory.grace and memory.direction == -direction:
            why = f"the last action went the other way: grace for {memory.grace} more"
            return self._no_change(observation, zone, f"{status}, but {why}", cause="waiting")
        return self._scaled(observation, zone, f"{status} for {held_for} micro-batches")

    def _no_change(self, observation: Observation, zone: int, reason: str, *, cause: Cause) -> Decision:
        return Decision(p=observation.p, r=observation.r, zone=zone, reason=reason, cause=cause)

    def _scaled(self, observation: Observation, zone: int, status: str) -> Decision:
        direction = 1 if zone == OVERLOAD else -1
        able = [part for part in PARTS if self._able(observation, part, direction)]
        if not able:
            return self._no_change(
                observation, zone, f"{status}, but {self._why_unable(direction)}", cause="bounds"
            )
        moved = self._moved(direction)
        why = " and ".join(moved.values()) or f"neither rate nor keys {'rose' if direction > 0 else 'fell'}"
        units = {
            part: direction * self._units(observation, part, direction) for part in moved if part in able
        }
        if units:
            return self._changed(observation, zone, units, f"{status}; {why}", cause=_cause(units))
        return self._by_own_load(observation, zone, able, f"{status}; {why}")

    def _by_own_load(self, observation: Observation, zone: int, able: list[Part], status: str) -> Decision:
        """Move one unit at the part with the worst W. For scale-in that is the part with the lowest W."""
        own = {part: load for part in PARTS if is_known(load := observation.stage(part).load)}
        if not own:
            reason = f"{status}, and no part says its own W: nothing is decided"
            return Decision(
                p=observation.p, r=observation.r, zone=zone, reason=reason, cause="missing-data", held=True
            )
        direction = 1 if zone == OVERLOAD else -1
        # Whether a part at its bound may be passed over for the other one.
        shared = direction < 0 or observation.wiring == "fused"
        candidates = [part for part in own if part in able or not shared]
        worst = max(candidates, key=lambda part: direction * own[part], default=None)
        if worst not in able:
            why = "the part with the worst W is at its bound"
            return self._no_change(observation, zone, f"{status}, and {why}", cause="bounds")
        why = f"the {worst}r's own W is {own[worst]:.2f}"
        return self._changed(observation, zone, {worst: direction}, f"{status}; {why}", cause="load")

    def _changed(
        self, observation: Observation, zone: int, units: dict[Part, int], status: str, *, cause: Cause
    ) -> Decision:
        p, r = self.bounds.clamped(*(observation.in_force(part) + units.get(part, 0) for part in PARTS))
        reason = f"{status}: p {observation.p} -> {p}, r {observation.r} -> {r}"
        return Decision(p=p, r=r, zone=zone, reason=reason, cause=cause)

    def _moved(self, direction: int) -> dict[Part, str]:
        """The sides that rate and keys ask to change in this direction, and why in words."""
        sides: tuple[tuple[Part, str, str], ...] = (
            ("combine", "rate", "the rate"),
            ("reduce", "keys", "the number of keys"),
        )
        changes = {part: (self._change(name), subject) for part, name, subject in sides}
        return {
            part: f"{subject} {_moved(change)}"
            for part, (change, subject) in changes.items()
            if change is not None and direction * change > self.options.tolerance
        }

    def _change(self, name: str) -> float | None:
        """Relative change of a number: its mean over the last d micro-batches against the d before.

        None when the number is not known in all of them. Infinite when it rose from 0.
        """
        d = self.options.d
        values = [getattr(batch, name) for batch in self._memory.batches]
        if len(values) < 2 * d or None in values:
            return None
        before, now = sum(values[:d]) / d, sum(values[d:]) / d
        return (now - before) / before if before > 0 else math.inf if now > 0 else 0.0

    def _units(self, observation: Observation, part: Part, direction: int) -> int:
        if direction < 0 or not self.options.proportional:
            return 1
        excess = sum(self._loads()) / self.options.d / self.options.thres - 1
        return max(1, whole_above(observation.in_force(part) * excess, most=self.options.max_step))

    def _able(self, observation: Observation, part: Part, direction: int) -> bool:
        current, (least, most) = observation.in_force(part), self.bounds.side(part)
        if direction > 0:
            return current < most
        return current > least and (not self.options.look_ahead or self._after(current) <= self.options.thres)

    def _after(self, current: int) -> float:
        """W with one unit less on a side that has `current` units, if all the work were on that side."""
        return max(self._loads()) * current / (current - 1)

    def _loads(self) -> list[float]:
        return [batch.load for batch in self._memory.batches[-self.options.d :] if batch.load is not None]

    def _why_unable(self, direction: int) -> str:
        if direction > 0:
            return "p and r are at their most"
        return f"neither p nor r can shrink: W could pass {self.options.thres}, or they are at their least"

    # ---- state

    def _state(self) -> dict[str, Any]:
        return self._memory.model_dump()

    def _load_state(self, state: dict[str, Any]) -> None:
        self._memory = restored(_PromptPlusMemory, state)


def _cause(units: dict[Part, int]) -> Cause:
    """The cause of a change by these units: the rate moves the combiner, the keys move the reducer."""
    if len(units) > 1:
        return "rate-and-keys"
    return "rate" if "combine" in units else "keys"


def _moved(change: float) -> str:
    if math.isinf(change):
        return "rose from nothing"
    return f"{'rose' if change > 0 else 'fell'} by {abs(change):.0%}"
