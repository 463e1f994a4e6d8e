"""The fields of a built-in query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class BuiltInQuery:
    """A query that is ready to run: one of evenflow, or one of your own."""

    name: str
    """The name by which commands and documentation call the query."""
    what: str
    """What it computes, in one line for people."""
    source: str
    """The argument of `evenflow replay`."""
    data: str
    """How much data the source has, and where it comes from."""
    fields: Mapping[str, Any]
    """The settings of `[query]`. A lookup file stands there by its name, without a folder."""
    columns: tuple[str, ...] | None = None
    """The columns that are worth sending, None for all."""
    lookup_words: str | None = None
    """The words that name, behind those of the source, the rows of the lookup file, which is written when the
    query is run. None without a lookup."""
