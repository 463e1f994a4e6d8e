"""Pseudo-random numbers by splitmix64, with a generator of its own for each source of a stream.

A generator is one 64-bit word, so a snapshot stores it as it is. A restored partitioner goes on drawing where
the snapshot was taken.
"""

from __future__ import annotations

import numpy as np

from evenflow.keys import GOLDEN, salts
from evenflow.numeric.arrays import UInt64s
from evenflow.numeric.kernels import kernel
from evenflow.numeric.words import mix64

_FIRST_STREAM = 1 << 32
"""The salt that seeds the generator of source 0. The salts of candidates are below (see `keys.salts`)."""
_SHIFT = np.uint64(11)  # leaves 53 bits, which a double holds exactly
_UNIT = 2.0**-53


def generator(seed: int, source: int) -> UInt64s:
    """The generator of this source in its first state, shape (1,)."""
    return salts(seed, 1, first=_FIRST_STREAM + source)


@kernel
def draw(rng: UInt64s) -> np.uint64:
    """The next 64-bit number."""
    rng[0] += GOLDEN
    return mix64(rng[0])


@kernel
def draw_unit(rng: UInt64s) -> float:
    """The next number as a multiple of 2^-53 in [0, 1)."""
    return np.float64(draw(rng) >> _SHIFT) * _UNIT
