"""Built-in queries: a name, the settings of the query, and the source that feeds it.

Admission rule: declarations only. A new query is one file and one line in `registry`.
"""

from evenflow.queries.builtin import BuiltInQuery
from evenflow.queries.flights import FLIGHTS
from evenflow.queries.registry import all_queries, catalogue, named

__all__ = ["FLIGHTS", "BuiltInQuery", "all_queries", "catalogue", "named"]
