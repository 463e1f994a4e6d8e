"""quantile(column, q): the value of rank ceil(q n) among the n values that are not null.
q = 0.5 gives the median.
"""

from __future__ import annotations

import pyarrow as pa

from evenflow.aggregates.aggregate import Aggregate, Call, Documentation, PartialColumn
from evenflow.aggregates.partials.bins import bins_column, middles
from evenflow.aggregates.partials.lists import ValueCounts, entry_groups_of_rows, null_if, take_rows
from evenflow.aggregates.partials.multisets import multiset_column, ranked
from evenflow.numeric.arrays import one_chunk


def _read(written: tuple[str, ...]) -> tuple[float, bool]:
    """(q, whether `exact` is written). Raises ValueError for other options."""
    share, *rest = written or ("",)
    try:
        q = float(share)
    except ValueError:
        raise ValueError("it needs a number from 0 to 1 behind the column") from None
    if not 0 <= q <= 1:
        raise ValueError(f"{share} is not from 0 to 1")
    if rest not in ([], ["exact"]):
        raise ValueError("its only option behind the number is exact")
    return q, bool(rest)


def _partial(call: Call) -> PartialColumn:
    return multiset_column(call) if call.options[1] else bins_column(call)


def _finish(partials: pa.Table, call: Call) -> pa.Array:
    q, exact = call.options
    lists = one_chunk(partials[_partial(call).name])
    entries = lists.flatten()
    value_counts = ValueCounts(
        entry_groups_of_rows(lists), entries.field("value"), entries.field("count").to_numpy()
    )
    at, sizes = ranked(value_counts, q, len(lists))
    if not len(entries):
        return pa.nulls(len(lists), call.type)
    # In a group of no values `at` may lie beyond the last entry. `null_if` makes the value null.
    values = take_rows(value_counts.values, at.clip(max=len(entries) - 1))
    return null_if(values if exact else middles(values.to_numpy(), call.type), sizes == 0)


def _unfit(partials: pa.Table, call: Call) -> int:
    return int(partials[_partial(call).name].null_count)


QUANTILE = Aggregate(
    name="quantile",
    forms=("quantile(column, 0.99)", "quantile(column, 0.99, exact)"),
    read=_read,
    partials=lambda call: (_partial(call),),
    result_type=lambda call: call.type,
    finish=_finish,
    unfit=_unfit,
    bound=lambda call: "exact" if call.options[1] else "1/256 (0.4 %) of its size",
    documentation=Documentation(
        computes=(
            "the value of rank ceil(q n) of n (DDSketch, 128 bins for each"
            " factor of two), of the column's type"
        ),
        nulls="ignored; null where there is no value, and where the bins or values take more than their room",
        bound=(
            "1/256 (0.4 %) of its size; whole numbers below 256, and decimals of as few last digits, are"
            " exact. With `exact` exact"
        ),
        state=(
            "16 bytes for each bin that holds a value (128 for each factor of two that the values span); "
            "with `exact` every different value with its count"
        ),
    ),
)
