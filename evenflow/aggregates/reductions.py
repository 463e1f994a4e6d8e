"""Associative reductions of one column over the groups of a `Grouping`: the atoms of partial columns.

    count_all   rows                  sum   of what is not null, 0 for none
    count       values not null       min   max: of what is not null, null for none; NaN only among NaNs

Rows are taken in order, so float sums are the same whenever the rows are. An int64 sum that does not
fit raises: it is computed with a carry, so only the true sum matters, not what was on the way to it.
A name outside this table is taken for an Arrow hash kernel ("hash_" + name) and run by Arrow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.aggregates.grouping import Grouping
from evenflow.arrays import Bools
from evenflow.errors import ConfigError, EvenflowError
from evenflow.kernels import kernel

_NO_MASK = np.empty(0, np.bool_)


class SumOverflowError(EvenflowError):
    """A sum of int64 values is outside the range of int64: no result is right, so there is none."""


@kernel
def _count_all(of: Any, out: Any) -> None:
    for row in range(of.shape[0]):
        out[of[row]] += 1


@kernel
def _count_valid(of: Any, valid: Any, out: Any) -> None:
    for row in range(of.shape[0]):
        if valid[row]:
            out[of[row]] += 1


@kernel
def _sum_int(of: Any, values: Any, valid: Any, out: Any, carry: Any) -> bool:
    masked = valid.shape[0] > 0
    overflowed = False
    for row in range(of.shape[0]):
        if masked and not valid[row]:
            continue
        group = of[row]
        before, value = out[group], values[row]
        after = before + value
        if ((before ^ after) & (value ^ after)) < 0:
            carry[group] += 1 if value > 0 else -1
            overflowed = True
        out[group] = after
    return overflowed


@kernel
def _sum_float(of: Any, values: Any, valid: Any, out: Any) -> None:
    masked = valid.shape[0] > 0
    for row in range(of.shape[0]):
        if not masked or valid[row]:
            out[of[row]] += values[row]


@kernel
def _extreme(of: Any, values: Any, valid: Any, sign: Any, out: Any, found: Any) -> None:
    masked = valid.shape[0] > 0
    for row in range(of.shape[0]):
        if masked and not valid[row]:
            continue
        group, value = of[row], values[row]
        if not found[group]:
            out[group] = value
            found[group] = True
        elif (value > out[group] if sign > 0 else value < out[group]) or (
            out[group] != out[group] and value == value
        ):
            out[group] = value


def reduce_column(name: str, values: pa.Array | None, groups: Grouping) -> pa.Array:
    """The named reduction of `values` (None for count_all) per group; one row per group, in group order."""
    known = REDUCTIONS.get(name)
    if known is not None:
        return known(values, groups)
    table = pa.table({"group": groups.of, "value": values})
    try:
        reduced = table.group_by("group", use_threads=False).aggregate([("value", name)])
    except (pa.ArrowKeyError, KeyError) as error:
        raise ConfigError(f"there is no reduction {name!r}: {error}") from None
    ordered = reduced.take(pc.array_sort_indices(reduced["group"]))
    return ordered[f"value_{name}"].combine_chunks()


def _values(column: pa.Array) -> tuple[npt.NDArray[Any], Bools]:
    """The values (anything where null) and the mask of those not null (empty: there is no null)."""
    dtype = np.int64 if pa.types.is_integer(column.type) else np.float64
    buffer = column.buffers()[1]
    values = np.frombuffer(buffer, dtype)[column.offset : column.offset + len(column)]
    if column.null_count == 0:
        return values, _NO_MASK
    return values, pc.is_valid(column).to_numpy(zero_copy_only=False)


def _reduce_count_all(values: pa.Array | None, groups: Grouping) -> pa.Array:
    out = np.zeros(groups.count, np.int64)
    _count_all(groups.of, out)
    return pa.array(out)


def _reduce_count(values: pa.Array | None, groups: Grouping) -> pa.Array:
    assert values is not None
    if values.null_count == 0:
        return _reduce_count_all(None, groups)
    out = np.zeros(groups.count, np.int64)
    _count_valid(groups.of, pc.is_valid(values).to_numpy(zero_copy_only=False), out)
    return pa.array(out)


def _reduce_sum(column: pa.Array | None, groups: Grouping) -> pa.Array:
    assert column is not None
    if len(column) == 0:
        return pa.array([], column.type)
    values, valid = _values(column)
    out = np.zeros(groups.count, values.dtype)
    if values.dtype == np.float64:
        _sum_float(groups.of, values, valid, out)
        return pa.array(out)
    carry = np.zeros(groups.count, np.int32)
    if _sum_int(groups.of, values, valid, out, carry) and carry.any():
        raise SumOverflowError(
            "a sum of int64 values does not fit in int64 (beyond +-9.2e18)",
            hint="declare the column as float64 in [query.types], or scale it down",
        )
    return pa.array(out)


def _extreme_reduction(sign: int) -> Callable[[pa.Array | None, Grouping], pa.Array]:
    def reduce_extreme(column: pa.Array | None, groups: Grouping) -> pa.Array:
        assert column is not None
        if len(column) == 0:
            return pa.array([], column.type)
        values, valid = _values(column)
        out, found = np.zeros(groups.count, values.dtype), np.zeros(groups.count, np.bool_)
        _extreme(groups.of, values, valid, sign, out, found)
        return pa.array(out, mask=None if found.all() else ~found)

    return reduce_extreme


REDUCTIONS: dict[str, Callable[[pa.Array | None, Grouping], pa.Array]] = {
    "count_all": _reduce_count_all,
    "count": _reduce_count,
    "sum": _reduce_sum,
    "min": _extreme_reduction(-1),
    "max": _extreme_reduction(1),
}
