"""Which keys are popular now, by coins: only one tuple in 2^r is looked at, and popularity wears off.

Each key that was looked at has a bitmap of l bits. A look at a tuple sets one bit of its key's bitmap: bit j
with probability 2^-(j+1), and the last bit with the probability that remains. A key becomes *hot* with its
second bit, and stays hot until it has none. After each look the popularity of all keys declines: each bitmap
moves down by one bit, independently with probability p. A key whose bitmap is empty is forgotten.

Laws: a key that no longer comes is forgotten after at most l declines of its own, which take l/p looks in the
mean. A key with a share well below p of the stream declines more often than it is looked at, so it is seldom
hot. At most 2/p keys are known in the mean, whatever the stream.

Structure: sets of eight places. There are at least 16/p places, so a set is hardly ever full. A key that
finds its set full is not entered. The distances between the places that decline are drawn from a geometric
law. So a decline visits a share p of the places, not all.
Cost: a lookup is one visit of a set. A look costs 16 to 32 draws. State: 13 bytes per place, 2,048 places at
p = 0.01.
Rule: Chen, Zhang and Jin, PStream (IEEE TC 2021, ICNP 2017).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenflow.generation.draws import draw_unit
from evenflow.numeric.arrays import UInt32s, UInt64s, Whole
from evenflow.numeric.kernels import inlined, kernel
from evenflow.sketches.eight_wide import WIDTH, equal, lowest_bit, set_of

_FIRST = np.uint32(1)


class CoinSynopsis(NamedTuple):
    """The synopsis: what kernels take as one argument. A place is a number set * 8 + way."""

    key: UInt64s
    """(places,): the key that is, or was last, in each place."""
    bits: UInt32s
    """The bitmap of each place. 0: the place is free, whatever its key."""
    hot: npt.NDArray[np.uint8]
    """1: the key has had two bits, and still has one at least."""


def coin_synopsis(p: float) -> CoinSynopsis:
    """A synopsis that knows no key. `p`: probability with which the popularity of a key declines."""
    places = max(64, 1 << math.ceil(math.log2(16 / p)))
    return CoinSynopsis(np.zeros(places, np.uint64), np.zeros(places, np.uint32), np.zeros(places, np.uint8))


@inlined
def place_of(synopsis: CoinSynopsis, spot: np.uint64, target: np.uint64) -> np.int64:
    """The key's place, or -1. `spot` is a hash of the key."""
    first = set_of(synopsis.key, spot)
    ways = equal(synopsis.key, first, target)
    # One bit more, because the lowest bit of 0 is undefined.
    at = np.int64(first) + lowest_bit(ways | np.int64(1 << WIDTH))
    return at if ways != 0 and synopsis.bits[at] != 0 else np.int64(-1)


@kernel
def look(synopsis: CoinSynopsis, spot: np.uint64, target: np.uint64, bit: Whole) -> None:
    """Set this bit of the key's bitmap. A new key is entered if its set has room."""
    key, bits, hot = synopsis.key, synopsis.bits, synopsis.hot
    first = np.int64(set_of(key, spot))
    at = np.int64(-1)
    for way in range(WIDTH):
        if key[first + way] == target:
            at = first + way
            break
        if at < 0 and bits[first + way] == 0:
            at = first + way
    if at < 0:
        return
    # A free place may still bear the key's name, or another's: its old bits and hotness do not count.
    if key[at] != target or bits[at] == 0:
        key[at], bits[at], hot[at] = target, 0, 0
    before = bits[at]
    bits[at] |= _FIRST << np.uint32(bit)
    if before != 0 and bits[at] != before:
        hot[at] = 1


@kernel
def decline(synopsis: CoinSynopsis, rng: UInt64s, log_stay: float) -> None:
    """Each bitmap moves down by one bit with probability p. `log_stay` is log(1 - p)."""
    bits, hot = synopsis.bits, synopsis.hot
    at = _gap(rng, log_stay)
    while at < bits.shape[0]:
        bits[at] >>= _FIRST
        hot[at] &= np.uint8(bits[at] != 0)
        at += 1 + _gap(rng, log_stay)


@inlined
def _gap(rng: UInt64s, log_stay: float) -> np.int64:
    """How many places stay as they are before the next place that declines."""
    # The inverse of the geometric law. A draw is in [0, 1), so the logarithm is finite. 1e9 fits int64 and
    # passes every table, also when p is tiny.
    return np.int64(min(math.log(1.0 - draw_unit(rng)) / log_stay, 1e9))


def log_stay(p: float) -> float:
    """log(1 - p). Minus infinity for p = 1: every gap is then 0, so every bitmap declines."""
    return math.log1p(-p) if p < 1 else -math.inf
