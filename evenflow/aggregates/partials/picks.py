"""Picks the least or the largest row of each group, by two numbers of each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from evenflow.aggregates.aggregate import Call, PartialColumn, Reduction, stored
from evenflow.aggregates.partials.grouping import Grouping
from evenflow.aggregates.partials.lists import null_if
from evenflow.aggregates.partials.orders import order_keys
from evenflow.aggregates.size_limits import cut_texts, is_text, too_long
from evenflow.numeric.arrays import Bools, Int32s, Int64s
from evenflow.numeric.kernels import kernel


class _SortKeys(NamedTuple):
    """By what rows are compared, shape (rows,) each: what kernels take as one argument."""

    majors: Int64s
    """What decides first."""
    minors: Int64s
    """What decides between equal majors."""


@kernel
def _pick(group_ids: Int32s, order: _SortKeys, valid: Bools, sign: int, out: Int64s) -> None:
    """The row of each group with the largest (sign 1) or least (-1) numbers.
    `out` begins with -1 for "none yet".
    """
    majors, minors = order
    for row in range(group_ids.shape[0]):
        if not valid[row]:
            continue
        group = group_ids[row]
        best = out[group]
        if best < 0:
            out[group] = row
            continue
        # Of equal rows the first stays.
        if majors[row] == majors[best]:
            better = minors[row] > minors[best] if sign > 0 else minors[row] < minors[best]
        else:
            better = majors[row] > majors[best] if sign > 0 else majors[row] < majors[best]
        if better:
            out[group] = row


def picked(
    column: pa.Array, groups: Grouping, *, majors: Int64s, minors: Int64s, valid: Bools, sign: int
) -> pa.Array:
    """The value of `column` in the row of each group with the largest (sign 1) or least (-1) numbers.

    majors decide, and minors decide between equal majors. A group without a valid row gets null.
    """
    rows = np.full(groups.count, -1, np.int64)
    _pick(groups.ids, _SortKeys(majors.astype(np.int64), minors.astype(np.int64)), valid, sign, rows)
    return column.take(pa.array(rows, mask=rows < 0))


@dataclass(frozen=True)
class Extreme:
    """Reduction from texts to the largest (sign 1) or least (-1) text of each group,
    cut to a little more than `room`.
    """

    sign: int
    """1: the largest text is kept, -1: the least."""
    room: int
    """Bytes that a text may take in a result."""

    def __call__(self, column: pa.Array | None, groups: Grouping) -> pa.Array:
        """The text of each group. Null for a group without a text."""
        assert column is not None
        return extreme_value(cut_texts(column, self.room), groups, self.sign)


def extreme_column(name: str, call: Call, sign: int) -> PartialColumn:
    """Partial column: the largest (sign 1) or least (-1) value that is not null."""
    pick: str | Reduction = Extreme(sign, call.room.result) if is_text(call.type) else name
    return PartialColumn(
        name=f"{name}_{call.column}", type=stored(call.type), source=call.column, combine=pick, merge=pick
    )


def fitting(texts: pa.Array, room: int) -> pa.Array:
    """The values with null in place of texts that are too long. See `unfit_texts`."""
    return null_if(texts, too_long(texts, room))


def unfit_texts(texts: pa.Array, room: int) -> int:
    """How many of the values `fitting` makes null."""
    return int(np.count_nonzero(too_long(texts, room)))


def extreme_value(column: pa.Array, groups: Grouping, sign: int) -> pa.Array:
    """The largest (sign 1) or least (-1) value of each group. Null for a group without a value.

    The values may be of any type that `order_keys` knows.
    """
    orders = order_keys(column)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    extremes = picked(column, groups, majors=orders, minors=orders, valid=valid, sign=sign)
    return extremes.cast(stored(column.type))


@dataclass(frozen=True)
class InTime:
    """Reduction from structs (time, value) to the last (sign 1) or first (-1) struct of each group.

    If several structs have that time, the largest (sign 1) or least (-1) value decides. So the struct depends
    on the tuples alone. A text is cut to a little more than `room` bytes.
    """

    sign: int
    """1: the last struct is kept, -1: the first."""
    room: int
    """Bytes that a text may take in a result."""

    def __call__(self, column: pa.Array | None, groups: Grouping) -> pa.Array:
        """The struct of each group. Null for a group without a value that is not null."""
        assert column is not None
        values, times = cut_texts(column.field("value"), self.room), column.field("time")
        valid = (column.is_valid().to_numpy(zero_copy_only=False)) & values.is_valid().to_numpy(
            zero_copy_only=False
        )
        moments = picked(
            pa.StructArray.from_arrays([times, values], ["time", "value"]),
            groups,
            majors=times.fill_null(0).to_numpy(zero_copy_only=False),
            minors=order_keys(values),
            valid=valid,
            sign=self.sign,
        )
        return moments.cast(moment_type(values.type))


def moment_type(value: pa.DataType) -> pa.DataType:
    """Arrow type of a struct of an event time (ms) and a value of this type."""
    return pa.struct([("time", pa.int64()), ("value", stored(value))])


def in_time_column(name: str, call: Call, sign: int) -> PartialColumn:
    """Partial column: the last (sign 1) or first (-1) value that is not null, with its time."""
    pick = InTime(sign, call.room.result)
    return PartialColumn(
        name=f"{name}_{call.column}",
        type=moment_type(call.type),
        source=call.column,
        combine=pick,
        merge=pick,
        timed=True,
    )
