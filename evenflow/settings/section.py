"""What all tables of the settings have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A table of the settings. Unknown names are refused, and values cannot be changed."""

    model_config = ConfigDict(extra="forbid", frozen=True)
