"""The fields of a built-in query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class BuiltInQuery:
    """A query that is ready to run: one of evenflow, or one of your own.

    what: one line for people. source: the argument of `evenflow replay`. data: how much data the source has, and where
    it comes from. fields: those of `[query]`. columns: the columns that are worth sending, None for all.
    lookup_words: None without a lookup. Otherwise the words that name, behind those of the source, the rows of the lookup
    file, which is written when the query is run. `fields` have the file's name alone then.
    """

    name: str
    what: str
    source: str
    data: str
    fields: Mapping[str, Any]
    columns: tuple[str, ...] | None = None
    lookup_words: str | None = None
