"""Costs of tuples: how much work each of them is for its worker.

A cost is a whole number from 1 to `MAX_COST`, in a unit that the user chooses: rows, bytes, microseconds. So
sums of costs are exact, and the same on every machine. Without costs each tuple costs 1.

A unit in which most tuples cost less than a hundred is fine enough for balance. It also keeps d-choices,
w-choices and rr-head fast, whose summary of frequent keys passes all counts between the old and the new count
of a key.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenflow.numeric.arrays import Float64s, Int64s

MAX_COST = 1_000_000
_ONES = 1 << 16


def _read_only(values: Int64s) -> Int64s:
    values.flags.writeable = False
    return values


_ones = _read_only(np.ones(_ONES, np.int64))


def ones(tuples: int) -> Int64s:
    """Costs of tuples that all cost 1, shape (tuples,). Read-only: blocks share the memory."""
    return _ones[:tuples] if tuples <= _ONES else _read_only(np.ones(tuples, np.int64))


def checked_costs(costs: npt.NDArray[Any], tuples: int) -> Int64s:
    """The costs as a contiguous, read-only array.
    TypeError or ValueError if they are no costs of so many tuples.
    """
    if not isinstance(costs, np.ndarray) or costs.dtype != np.int64:
        kind = costs.dtype if isinstance(costs, np.ndarray) else type(costs).__name__
        raise TypeError(f"costs must be a numpy array of int64, not {kind}")
    if costs.shape != (tuples,):
        raise ValueError(f"{tuples} tuples but costs of shape {costs.shape}: one cost per tuple is needed")
    if tuples and not 1 <= int(costs.min()) <= int(costs.max()) <= MAX_COST:
        bad = int(costs[(costs < 1) | (costs > MAX_COST)][0])
        raise ValueError(f"a cost must be from 1 to {MAX_COST:,}, not {bad:,}")
    return _read_only(np.require(costs, requirements=["C", "A"]).view())


class TupleCosts(NamedTuple):
    """What tuples cost."""

    costs: Int64s
    """(tuples,): from 1 to `MAX_COST`."""
    below: int
    """How many tuples had less than 1, or no number, and count as 1."""
    above: int
    """How many tuples had more than `MAX_COST`, and count as that."""


def weighed(numbers: Float64s) -> TupleCosts:
    """These numbers as costs: each rounded to a whole number, and brought into the range. NaN counts as 1."""
    rounded = np.rint(numbers)
    above = rounded > MAX_COST
    below = ~(rounded >= 1)  # NaN is neither
    costs = np.where(below, 1, np.where(above, MAX_COST, rounded)).astype(np.int64)
    return TupleCosts(costs, int(np.count_nonzero(below)), int(np.count_nonzero(above)))
