"""HyperLogLog of each group (evenflow/sketches/hyperloglog.py),
kept as a list of the registers that are not empty.

An entry is register * 64 + rank, a uint32. So a key with few values takes few bytes, and no key takes more
than 16 KiB.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from evenflow.aggregates.aggregate import Call, PartialColumn
from evenflow.aggregates.partials.grouping import Grouping
from evenflow.aggregates.partials.lists import as_lists, entry_groups, lengths
from evenflow.aggregates.partials.multisets import present
from evenflow.aggregates.partials.orders import order_keys
from evenflow.keys import hash_keys
from evenflow.numeric.arrays import Float64s, Int32s, Int64s, UInt64s, one_chunk
from evenflow.numeric.kernels import kernel
from evenflow.sketches.hyperloglog import (
    Registers,
    estimate,
    rank_of,
    register_of,
    registers,
    sketch_hash,
)

PRECISION = 12
"""4,096 registers: a standard error of 1.6 %."""
_RANK_BITS = 6
"""Low bits of an entry that hold the rank. A rank is at most 64 - `PRECISION` + 1."""
_TYPE = pa.large_list(pa.uint32())


@kernel
def _encode(hashes: UInt64s, slots: int, out: Int64s) -> None:
    for row in range(hashes.shape[0]):
        hashed = sketch_hash(hashes[row])
        # The register, and below it `_RANK_BITS` bits for the rank.
        out[row] = np.int64(register_of(hashed, slots)) * 64 + rank_of(hashed, slots)


@kernel
def _estimate(codes: Int32s, ends: Int64s, rows: Registers, out: Float64s) -> None:
    # The estimator needs two numbers of a sketch: the sum of 2^-rank, in units of 2^-62 * slots so that it is
    # whole and exact, and the number of empty registers. Both follow from the entries, so no full sketch is
    # built.
    slots = rows.values.shape[1]
    unit = np.int64((1 << 62) // slots)
    entry = 0
    for group in range(ends.shape[0]):
        begin = entry
        total = np.int64(0)
        while entry < ends[group]:
            # The low bits of an entry are its rank r, and `unit >> r` is 2^-r in these units.
            total += unit >> np.int64(codes[entry] & 63)
            entry += 1
        free = slots - (entry - begin)
        rows.sums[0] = total + free * unit
        rows.empty[0] = free
        rows.estimates[0] = -1.0  # -1: the estimate has to be computed
        out[group] = estimate(rows, 0)


def registers_column(call: Call) -> PartialColumn:
    """Partial column: the sketch of the values that are not null."""
    return PartialColumn(
        name=f"hll_{call.column}", type=_TYPE, source=call.column, combine=_combine, merge=_merge
    )


def estimated(partials: pa.Table, column: str) -> pa.Array:
    """About how many different values each row of a partial table has, as int64."""
    lists = one_chunk(partials[f"hll_{column}"])
    out = np.empty(len(lists), np.float64)
    codes = lists.flatten().to_numpy().astype(np.int64)
    _estimate(codes, np.cumsum(lengths(lists)), registers(1, PRECISION), out)
    return pa.array(np.rint(out).astype(np.int64))


def _combine(column: pa.Array | None, groups: Grouping) -> pa.Array:
    group_ids, values, _ = present(column, groups)
    codes = np.empty(len(values), np.int64)
    _encode(_hashes(values), 1 << PRECISION, codes)
    return _highest_ranks(group_ids, codes, groups.count)


def _merge(column: pa.Array | None, groups: Grouping) -> pa.Array:
    assert column is not None
    return _highest_ranks(
        entry_groups(column, groups), column.flatten().to_numpy().astype(np.int64), groups.count
    )


def _highest_ranks(group_ids: Int64s, codes: Int64s, count: int) -> pa.Array:
    """The entries of each group, one for each register: that with the highest rank."""
    # Group, register and rank lie in one int64 in this order. Sorted, the highest rank of a register comes
    # last.
    both = np.sort(group_ids << 32 | codes)
    registers_of = both >> _RANK_BITS
    last = registers_of != np.append(registers_of[1:], -1)
    both = both[last]
    return as_lists(both >> 32, pa.array((both & 0xFFFFFFFF).astype(np.uint32)), count)


def _hashes(values: pa.Array) -> UInt64s:
    if pa.types.is_string(values.type):
        return hash_keys(values.cast(pa.binary()))
    return order_keys(values).view(np.uint64)
