"""What a built-in query is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class BuiltInQuery:
    """A ready query: `fields` are those of `[query]`, `source` is what `evenflow replay` takes.

    columns: the columns worth sending, None for all. what: one line for people.
    data: how much there is, and where it comes from.
    """

    name: str
    what: str
    source: str
    data: str
    fields: Mapping[str, Any]
    columns: tuple[str, ...] | None = None
