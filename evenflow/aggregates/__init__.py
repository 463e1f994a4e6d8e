"""Aggregates: each is a set of partial columns and a `finish`; a plan composes those of a query.

Admission rule: one file per aggregate, exporting one `Aggregate`; `registry.py` lists it (one line);
`reductions.py` holds the associative reductions that partial columns are made of. Null rules are
SQL's: `count` counts tuples; sum, mean, min and max ignore nulls and are null where a key's window
has no value at all.

The law (tests/unit/aggregates): finish(merge(combine(parts))) = finish(combine(whole)), for any
cut of the rows into parts; `merge` is associative. Sums of float64 are equal up to rounding only,
and exactly equal whenever the cut and the order are.
"""

from evenflow.aggregates.aggregate import Aggregate, PartialColumn
from evenflow.aggregates.plan import AggregatePlan
from evenflow.aggregates.registry import AGGREGATES, known_aggregates

__all__ = ["AGGREGATES", "Aggregate", "AggregatePlan", "PartialColumn", "known_aggregates"]
