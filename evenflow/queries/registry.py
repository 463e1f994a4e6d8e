"""The registry of built-in queries.
Another name is asked of `evenflow.plugins`: an entry point, or `module:QUERY`.
"""

from __future__ import annotations

import logging

from evenflow.errors import ConfigError
from evenflow.plugins import QUERIES, Entry
from evenflow.queries.builtin import BuiltInQuery
from evenflow.queries.clusters import CLUSTERS
from evenflow.queries.debs_q1_fares import DEBS_Q1_FARES
from evenflow.queries.debs_q1_routes import DEBS_Q1_ROUTES
from evenflow.queries.debs_q2 import DEBS_Q2
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

log = logging.getLogger(__name__)
_ALL = {
    query.name: query
    for query in (
        WORDCOUNT,
        TOP_WORDS,
        FLIGHTS,
        DEBS_Q1_ROUTES,
        DEBS_Q1_FARES,
        DEBS_Q2,
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


def all_queries() -> tuple[BuiltInQuery, ...]:
    """All built-in queries, and behind them those that installed packages offer. One that cannot be loaded is
    left out, with a warning."""
    offered = []
    for name in QUERIES.names(own=_ALL):
        try:
            offered.append(named(name))
        except ConfigError as error:
            log.warning("%s", error.message)
    return (*_ALL.values(), *offered)


def catalogue() -> list[Entry[BuiltInQuery]]:
    """All queries by name, and behind evenflow's those that installed packages offer."""
    return QUERIES.entries(_ALL, named, lambda query: query.what)


def named(name: str) -> BuiltInQuery:
    """The query of this name, or of `module:QUERY`.
    ConfigError for an unknown name, and for what is no BuiltInQuery.
    """
    if name in _ALL:
        return _ALL[name]
    if not QUERIES.knows(name):
        raise ConfigError(
            f"there is no built-in query {name!r}",
            hint=f"known: {QUERIES.listed(_ALL)}; one of your own is written as module:QUERY",
        )
    query = QUERIES.load(name)
    if not isinstance(query, BuiltInQuery):
        raise ConfigError(
            f"{name} is no query: it is of class {type(query).__name__}",
            hint="make an object of evenflow.queries.BuiltInQuery (docs/your-own.md)",
        )
    return query
