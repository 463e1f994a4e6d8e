"""How much the partials and results of one key may take, and what becomes of values that take more.

A value that does not fit is null, and counts as unfit. Whether a value fits depends on the tuples of its
window alone, not on how they were cut into partials or in which order these were merged:

    a text        is cut to a little more than its room. The order of texts stays as it is, but for texts that
                  do not fit. So the least of cut texts is the cut least text, and does not fit if that did
                  not
    a list        keeps its entries up to and with the first that does not fit. What an entry has before it in
                  a part of the tuples is no more than in all of them, so no entry is missed
    a set         is null once it is too large, and null merged with anything is null. A set of fewer tuples
                  is never larger
    counters      are fewer if their texts are long (frequent.py)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.limits import ENTRY_BYTES, RESULT_BYTES, STATE_BYTES
from evenflow.numeric.arrays import Bools, Int64s

_CHARACTER = 4
"""The most bytes of a character in UTF-8."""


@dataclass(frozen=True)
class Room:
    """Bytes of one key in one window. An entry counts `ENTRY_BYTES` and its text."""

    state: int = STATE_BYTES
    """For the set or the counters of a partial column."""
    result: int = RESULT_BYTES
    """For a text or list in a result."""


def text_bytes(values: pa.Array) -> Int64s:
    """Bytes of each text, 0 for null and for values of any other type. Shape (n,)."""
    if not is_text(values.type):
        return np.zeros(len(values), np.int64)
    lengths = pc.binary_length(values)
    if lengths.null_count:
        lengths = pc.fill_null(lengths, 0)
    sizes: Int64s = lengths.to_numpy(zero_copy_only=False).astype(np.int64)
    return sizes


def is_text(type_: pa.DataType) -> bool:
    """Whether values of this type are texts."""
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def entry_bytes(values: pa.Array) -> Int64s:
    """What each entry of a list or set counts. values: the entries' values. Shape (n,)."""
    return text_bytes(values) + ENTRY_BYTES


def cut_texts(values: pa.Array, room: int) -> pa.Array:
    """The values, with texts of more than `room` bytes cut to whole characters,
    which are still too long for it.
    """
    long = np.flatnonzero(text_bytes(values) > room + _CHARACTER)
    if not len(long):
        return values
    # Rare, and each of these texts is long, so the loop costs little a byte.
    cut = [
        text.encode()[: room + _CHARACTER].decode(errors="ignore")
        for text in values.take(pa.array(long)).to_pylist()
    ]
    mask = np.zeros(len(values), np.bool_)
    mask[long] = True
    return pc.replace_with_mask(values, pa.array(mask), pa.array(cut, values.type))


def too_long(texts: pa.Array, room: int) -> Bools:
    """Which texts do not fit. All False for values of any other type. Shape (n,)."""
    return text_bytes(texts) > room


def sums_before(group_ids: Int64s, sizes: Int64s) -> Int64s:
    """The sum of the sizes before each entry within its group. `group_ids` ascends. Shape (n,)."""
    before = np.cumsum(sizes) - sizes
    if not len(group_ids):
        return before
    starts = np.flatnonzero(np.diff(group_ids, prepend=group_ids[0] - 1))
    return before - np.repeat(before[starts], np.diff(starts, append=len(group_ids)))


def group_sums(group_ids: Int64s, sizes: Int64s, count: int) -> Int64s:
    """The sum of the sizes of each of `count` groups. Shape (count,)."""
    # The sums are whole numbers below 2^53, which doubles hold exactly.
    return np.bincount(group_ids, sizes, minlength=count).astype(np.int64)
