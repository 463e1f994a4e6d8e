"""collect(column, most): the first `most` values that are not null, by event time.
Values of one time go by value.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from evenflow.aggregates.aggregate import ANYTHING, Aggregate, Call, Documentation
from evenflow.aggregates.options import whole
from evenflow.aggregates.partials.earliest import earliest_column
from evenflow.aggregates.partials.lists import as_lists, entry_groups_of_rows, lengths, null_if
from evenflow.aggregates.size_limits import entry_bytes, group_sums
from evenflow.numeric.arrays import Bools, one_chunk

_MOST = 10_000


def _read(written: tuple[str, ...]) -> tuple[int, ...]:
    if len(written) != 1:
        raise ValueError("it needs one number behind the column: how many values it keeps")
    return (whole(written[0], 1, _MOST, "the number of values"),)


def _finish(partials: pa.Table, call: Call) -> pa.Array:
    lists = _lists(partials, call)
    values = as_lists(entry_groups_of_rows(lists), lists.flatten().field("value"), len(lists))
    return null_if(values, np.equal(lengths(lists), 0) | _too_large(lists, call))


def _lists(partials: pa.Table, call: Call) -> pa.Array:
    return one_chunk(partials[earliest_column(call, *call.options).name])


def _too_large(lists: pa.Array, call: Call) -> Bools:
    sizes = entry_bytes(lists.flatten().field("value"))
    return group_sums(entry_groups_of_rows(lists), sizes, len(lists)) > call.room.result


def _unfit(partials: pa.Table, call: Call) -> int:
    return int(np.count_nonzero(_too_large(_lists(partials, call), call)))


COLLECT = Aggregate(
    name="collect",
    forms=("collect(column, 100)",),
    over=ANYTHING,
    read=_read,
    partials=lambda call: (earliest_column(call, *call.options),),
    result_type=lambda call: pa.list_(call.type),
    finish=_finish,
    unfit=_unfit,
    documentation=Documentation(
        computes=(
            "a list of the values, repeated ones too, in the order of event time, those of one time in the"
            " order of the values; of more than the number given (1 to 10,000) the first ones stay"
        ),
        nulls="left out; null where there is no value, and where the list takes more than its room",
        bound="exact",
        state="at most so many values with their times",
    ),
)
