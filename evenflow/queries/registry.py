"""The registry of built-in queries."""

from __future__ import annotations

from evenflow.errors import ConfigError
from evenflow.queries.builtin import BuiltInQuery
from evenflow.queries.clusters import CLUSTERS
from evenflow.queries.debs_q1_fares import DEBS_Q1_FARES
from evenflow.queries.debs_q1_routes import DEBS_Q1_ROUTES
from evenflow.queries.debs_q2_areas import DEBS_Q2_AREAS
from evenflow.queries.debs_q2_distance import DEBS_Q2_DISTANCE
from evenflow.queries.flights import FLIGHTS
from evenflow.queries.gcm_q1 import GCM_Q1
from evenflow.queries.gcm_q2 import GCM_Q2
from evenflow.queries.retail import RETAIL
from evenflow.queries.top_words import TOP_WORDS
from evenflow.queries.tpch_part_quantity import TPCH_PART_QUANTITY
from evenflow.queries.tpch_q1 import TPCH_Q1
from evenflow.queries.tpch_q3 import TPCH_Q3
from evenflow.queries.tpch_q6 import TPCH_Q6
from evenflow.queries.wordcount import WORDCOUNT

_ALL = {
    query.name: query
    for query in (
        WORDCOUNT,
        TOP_WORDS,
        FLIGHTS,
        DEBS_Q1_ROUTES,
        DEBS_Q1_FARES,
        DEBS_Q2_AREAS,
        DEBS_Q2_DISTANCE,
        GCM_Q1,
        GCM_Q2,
        TPCH_Q1,
        TPCH_Q3,
        TPCH_Q6,
        TPCH_PART_QUANTITY,
        RETAIL,
        CLUSTERS,
    )
}


def known() -> tuple[BuiltInQuery, ...]:
    """All built-in queries."""
    return tuple(_ALL.values())


def named(name: str) -> BuiltInQuery:
    """The query of this name. The ConfigError for an unknown name lists the known names."""
    if name not in _ALL:
        raise ConfigError(f"there is no built-in query {name!r}", hint=f"known: {', '.join(_ALL)}")
    return _ALL[name]
