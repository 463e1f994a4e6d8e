"""Aggregates: each is a set of partial columns and a `finish`. A plan composes those of a query.

Admission rule: one file per aggregate, exporting one `Aggregate`. `registry.py` lists it (one line).
`reductions.py` holds the associative reductions that partial columns are made of, the modules beside it those of
sketches and lists. Null rules are SQL's: `count` counts tuples. The others ignore nulls and are null where a key's
window has no value at all (counts are 0). docs/aggregates.md (page.py) says what each computes.

The law (tests/unit/aggregates): finish(merge(combine(parts))) = finish(combine(whole)), for any
cut of the rows into parts. `merge` is associative. Sums and variances of float64 are equal up to rounding only,
counters of `top_k` up to their error. All are exactly equal whenever the cut and the order are.
"""

from evenflow.aggregates.aggregate import Aggregate, PartialColumn, arrow_type
from evenflow.aggregates.plan import AggregatePlan
from evenflow.aggregates.registry import AGGREGATES, every_form, known_aggregates

__all__ = [
    "AGGREGATES",
    "Aggregate",
    "AggregatePlan",
    "PartialColumn",
    "arrow_type",
    "every_form",
    "known_aggregates",
]
