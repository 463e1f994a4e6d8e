"""The registry of built-in queries."""

from __future__ import annotations

from evenflow.errors import ConfigError
from evenflow.queries.builtin import BuiltInQuery
from evenflow.queries.debs_q1_fares import DEBS_Q1_FARES
from evenflow.queries.debs_q2_distance import DEBS_Q2_DISTANCE
from evenflow.queries.flights import FLIGHTS
from evenflow.queries.gcm_q1 import GCM_Q1
from evenflow.queries.gcm_q2 import GCM_Q2
from evenflow.queries.tpch_part_quantity import TPCH_PART_QUANTITY
from evenflow.queries.wordcount import WORDCOUNT

_ALL = {
    query.name: query
    for query in (
        WORDCOUNT,
        FLIGHTS,
        DEBS_Q1_FARES,
        DEBS_Q2_DISTANCE,
        GCM_Q1,
        GCM_Q2,
        TPCH_PART_QUANTITY,
    )
}


def known() -> tuple[BuiltInQuery, ...]:
    """Every built-in query."""
    return tuple(_ALL.values())


def named(name: str) -> BuiltInQuery:
    """The query of this name; ConfigError lists the known ones."""
    if name not in _ALL:
        raise ConfigError(f"there is no built-in query {name!r}", hint=f"known: {', '.join(_ALL)}")
    return _ALL[name]
