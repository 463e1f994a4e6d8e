"""Scale-in to the highest recommendation of the last while: how an HPA and the Flink autoscaler keep from haste."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from evenflow.elasticity.observation import Observation
from evenflow.elasticity.policy import Cause

_Count = Annotated[int, Field(ge=0, le=2**62)]
_Pair = Annotated[list[_Count], Field(min_length=2, max_length=2)]


class Recommended(BaseModel):
    """Recommendations of one side, as (step, value). Each value is above all that follow, so there are few.

    A gap in the steps begins anew: what would have been recommended meanwhile is not known.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    entries: list[_Pair] = Field(default_factory=list, max_length=100_000)

    def stabilised(self, value: int, *, current: int, step: int, steps: int) -> int:
        """This recommendation where it is above what is in force, otherwise the highest of the last `steps`.

        current: in force. It counts as recommended when a series begins.
        """
        if not self.entries or self.entries[-1][0] != step - 1:
            self.entries = [[step, current]]
        self.entries = [entry for entry in self.entries if entry[0] > step - steps and entry[1] > value]
        self.entries.append([step, value])
        return max(value, min(self.entries[0][1], current))


def cause_of(
    seen: Observation, decided: tuple[int, int], *, asked: tuple[int, int], calm: bool, moving: Cause
) -> Cause:
    """Why p and r are decided so. asked: before stabilisation and within the bounds. calm: nothing asked for a change.
    moving: what a change rests on."""
    in_force = (seen.p, seen.r)
    if decided != in_force:
        return "bounds" if calm else moving
    if calm:
        return "stable"
    return "bounds" if asked == in_force else "waiting"


def steps_in(seconds: float, seen: Observation) -> int:
    """Batch intervals that begin in this time."""
    return math.ceil(seconds * 1000 / max(seen.interval_ms, 1))


def whole_above(value: float, *, most: int) -> int:
    """The next whole number, at most `most`. What is above a whole number by rounding only is that number."""
    return math.ceil(round(min(value, float(most)), 9))
