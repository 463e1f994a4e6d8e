"""What all tables of the settings have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A table of the settings. Unknown names are refused, and values cannot be changed.

    No error repeats a value, because it may be a secret.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)
