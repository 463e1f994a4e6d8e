"""last(column): the last value by event time that is not null. If several values have that time, the
largest of them.
"""

from __future__ import annotations

import pyarrow as pa

from evenflow.aggregates.aggregate import ANYTHING, Aggregate, Call, Documentation
from evenflow.aggregates.partials.picks import fitting, in_time_column, unfit_texts
from evenflow.numeric.arrays import one_chunk


def _values(partials: pa.Table, call: Call) -> pa.Array:
    return one_chunk(partials[f"last_{call.column}"]).flatten()[1]


LAST = Aggregate(
    name="last",
    forms=("last(column)",),
    over=ANYTHING,
    partials=lambda call: (in_time_column("last", call, 1),),
    result_type=lambda call: call.type,
    finish=lambda partials, call: fitting(_values(partials, call), call.room.result),
    unfit=lambda partials, call: unfit_texts(_values(partials, call), call.room.result),
    documentation=Documentation(
        computes="the last value by event time; of several at one time the largest",
        nulls="ignored; null where there is no value, and where a text is longer than its room",
        bound="exact",
        state="a value and its time",
    ),
)
