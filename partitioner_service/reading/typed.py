"""Cells to columns of declared types, for what is no plain number and no plain text: truths, dates, decimals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.arrays import Bools, Int64s, viewed
from evenflow.kernels import kernel

CSV_NULLS = ("", "NA", "null", "NULL")
"""What is null in a csv field that holds no text."""
_DIGITS = 18
_DATE = r"^\d{4}-\d{2}-\d{2}$"
_TRUE, _FALSE = pa.array(["true", "True", "TRUE"]), pa.array(["false", "False", "FALSE"])


def truths(texts: pa.StringArray) -> tuple[pa.BooleanArray, Bools]:
    """true and false of csv fields, and which are neither; null stays null."""
    true = pc.is_in(texts, _TRUE)
    wrong = pc.and_(pc.is_valid(texts), pc.invert(pc.or_(true, pc.is_in(texts, _FALSE))))
    return pc.if_else(pc.is_valid(texts), true, None), wrong.to_numpy(zero_copy_only=False)


def dates(texts: pa.StringArray) -> tuple[pa.Date32Array, Bools]:
    """Days of the form 2026-01-31, from the year 1 on, and which texts are none; null stays null."""
    shaped = pc.if_else(pc.match_substring_regex(texts, _DATE), texts, None)
    days = pc.strptime(shaped, format="%Y-%m-%d", unit="s", error_is_null=True).cast(pa.date32())
    again = pc.equal(pc.strftime(days, format="%Y-%m-%d"), texts)  # 2026-02-30 would be a day in March
    right = pc.fill_null(pc.and_(again, pc.not_equal(pc.utf8_slice_codeunits(texts, 0, 4), "0000")), False)
    wrong = pc.and_(pc.is_valid(texts), pc.invert(right))
    return pc.if_else(right, days, None), wrong.to_numpy(zero_copy_only=False)


@kernel
def _units(offsets: Any, data: Any, valid: Any, scale: int, out: Any, wrong: Any) -> None:
    """Numbers like -12.50 in units of 10^-scale; white space around them is skipped."""
    for row in range(out.shape[0]):
        if not valid[row]:
            continue
        at = offsets[row]
        stop = offsets[row + 1]
        while at < stop and (data[at] == 32 or data[at] == 9):
            at += 1
        while at < stop and (data[stop - 1] == 32 or data[stop - 1] == 9):
            stop -= 1
        negative = at < stop and data[at] == 45
        if at < stop and (negative or data[at] == 43):
            at += 1
        units = np.int64(0)
        digits = 0
        behind = -1
        seen = False
        right = True
        while at < stop and right:
            byte = data[at]
            if byte == 46 and behind < 0:
                behind = 0
            elif 48 <= byte <= 57:
                seen = True
                if behind >= scale:
                    right = byte == 48
                else:
                    if behind >= 0:
                        behind += 1
                    if digits > 0 or byte != 48:
                        digits += 1
                    if digits <= 18:
                        units = units * 10 + (byte - 48)
            else:
                right = False
            at += 1
        for _ in range(scale - max(behind, 0)):
            if units != 0:
                digits += 1
            if digits <= 18:
                units *= 10
        if not right or not seen or digits > 18:
            wrong[row] = True
        else:
            out[row] = -units if negative else units


def decimals(texts: pa.StringArray, scale: int) -> tuple[pa.Decimal128Array, Bools]:
    """Exact numbers with at most 18 digits, `scale` of them behind the point, and which texts are none; null stays null."""
    rows = len(texts)
    units, wrong = np.zeros(rows, np.int64), np.zeros(rows, np.bool_)
    valid = pc.is_valid(texts).to_numpy(zero_copy_only=False)
    _, offsets, data = texts.buffers()
    _units(
        viewed(offsets, np.int32, texts.offset, rows + 1),
        viewed(data, np.uint8, 0, 0 if data is None else data.size),
        valid, scale, units, wrong,
    )  # fmt: skip
    return held(units, scale, valid & ~wrong), wrong


def held(units: Int64s, scale: int, valid: Bools) -> pa.Decimal128Array:
    """Decimals of so many units of 10^-scale each."""
    words = np.empty((len(units), 2), np.int64)
    words[:, 0] = units
    words[:, 1] = units >> 63
    nulls = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(pa.decimal128(_DIGITS, scale), len(units), [nulls, pa.py_buffer(words)])
