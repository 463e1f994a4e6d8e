"""Fixed p and r: the baseline for other policies, and the choice of a person who knows
which numbers are right.

Without options, the p and r in force are kept.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from evenflow.elasticity.observation import Observation
from evenflow.elasticity.policy import Decision, Policy
from evenflow.text.options import Options


class FixedOptions(Options):
    """Options of `fixed`."""

    p: int | None = Field(
        default=None,
        ge=1,
        description="Workers. None: keep p as it is.",
        json_schema_extra={"unit": "workers"},
    )
    r: int | None = Field(
        default=None,
        ge=1,
        description="Reduce buckets in use at once. None: keep r as it is.",
        json_schema_extra={"unit": "reduce buckets"},
    )


class Fixed(Policy):
    """Keeps p and r, or sets them once."""

    options_type: ClassVar[type[Options]] = FixedOptions
    needs: ClassVar[tuple[str, ...]] = ()
    options: FixedOptions

    def _decide(self, observation: Observation) -> Decision:
        p, r = self.options.p or observation.p, self.options.r or observation.r
        return Decision(p=p, r=r, reason="as it is set", cause="set")
