"""What a look finds: one thing said in words, how bad it is, and the settings that would mend it."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from evenflow.strict_json import shown

Status = Literal["ok", "warning", "problem"]

Changes = Mapping[str, Mapping[str, Any]]
"""Section -> field -> value as it stands in evenflow.toml. `types` and `aggregates` hold only what changes."""


@dataclass(frozen=True)
class Finding:
    """One line of a report: what was found, what to do (empty if nothing), and which settings do it."""

    name: str
    status: Status
    what: str
    do: str = ""
    settings: Changes = field(default_factory=dict)


def unforeseen(error: Exception) -> str:
    """An error that nobody expected, in one line: what it is, and where it was raised."""
    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = "".join(f" at {Path(frame.filename).name}:{frame.lineno}" for frame in place)
    return f"{type(error).__name__}{where}: {shown(str(error))} (please report it)"
