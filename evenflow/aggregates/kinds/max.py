"""max(column): the largest value that is not null, or null if there is none. NaN comes out only if every
value is NaN.

Text is ordered by its bytes. False comes before true.
"""

from __future__ import annotations

import pyarrow as pa

from evenflow.aggregates.aggregate import ANYTHING, Aggregate, Call, Documentation, PartialColumn
from evenflow.aggregates.partials.picks import extreme_column, fitting, unfit_texts
from evenflow.numeric.arrays import one_chunk


def _column(call: Call) -> PartialColumn:
    return extreme_column("max", call, 1)


def _values(partials: pa.Table, call: Call) -> pa.Array:
    return one_chunk(partials[_column(call).name])


MAX = Aggregate(
    name="max",
    forms=("max(column)",),
    over=ANYTHING,
    partials=lambda call: (_column(call),),
    result_type=lambda call: call.type,
    finish=lambda partials, call: fitting(_values(partials, call), call.room.result),
    unfit=lambda partials, call: unfit_texts(_values(partials, call), call.room.result),
    documentation=Documentation(
        computes="the largest value; of text by its UTF-8 bytes, of booleans false before true",
        nulls="ignored; null where there is no value, and where a text is longer than its room",
        bound="exact",
        state="one value",
    ),
)
