"""What the options of a partitioner and those of a policy have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Options(BaseModel):
    """Options of one algorithm: each field has a default, bounds and a description with its unit."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
