"""min(column): the smallest value that is not null, or null if there is none. NaN comes out only if every value is NaN.

Text is ordered by its bytes. False comes before true.
"""

from __future__ import annotations

from evenflow.aggregates.aggregate import ANYTHING, Aggregate, Call, PartialColumn, Said, stored


def _partials(call: Call) -> tuple[PartialColumn, ...]:
    name = f"min_{call.column}"
    return (PartialColumn(name=name, type=stored(call.type), source=call.column, combine="min", merge="min"),)


MIN = Aggregate(
    name="min",
    forms=("min(column)",),
    over=ANYTHING,
    partials=_partials,
    result_type=lambda call: call.type,
    finish=lambda partials, call: partials[f"min_{call.column}"],
    said=Said(
        computes="the smallest value; of text by its UTF-8 bytes, of booleans false before true",
        nulls="ignored; null where there is no value",
        bound="exact",
        state="one value",
    ),
)
