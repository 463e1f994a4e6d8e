"""top_k(column, k): the k most frequent values that are not null.
A third number bounds the counters of a key.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from evenflow.aggregates.aggregate import ANYTHING, Aggregate, Call, Documentation, PartialColumn
from evenflow.aggregates.options import whole
from evenflow.aggregates.partials.frequent import frequent_column
from evenflow.aggregates.partials.lists import ValueCounts, as_lists, entry_groups_of_rows, lengths, null_if
from evenflow.aggregates.partials.multisets import largest, multiset_column
from evenflow.aggregates.size_limits import entry_bytes, group_sums
from evenflow.numeric.arrays import Bools, one_chunk

_MOST, _MOST_COUNTERS = 1_000, 100_000


def _read(written: tuple[str, ...]) -> tuple[int, int]:
    """(k, counters). 0 counters: every value has one. Raises ValueError for other options."""
    if not 1 <= len(written) <= 2:
        raise ValueError("it needs a number of values behind the column, and may have a number of counters")
    k = whole(written[0], 1, _MOST, "k")
    return k, whole(written[1], k, _MOST_COUNTERS, "the number of counters") if written[1:] else 0


def _partial(call: Call) -> PartialColumn:
    counters = call.options[1]
    return frequent_column(call, counters) if counters else multiset_column(call)


def _result_type(call: Call) -> pa.DataType:
    fields = [("value", call.type), ("count", pa.int64())]
    return pa.list_(pa.struct([*fields, *([("error", pa.int64())] if call.options[1] else [])]))


def _finish(partials: pa.Table, call: Call) -> pa.Array:
    k, counters = call.options
    column = one_chunk(partials[_partial(call).name])
    lists = _lists(column, call)
    entries = lists.flatten()
    value_counts = ValueCounts(
        entry_groups_of_rows(lists), entries.field("value"), entries.field("count").to_numpy()
    )
    top = largest(value_counts, k)
    nulls = lengths(lists) == 0
    fields = {"value": top.values, "count": pa.array(top.counts)}
    if counters:
        errors = column.field("error").to_numpy()
        # A counter is a lower bound, and counter + error is the upper bound that comes out as `count`.
        fields |= {
            "count": pa.array(top.counts + errors[top.group_ids]),
            "error": pa.array(errors[top.group_ids]),
        }
        # An error above 0 says that there were values, even if no counter is left. The list is empty then,
        # not null.
        nulls &= errors == 0
    rows = pa.StructArray.from_arrays(list(fields.values()), list(fields))
    return null_if(as_lists(top.group_ids, rows, len(column)), nulls | _too_large(top, len(column), call))


def _too_large(top: ValueCounts, count: int, call: Call) -> Bools:
    """Which of `count` lists take more than a result has room for."""
    return group_sums(top.group_ids, entry_bytes(top.values), count) > call.room.result


def _unfit(partials: pa.Table, call: Call) -> int:
    lists = _lists(one_chunk(partials[_partial(call).name]), call)
    sizes = group_sums(entry_groups_of_rows(lists), entry_bytes(lists.flatten().field("value")), len(lists))
    some = np.flatnonzero(sizes > call.room.result)  # rare: only in these the first k can be too large
    picked = lists.take(pa.array(some))
    entries = picked.flatten()
    value_counts = ValueCounts(
        entry_groups_of_rows(picked), entries.field("value"), entries.field("count").to_numpy()
    )
    return lists.null_count + int(
        np.count_nonzero(_too_large(largest(value_counts, call.options[0]), len(some), call))
    )


def _lists(column: pa.Array, call: Call) -> pa.Array:
    return column.field("entries") if call.options[1] else column


TOP_K = Aggregate(
    name="top_k",
    forms=("top_k(column, 10)", "top_k(column, 10, 1000)"),
    over=ANYTHING,
    read=_read,
    partials=lambda call: (_partial(call),),
    result_type=_result_type,
    finish=_finish,
    unfit=_unfit,
    bound=lambda call: (
        f"a value occurs at most `count` and at least `count - error` times, by {call.options[1]:,} counters"
        if call.options[1]
        else "exact"
    ),
    documentation=Documentation(
        computes=(
            "the k (1 to 1,000) most frequent values, each with its `count`, the most frequent first; of"
            " equally frequent ones the smaller. With a number of counters of each key (k to 100,000) it is"
            " computed by SpaceSaving: each value has its `error` too"
        ),
        nulls=(
            "ignored; null where there is no value, and where the values"
            " or the list take more than their room"
        ),
        bound=(
            "exact; with c counters a value occurs at most `count` and at least `count - error` times,"
            " `error` is at most n / (c + 1) of n values, and 0 where there were no more than c different"
            " ones; the list is shorter, or empty, where the counters cannot tell which are frequent"
        ),
        state="every different value with its count; with c counters at most c of them",
    ),
)
