"""What tuples cost, as `evenflow` reckons with it: the mean, the grain,
and the weight of a tuple in the summary.

Loads are sums of costs. What the rule says of "tuples" where it speaks of chance is meant of a tuple that a
unit of cost belongs to (the grain): so much do loads differ because a tuple is whole. How frequent a key is,
is said by its share of the costs. The summary counts a tuple as its cost over that of such a tuple, so it
remembers as many tuples that matter as ever.
"""

from __future__ import annotations

import numpy as np

from evenflow.numeric.arrays import Float64s, Rows, Whole, record
from evenflow.numeric.kernels import inlined, kernel
from evenflow.partitioners.evenflow.frequent import FINE, Frequent, change_unit, count_finely
from evenflow.partitioners.evenflow.state import SCALE, Water

_STEADY = 8
"""While the unit of counts is off by less than one part in so many, it stays."""
_COARSEST = 16
"""The unit of counts is at most so many times the mean cost.
So cheap tuples are no fractions that counts cannot have.
"""


def new_scale(fewest: int) -> Rows:
    """The scale before any tuple has cost other than 1. fewest: tuples from which a key's share is
    believed.
    """
    return record(SCALE, mean=1, grain=1, unit=1, fewest=fewest)


@inlined
def weight_of(cost: Whole, unit: Whole) -> np.int64:
    """The weight of a tuple in the summary: its cost in parts of the unit, at least 1."""
    return np.int64(max(np.int64(1), cost * FINE // unit))


@kernel
def begin_to_weigh(water: Water) -> None:
    """A tuple costs other than 1. All tuples before it cost 1."""
    scale, before = water.scale[()], float(water.progress[()]["tuples"])
    scale["weighed"] = 1
    scale["fewest"] *= FINE
    count_finely(water.summary)
    for moment in range(water.moments.shape[0]):
        water.moments[moment] = before


@inlined
def note_cost(moments: Float64s, cost: Whole) -> None:
    """Count one tuple of this cost in the moments."""
    moments[0] += 1.0
    moments[1] += cost
    moments[2] += float(cost) * cost


@kernel
def work_out(summary: Frequent, scale: Rows, moments: Float64s, fewest: Whole) -> None:
    """The mean and the grain of the tuples that came. fewest: tuples from which a key's share is believed."""
    scale_row, tuples, cost = scale[()], moments[0], moments[1]
    if tuples < 1.0:
        return
    scale_row["mean"] = max(np.int64(1), np.int64(cost / tuples + 0.5))
    scale_row["grain"] = max(scale_row["mean"], np.int64(moments[2] / cost + 0.5))
    unit = min(scale_row["grain"], _COARSEST * scale_row["mean"])
    if _STEADY * abs(unit - scale_row["unit"]) > scale_row["unit"]:
        change_unit(summary, scale_row["unit"], unit)
        scale_row["unit"] = unit
    scale_row["fewest"] = fewest * FINE * scale_row["grain"] // scale_row["unit"]
    scale_row["next"] = 2 * np.int64(tuples) + 1


@kernel
def fade_costs(scale: Rows, moments: Float64s, left: float) -> None:
    """A share of the tuples leaves the window. left: the share that stays."""
    for moment in range(moments.shape[0]):
        moments[moment] *= left
    scale[()]["next"] = 2 * np.int64(moments[0]) + 1
