"""Threshold: what a Kubernetes HorizontalPodAutoscaler (HPA) does. It is the plain baseline.

* The recommendation is `ceil(current * metric / target)`, for p and for r alike. If metric/target is within
  `tolerance` of 1, the recommendation is the number in force.
* Scale-out follows the recommendation at once, up to a limit: the least number in force during the last
  `up_period_s`, plus the larger of `up_units` and `up_percent`.
* Scale-in goes to the highest recommendation of the last `stabilization_s`. After a gap in the observations
  this time begins anew.

The metric is W, the same for both sides. An HPA knows nothing of rate and keys, so it scales both sides even
where one would do. With `metric=busy` the metric is the share of time in which the busiest partitioner works.
This decides about the number of partitioner replicas: it is the policy's p, and r is bound to 1.

State: one falling series of recommendations for each side, and the numbers in force during `up_period_s`.
Source: Kubernetes, "Horizontal Pod Autoscaling", and `pkg/controller/podautoscaler` (`replica_calculator.go`,
`horizontal.go`). Except for the target, the defaults are those of Kubernetes, with a period of 15 s.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from evenflow.elasticity.observation import Observation
from evenflow.elasticity.policy import Decision, ParallelismAt, Policy, restored
from evenflow.elasticity.recommended import Recommendations, cause_of, steps_in, whole_above
from evenflow.text.options import Options

_MOST_KEPT = 1_000


class ThresholdOptions(Options):
    """Options of `threshold`."""

    metric: Literal["load", "busy"] = Field(
        default="load", description="load: W. busy: share of time in which the busiest partitioner works."
    )
    target: float = Field(default=0.80, gt=0, le=10, description="Value of the metric to keep.")
    tolerance: float = Field(
        default=0.10, ge=0, lt=1, description="No action while metric/target is within this of 1."
    )
    stabilization_s: float = Field(
        default=300,
        ge=0,
        le=3_600,
        description="Scale-in goes to the highest recommendation of this time (seconds of batch intervals).",
    )
    up_units: int = Field(
        default=4,
        ge=0,
        le=4_096,
        description="Units that may be added within up_period_s.",
        json_schema_extra={"unit": "units of p or r"},
    )
    up_percent: int = Field(
        default=100, ge=0, le=10_000, description="The same limit in percent. The larger limit counts."
    )
    up_period_s: float = Field(
        default=15, ge=0, le=1_800, description="Period of these two limits (seconds)."
    )


class _ThresholdMemory(BaseModel):
    """What the policy remembers."""

    model_config = ConfigDict(extra="forbid", strict=True)

    p: Recommendations = Field(default_factory=Recommendations)
    """What was recommended for p, so that a short lull scales nothing in."""
    r: Recommendations = Field(default_factory=Recommendations)
    """What was recommended for r."""
    in_force: list[ParallelismAt] = Field(default_factory=list, max_length=_MOST_KEPT)
    """The numbers in force at each observation in the last `up_period_s`."""


class Threshold(Policy):
    """Keeps a metric near its target, as a Kubernetes HPA would (baseline)."""

    options_type: ClassVar[type[Options]] = ThresholdOptions
    options: ThresholdOptions

    def __init__(self, **made: Any) -> None:
        super().__init__(**made)
        self._memory = _ThresholdMemory()

    def _needed(self) -> tuple[str, ...]:
        return (self.options.metric,)

    def _decide(self, observation: Observation) -> Decision:
        value: float = getattr(observation, self.options.metric)
        self._take_in(observation)
        ratio = value / self.options.target
        near = abs(ratio - 1) <= self.options.tolerance
        unbounded = [
            current if near else whole_above(current * ratio, most=most)
            for current, most in ((observation.p, self.bounds.p_max), (observation.r, self.bounds.r_max))
        ]
        recommendation = self.bounds.clamped(*unbounded)
        p, r = self._limited(observation, *recommendation)
        name = "W" if self.options.metric == "load" else "the busy share"
        status = f"{name} is {value:.2f}, {ratio:.2f} of the target {self.options.target:g}"
        recommended = "keep p and r" if near else f"p {unbounded[0]} and r {unbounded[1]}"
        return Decision(
            p=p,
            r=r,
            reason=f"{status}: recommended is {recommended}, decided p {p} and r {r}",
            cause=cause_of(observation, (p, r), recommendation=recommendation, calm=near, moving="load"),
        )

    def _limited(self, observation: Observation, p: int, r: int) -> tuple[int, int]:
        steps = steps_in(self.options.stabilization_s, observation)
        memory = self._memory
        wanted_p = memory.p.stabilised(p, current=observation.p, step=observation.step, steps=steps)
        wanted_r = memory.r.stabilised(r, current=observation.r, step=observation.step, steps=steps)
        return (
            self._up(wanted_p, observation.p, least=min(entry.p for entry in memory.in_force)),
            self._up(wanted_r, observation.r, least=min(entry.r for entry in memory.in_force)),
        )

    def _up(self, recommendation: int, current: int, *, least: int) -> int:
        """The recommendation, cut to the limits of scale-out. The limits never take away what is in force.

        least: the least number in force during the last `up_period_s`.
        """
        most = max(least + self.options.up_units, math.ceil(least * (1 + self.options.up_percent / 100)))
        return min(recommendation, max(most, current))

    def _take_in(self, observation: Observation) -> None:
        memory = self._memory
        since = observation.step - steps_in(self.options.up_period_s, observation)
        recent = [entry for entry in memory.in_force if since < entry.step < observation.step]
        # This observation is always in, so there is a least number even with a period of 0.
        memory.in_force = [*recent, ParallelismAt.of(observation)][-_MOST_KEPT:]

    def _state(self) -> dict[str, Any]:
        return self._memory.model_dump()

    def _load_state(self, state: dict[str, Any]) -> None:
        self._memory = restored(_ThresholdMemory, state)
