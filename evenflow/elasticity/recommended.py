"""Scale-in goes to the highest recommendation of a recent time.
An HPA and the Flink autoscaler scale in this way.

So a short lull does not scale a pipeline in.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from evenflow.elasticity.observation import Observation
from evenflow.elasticity.policy import Cause, Count


class _Recommendation(NamedTuple):
    """What was recommended at a step. In a snapshot it is a list."""

    step: Count
    """The step of the observation that led to it."""
    value: Count
    """The p or r that was recommended."""


class Recommendations(BaseModel):
    """The recommendations of one side (p or r), oldest first.

    Only entries that can still be the highest are kept, so each value is above all that follow. After a gap
    in the steps the series begins anew, because the recommendations of the gap are not known.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    entries: list[_Recommendation] = Field(default_factory=list, max_length=100_000)
    """Recommendations that can still be the highest: their steps ascend, their values fall."""

    def stabilised(self, value: int, *, current: int, step: int, steps: int) -> int:
        """Add this recommendation, and return the number to go to.

        A recommendation above `current`, the number in force, is returned as it is. Otherwise the highest
        recommendation of the last `steps` steps is returned, at most `current`. When a series begins,
        `current` counts as recommended.
        """
        if not self.entries or self.entries[-1].step != step - 1:
            # A new series. `current` as its first entry holds scale-in back for a whole period.
            self.entries = [_Recommendation(step, current)]
        self.entries = [entry for entry in self.entries if entry.step > step - steps and entry.value > value]
        self.entries.append(_Recommendation(step, value))
        return max(value, min(self.entries[0].value, current))


def cause_of(
    observation: Observation,
    decided: tuple[int, int],
    *,
    recommendation: tuple[int, int],
    calm: bool,
    moving: Cause,
) -> Cause:
    """The cause of a decision for these (p, r).

    recommendation: (p, r) within the bounds, before stabilisation. calm: whether nothing asked for a change.
    moving: the cause to name if the policy changes p or r.
    """
    in_force = (observation.p, observation.r)
    if decided != in_force:
        # Without anything that asks for a change, only the bounds can have made one.
        return "bounds" if calm else moving
    if calm:
        return "stable"
    return "bounds" if recommendation == in_force else "waiting"


def steps_in(seconds: float, observation: Observation) -> int:
    """Number of batch intervals in this time, rounded up."""
    return math.ceil(seconds * 1000 / max(observation.interval_ms, 1))


def whole_above(value: float, *, most: int) -> int:
    """The value rounded up to a whole number, at most `most`.

    A value that a rounding error has put just above a whole number counts as that number.
    """
    # The smaller is taken before `ceil`, which raises for infinity.
    return math.ceil(round(min(value, float(most)), 9))
