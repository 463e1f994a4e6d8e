"""What all tables of the settings have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A table of the settings: unknown names are refused, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)
