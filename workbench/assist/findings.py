"""A finding: one thing said in words, how bad it is, and the settings that would mend it."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from evenflow.text.strict_json import shown

Status = Literal["ok", "warning", "problem"]

Changes = Mapping[str, Mapping[str, Any]]
"""Section -> field -> value as in evenflow.toml.
The tables `types` and `aggregates` hold only the entries that change.
"""


@dataclass(frozen=True)
class Finding:
    """One line of a report."""

    name: str
    """What was looked at, such as "input topic"."""
    status: Status
    """Whether it is fine, needs attention or stops the pipeline."""
    what: str
    """What was found, in words."""
    do: str = ""
    """What to do about it. Empty if nothing."""
    settings: Changes = field(default_factory=dict)
    """The settings that would mend it."""


def unforeseen(error: Exception) -> str:
    """An unexpected error in one line: its type and text, and where it was raised."""
    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = "".join(f" at {Path(frame.filename).name}:{frame.lineno}" for frame in place)
    return f"{type(error).__name__}{where}: {shown(str(error))} (please report it)"
