"""Associative reductions of one column over the groups of a `Grouping`. Partial columns are made of them.

    count_all    how many rows
    count        how many values are not null
    sum_counts   sum of counts of either kind
    sum          sum of the values that are not null, 0 if there are none
    min, max     least and largest value that is not null, null if there is none. NaN only if all values are
                 NaN. For any type that has an order

A `sum` of int64 or decimal values, or of such sums, is a 128-bit integer (wide_sums.py) and cannot overflow.
A sum of float64 values is a float64, which is infinite beyond 1.8e308, as in IEEE 754. Counts stay far within
int64. Rows are taken in order, so equal rows in equal order give equal float sums.

A partial column may also be given a reduction instead of a name, as sketches are (multisets.py, registers.py,
...). Any other name is taken for one of Arrow's hash kernels ("hash_" + name), which Arrow runs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.aggregates.aggregate import Reduction, stored
from evenflow.aggregates.partials.grouping import Grouping
from evenflow.aggregates.partials.picks import extreme_value
from evenflow.aggregates.partials.wide_sums import (
    add_int64s,
    add_wide,
    from_words,
    no_sums,
    subtract_wide,
    words,
)
from evenflow.errors import ConfigError
from evenflow.numeric.arrays import Bools, Int32s, viewed
from evenflow.numeric.kernels import kernel

_NO_MASK = np.empty(0, np.bool_)


@kernel
def _count_all(group_ids: Int32s, out: npt.NDArray[Any]) -> None:
    for row in range(group_ids.shape[0]):
        out[group_ids[row]] += 1


@kernel
def _count_valid(group_ids: Int32s, valid: Bools, out: npt.NDArray[Any]) -> None:
    for row in range(group_ids.shape[0]):
        if valid[row]:
            out[group_ids[row]] += 1


@kernel
def _sum_counts(group_ids: Int32s, values: npt.NDArray[Any], sign: int, out: npt.NDArray[Any]) -> None:
    for row in range(group_ids.shape[0]):
        out[group_ids[row]] += sign * values[row]


@kernel
def _sum_float(group_ids: Int32s, values: npt.NDArray[Any], valid: Bools, out: npt.NDArray[Any]) -> None:
    masked = valid.shape[0] > 0
    for row in range(group_ids.shape[0]):
        if not masked or valid[row]:
            out[group_ids[row]] += values[row]


class _Column(NamedTuple):
    values: Any
    """int64 or float64."""
    valid: Bools
    """Which values are not null. Empty if all are."""


@kernel
def _extreme(group_ids: Int32s, column: _Column, sign: int, out: npt.NDArray[Any], has_value: Bools) -> None:
    """Largest (sign 1) or least (-1) value of each group. A NaN gives way to any number."""
    values, valid = column
    masked = valid.shape[0] > 0
    for row in range(group_ids.shape[0]):
        if masked and not valid[row]:
            continue
        group, value = group_ids[row], values[row]
        if not has_value[group]:
            out[group] = value
            has_value[group] = True
        # The second condition: a number replaces a NaN, which is the only value that differs from itself.
        elif (value > out[group] if sign > 0 else value < out[group]) or (
            out[group] != out[group] and value == value
        ):
            out[group] = value


def reduce_column(name: str | Reduction, values: pa.Array | None, groups: Grouping) -> pa.Array:
    """The reduction of `values` (None for count_all): one row per group, in group order.

    Raises ConfigError for a name that is no reduction.
    """
    known = REDUCTIONS.get(name) if isinstance(name, str) else name
    if known is not None:
        return known(values, groups)
    table = pa.table({"group": groups.ids, "value": values})
    try:
        reduced = table.group_by("group", use_threads=False).aggregate([("value", name)])
    except (pa.ArrowKeyError, KeyError) as error:
        raise ConfigError(f"there is no reduction {name!r}: {error}") from None
    # Arrow promises no order of the groups.
    ordered = reduced.take(pc.array_sort_indices(reduced["group"]))
    return ordered[f"value_{name}"].combine_chunks()


def subtract_column(name: str | Reduction, column: pa.Array, groups: Grouping, begin: int) -> pa.Array:
    """As `reduce_column`, but rows from `begin` on are subtracted from the sum of the rows before them.

    This is exact. It is for `sum_counts`, and for `sum` of 128-bit sums, only.
    """
    addends, subtrahends = column.slice(0, begin), column.slice(begin)
    if name == "sum_counts":
        counts = np.zeros(groups.count, np.int64)
        _sum_counts(groups.ids[:begin], _values(addends, np.int64), 1, counts)
        _sum_counts(groups.ids[begin:], _values(subtrahends, np.int64), -1, counts)
        return pa.array(counts)
    assert name == "sum", name
    sums = no_sums(groups.count)
    add_wide(groups.ids[:begin], words(addends), _valid(addends), sums)
    subtract_wide(groups.ids[begin:], words(subtrahends), _valid(subtrahends), sums)
    return from_words(sums, column.type.scale)


def _values(column: pa.Array, dtype: type[np.generic]) -> npt.NDArray[Any]:
    """The values of a column as this type of 8 bytes, without a copy, shape (rows,). A null may be
    anything.
    """
    return viewed(column.buffers()[1], dtype, column.offset, len(column))


def _valid(column: pa.Array) -> Bools:
    """Which values are not null. Empty if none is null, so that kernels need not look."""
    return pc.is_valid(column).to_numpy(zero_copy_only=False) if column.null_count else _NO_MASK


def _reduce_count_all(values: pa.Array | None, groups: Grouping) -> pa.Array:
    out = np.zeros(groups.count, np.int64)
    _count_all(groups.ids, out)
    return pa.array(out)


def _reduce_count(values: pa.Array | None, groups: Grouping) -> pa.Array:
    assert values is not None
    if values.null_count == 0:
        return _reduce_count_all(None, groups)
    out = np.zeros(groups.count, np.int64)
    _count_valid(groups.ids, pc.is_valid(values).to_numpy(zero_copy_only=False), out)
    return pa.array(out)


def _reduce_sum_counts(column: pa.Array | None, groups: Grouping) -> pa.Array:
    assert column is not None
    out = np.zeros(groups.count, np.int64)
    if len(column):
        _sum_counts(groups.ids, _values(column, np.int64), 1, out)
    return pa.array(out)


def _reduce_sum(column: pa.Array | None, groups: Grouping) -> pa.Array:
    assert column is not None
    if pa.types.is_floating(column.type):
        out = np.zeros(groups.count, np.float64)
        if len(column):
            _sum_float(groups.ids, _values(column, np.float64), _valid(column), out)
        return pa.array(out)
    sums = no_sums(groups.count)
    if len(column) and pa.types.is_decimal(column.type):
        add_wide(groups.ids, words(column), _valid(column), sums)
    elif len(column):
        # The kernel does 128-bit arithmetic on unsigned words, and int64 values have the same bits.
        add_int64s(groups.ids, _values(column, np.uint64), _valid(column), sums)
    return from_words(sums, column.type.scale if pa.types.is_decimal(column.type) else 0)


def _extreme_reduction(sign: int) -> Reduction:
    def reduce_extreme(column: pa.Array | None, groups: Grouping) -> pa.Array:
        assert column is not None
        if len(column) == 0:
            return pa.array([], stored(column.type))
        if not (pa.types.is_int64(column.type) or pa.types.is_floating(column.type)):
            return extreme_value(column, groups, sign)
        values = _values(column, np.int64 if pa.types.is_integer(column.type) else np.float64)
        out, has_value = np.zeros(groups.count, values.dtype), np.zeros(groups.count, np.bool_)
        _extreme(groups.ids, _Column(values, _valid(column)), sign, out, has_value)
        return pa.array(out, mask=None if has_value.all() else ~has_value)

    return reduce_extreme


REDUCTIONS: dict[str, Reduction] = {
    "count_all": _reduce_count_all,
    "count": _reduce_count,
    "sum_counts": _reduce_sum_counts,
    "sum": _reduce_sum,
    "min": _extreme_reduction(-1),
    "max": _extreme_reduction(1),
}
