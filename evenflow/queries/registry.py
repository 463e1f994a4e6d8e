"""The registry of built-in queries."""

from __future__ import annotations

from evenflow.errors import ConfigError
from evenflow.queries.builtin import BuiltInQuery
from evenflow.queries.flights import FLIGHTS

_ALL = {query.name: query for query in (FLIGHTS,)}


def known() -> tuple[BuiltInQuery, ...]:
    """Every built-in query."""
    return tuple(_ALL.values())


def named(name: str) -> BuiltInQuery:
    """The query of this name; ConfigError lists the known ones."""
    if name not in _ALL:
        raise ConfigError(f"there is no built-in query {name!r}", hint=f"known: {', '.join(_ALL)}")
    return _ALL[name]
