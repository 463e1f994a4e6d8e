"""Aggregates: each is a set of partial columns and a `finish`. A plan composes the aggregates of a query.

Admission rule: one file per aggregate, which exports one `Aggregate` and has one line in `registry.py`.
Partial columns are made of associative reductions. `reductions.py` holds the basic ones, and the modules
beside it hold those of sketches and lists. Null rules are SQL's: `count` counts tuples. The other aggregates
ignore nulls, and are null if a key's window has no value at all (counts are 0). docs/aggregates.md (made by
page.py) says what each aggregate computes.

The law (tests/unit/aggregates): finish(merge(combine(parts))) = finish(combine(whole)), for any cut of the
rows into parts. `merge` is associative. Sums and variances of float64 are equal up to rounding only, and
counters of `top_k` up to their error. If the cut and the order of the rows are the same, everything is
exactly equal.
"""

from evenflow.aggregates.aggregate import Aggregate, PartialColumn
from evenflow.aggregates.plan import AggregatePlan
from evenflow.aggregates.registry import AGGREGATES, every_form, known_aggregates

__all__ = [
    "AGGREGATES",
    "Aggregate",
    "AggregatePlan",
    "PartialColumn",
    "every_form",
    "known_aggregates",
]
