"""Aggregates of one's own, without a fork. docs/your-own-aggregates.md shows how to write one.

    [query.aggregates]
    spread = "my_module:Spread(price)"

`PlainAggregate` is plain Python: a state, to which values are added one by one. `TableAggregate` is three
functions on Arrow tables. `registry.aggregate` loads either of them by name, and `as_aggregate` makes an
`Aggregate` of it, which plans treat as any other. `check_aggregate` (checking.py) holds it to the laws of
this package.

Admission rule: what a user's class derives from, and what turns it into an `Aggregate`. No built-in aggregate
is here.
"""

from evenflow.aggregates.own.plain import PlainAggregate
from evenflow.aggregates.own.tables import TableAggregate

__all__ = ["PlainAggregate", "TableAggregate"]
