"""What a look finds: one thing said in words, how bad it is, and the settings that would mend it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

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
