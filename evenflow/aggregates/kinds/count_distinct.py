"""count_distinct(column): about how many different values that are not null. With `exact`, exactly how
many.
"""

from __future__ import annotations

import pyarrow as pa

from evenflow.aggregates.aggregate import ANYTHING, Aggregate, Call, Documentation, PartialColumn
from evenflow.aggregates.partials.lists import lengths, null_if
from evenflow.aggregates.partials.multisets import multiset_column
from evenflow.aggregates.partials.registers import estimated, registers_column
from evenflow.numeric.arrays import one_chunk


def _read(written: tuple[str, ...]) -> tuple[str, ...]:
    if written not in ((), ("exact",)):
        raise ValueError("its only option is exact")
    return written


def _partials(call: Call) -> tuple[PartialColumn, ...]:
    return (multiset_column(call) if call.options else registers_column(call),)


def _finish(partials: pa.Table, call: Call) -> pa.Array:
    if not call.options:
        return estimated(partials, call.column)
    sets = one_chunk(partials[multiset_column(call).name])
    return null_if(pa.array(lengths(sets)), sets.is_null().to_numpy(zero_copy_only=False))


def _unfit(partials: pa.Table, call: Call) -> int:
    return partials[multiset_column(call).name].null_count if call.options else 0


COUNT_DISTINCT = Aggregate(
    name="count_distinct",
    forms=("count_distinct(column)", "count_distinct(column, exact)"),
    over=ANYTHING,
    read=_read,
    partials=_partials,
    result_type=lambda call: pa.int64(),
    finish=_finish,
    unfit=_unfit,
    bound=lambda call: (
        "exact" if call.options else "standard error 1.6 %; verify allows six of them and 4 more: 10 % + 4"
    ),
    documentation=Documentation(
        computes="how many different values (HyperLogLog with 4,096 registers)",
        nulls=(
            "not counted; 0 where there is no value; with `exact` null where"
            " the values take more than their room"
        ),
        bound="standard error 1.6 %; verify allows six of them and 4 more: 10 % + 4. With `exact` exact",
        state=(
            "4 bytes for each different value, at most 16 KiB; with `exact`"
            " every different value with its count"
        ),
    ),
)
