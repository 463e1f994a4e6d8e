"""HyperLogLog: the number of distinct keys of a stream from m = 2^precision registers of one byte.

Laws: the relative standard error is about 1.04/sqrt(m) (1.6 % at precision 12). Order and repetition do not
matter. The merge of two sketches is the sketch of both streams together. The estimate never decreases. A key
that was added `would_change` nothing. A key that was not added may change nothing as well: after D keys a new
key changes something with probability 1 - sum(1 - 2^-M_j)/m, which is about 3 % at D = 25 m.

A register M_j holds the largest number of leading zero bits, plus one, among the keys that fall to it. The
sum of 2^-M_j is kept as a whole number, so it is exact and depends on no order.

Small cardinalities are estimated by linear counting, m ln(m/V), where V is the number of empty registers. The
original rule changes to the raw estimate when that exceeds 2.5 m. At this point the raw estimate is 1.6
standard errors too high (measured, precision 12), and the estimate may fall. Here the rule changes when
linear counting itself exceeds 3 m. There the raw estimate is 0.7 standard errors too high, and the worst root
mean square error is 1.26 instead of 1.8. From then on the raw estimate counts for at least 3 m, so the
estimate is a monotone function of the registers. Hashes have 64 bits, so large cardinalities need no
correction. The HIP estimator would be better, but depends on the order and cannot be merged.

Cost: O(1) per key. State: 2^precision bytes. (The papers pack 5 bits per register, which only saves memory.)
Papers: Flajolet et al., AofA 2007. As used in 004, section 3.2.2 ("optimistic contains").
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np
from numba import types
from numba.extending import intrinsic

from evenflow.errors import ConfigError
from evenflow.numeric.arrays import Float64s, Int64s, UInt8s, UInt64s, Whole
from evenflow.numeric.kernels import inlined, kernel
from evenflow.numeric.words import mix64

MIN_PRECISION, MAX_PRECISION = 4, 18
_SALT = np.uint64(0xA0761D6478BD642F)
_INTRINSIC: Any = intrinsic
_UNIT = 1 << 62
"""The scaled sum of 2^-M of an empty sketch (see `Registers.sums`)."""
_LEAVE = 3.0
"""Linear counting is used up to this many keys per register."""
_UNKNOWN = -1


class Registers(NamedTuple):
    """Several sketches side by side, one per row: what kernels take as one argument."""

    values: UInt8s
    """(sketches, m): the registers."""
    sums: Int64s
    """(sketches,): 2^62/m x sum of 2^-M of each sketch. -1: it has to be summed up again."""
    empty: Int64s
    """(sketches,): how many registers of each sketch are 0. Meaningless if the sum is -1."""
    estimates: Float64s
    """(sketches,): the estimate of each sketch. -1: it has to be computed."""


def registers(sketches: int, precision: int) -> Registers:
    """Empty sketches."""
    unknown = np.full(sketches, _UNKNOWN, np.int64)
    values = np.zeros((sketches, 1 << precision), np.uint8)
    return Registers(values, unknown, unknown.copy(), unknown.astype(np.float64))


def clear(rows: Registers) -> None:
    """Forget every key."""
    rows.values[:] = 0
    for known in (rows.sums, rows.empty, rows.estimates):
        known[:] = _UNKNOWN


@inlined
def sketch_hash(key: np.uint64) -> np.uint64:
    """The hash that the functions below take. It is independent of every candidate of the key."""
    return mix64(key ^ _SALT)


@_INTRINSIC
def _leading_zeros(_: Any, word: Any) -> Any:
    """The number of leading zero bits, by one instruction. A loop over bits would be mispredicted for
    every second key.
    """

    # The constant 0 tells LLVM that the word may be 0, and the result then is 64.
    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], context.get_constant(types.boolean, 0))

    return types.uint64(types.uint64), generate


@inlined
def rank_of(hashed: np.uint64, slots: Whole) -> np.int64:
    """The value that the key raises its register to: its number of leading zero bits, plus one."""
    # These bits are the number of the register. Set to 1, they never count as leading zeros.
    low = np.uint64(slots - 1)
    return np.int64(_leading_zeros(hashed | low)) + 1


@inlined
def register_of(hashed: np.uint64, slots: Whole) -> np.uint64:
    """The number of the key's register. Unsigned, so that numba does not test for a negative index."""
    return hashed & np.uint64(slots - 1)


@kernel
def would_change(rows: Registers, sketch: Whole, hashed: np.uint64) -> bool:
    """Whether adding the key changes the sketch. False for every key added before."""
    values = rows.values
    slots = values.shape[1]
    return bool(rank_of(hashed, slots) > np.int64(values[sketch, register_of(hashed, slots)]))


@kernel
def add(rows: Registers, sketch: Whole, hashed: np.uint64) -> bool:
    """Add the key. Returns whether the sketch has changed."""
    values, sums = rows.values, rows.sums
    slots = values.shape[1]
    at = register_of(hashed, slots)
    old = np.int64(values[sketch, at])
    new = rank_of(hashed, slots)
    if new <= old:
        return False
    values[sketch, at] = new
    rows.estimates[sketch] = _UNKNOWN
    # An unknown sum stays unknown: it is summed up when an estimate is asked for.
    if sums[sketch] >= 0:
        unit = _UNIT // slots
        sums[sketch] += (unit >> new) - (unit >> old)
        rows.empty[sketch] -= old == 0
    return True


@kernel
def _sum_up(rows: Registers, sketch: Whole) -> None:
    values = rows.values
    slots = values.shape[1]
    unit = np.int64(_UNIT // slots)
    total, free = np.int64(0), np.int64(0)
    for at in range(slots):
        value = np.int64(values[sketch, at])
        total += unit >> value
        free += value == 0
    rows.sums[sketch] = total
    rows.empty[sketch] = free


@kernel
def _bias(slots: Whole) -> float:
    """alpha_m of the paper."""
    if slots == 16:
        return 0.673
    if slots == 32:
        return 0.697
    if slots == 64:
        return 0.709
    return 0.7213 / (1.0 + 1.079 / slots)


@kernel
def estimate(rows: Registers, sketch: Whole) -> float:
    """About how many distinct keys one sketch has. Computed again only if the sketch has changed since."""
    values, sums, estimates = rows.values, rows.sums, rows.estimates
    if estimates[sketch] < 0:
        if sums[sketch] < 0:
            _sum_up(rows, sketch)
        m = np.float64(values.shape[1])
        free = np.float64(rows.empty[sketch])
        # Linear counting, m ln(m/V), is at most _LEAVE * m.
        if free >= m * math.exp(-_LEAVE):
            estimates[sketch] = m * math.log(m / free)
        else:
            bias = _bias(values.shape[1])
            raw = bias * m * (np.float64(_UNIT) / np.float64(sums[sketch]))
            estimates[sketch] = max(raw, _LEAVE * m)
    return estimates[sketch]


@kernel
def _add_all(rows: Registers, keys: UInt64s) -> None:
    for at in range(keys.shape[0]):
        add(rows, 0, sketch_hash(keys[at]))


@kernel
def _would_change(rows: Registers, key: np.uint64) -> bool:
    return would_change(rows, 0, sketch_hash(key))


class HyperLogLog:
    """One sketch, for use from Python. Partitioners use `registers` and the kernels directly."""

    def __init__(self, precision: int = 12) -> None:
        if not MIN_PRECISION <= precision <= MAX_PRECISION:
            raise ConfigError(
                f"precision must be between {MIN_PRECISION} and {MAX_PRECISION}, not {precision}",
                hint="2^precision registers of one byte: 12 gives a standard error of 1.6 %",
            )
        self.precision = precision
        self._rows = registers(1, precision)

    @property
    def values(self) -> UInt8s:
        """The registers, shape (m,). A snapshot of a sketch needs nothing else."""
        return self._rows.values[0].copy()

    @classmethod
    def from_values(cls, values: UInt8s) -> Self:
        """The sketch that has these registers."""
        sketch = cls(len(values).bit_length() - 1)
        sketch._rows.values[0] = values
        return sketch

    def add(self, keys: UInt64s) -> None:
        """Add keys, which are given as hashes (`keys.hash_keys`)."""
        _add_all(self._rows, np.ascontiguousarray(keys, np.uint64))

    def estimate(self) -> float:
        """About how many distinct keys were added."""
        return float(estimate(self._rows, 0))

    def would_change(self, key: int) -> bool:
        """Whether adding this key changes anything. False means that it was probably added before."""
        return bool(_would_change(self._rows, np.uint64(key)))

    def merge(self, other: HyperLogLog) -> HyperLogLog:
        """The sketch of both streams together. ConfigError for another precision."""
        if other.precision != self.precision:
            raise ConfigError(
                f"sketches of precision {self.precision} and {other.precision} cannot be merged",
                hint="give both the same precision",
            )
        return HyperLogLog.from_values(np.maximum(self.values, other.values))
