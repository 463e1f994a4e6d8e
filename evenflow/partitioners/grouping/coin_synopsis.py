"""Which keys are popular now, by coins: only one tuple in 2^r is looked at, and popularity wears off.

A key that is looked at has a bitmap of l bits. Each time, one bit of it is set: bit j with probability 2^-(j+1),
the last one with what remains. A key with two bits is *hot*, until it has none. Then the popularity of all keys
declines: each bitmap, independently with probability p, moves down by one bit. A key whose bitmap is empty is forgotten.

Laws: a key that no longer comes is forgotten after at most l declines of its own, which are l/p looks in the mean. A key
with a share well below p of the stream declines more often than it is looked at, so it is seldom hot. At most 2/p keys
are known in the mean, whatever the stream.

Structure: sets of eight places, at least 16/p places, so that a set is full next to never. A key that finds its set full
is not entered. Which places decline is drawn as gaps of a geometric law, so that p of the places are visited, not all.
Cost: a lookup is one visit of a set. A look costs 16 to 32 draws. State: 13 bytes a place, 2,048 places at p = 0.01.
Rule: Chen, Zhang and Jin, PStream (IEEE TC 2021, ICNP 2017).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenflow.arrays import UInt32s, UInt64s, Whole
from evenflow.draws import draw_unit
from evenflow.eights import WIDTH, equal, lowest_bit
from evenflow.kernels import inlined, kernel

_WIDTH = np.uint64(WIDTH)
_FIRST = np.uint32(1)


class CoinSynopsis(NamedTuple):
    """What kernels take as one argument. A place is a number set * 8 + way."""

    key: UInt64s
    bits: UInt32s
    """The bitmap. 0: the place is free, whatever its key."""
    hot: npt.NDArray[np.uint8]
    """1: the key has had two bits and has still one."""


def coin_synopsis(p: float) -> CoinSynopsis:
    """Nothing is known. `p`: with which popularity is to decline."""
    places = max(64, 1 << math.ceil(math.log2(16 / p)))
    return CoinSynopsis(np.zeros(places, np.uint64), np.zeros(places, np.uint32), np.zeros(places, np.uint8))


@inlined
def _set_of(key: UInt64s, spot: np.uint64) -> np.uint64:
    """The first place of the set."""
    return (spot & np.uint64(key.shape[0] // WIDTH - 1)) * _WIDTH


@inlined
def place_of(known: CoinSynopsis, spot: np.uint64, wanted: np.uint64) -> np.int64:
    """The key's place, or -1. `spot` is a hash of the key."""
    first = _set_of(known.key, spot)
    ways = equal(known.key, first, wanted)
    at = np.int64(first) + lowest_bit(ways | np.int64(1 << WIDTH))
    return at if ways != 0 and known.bits[at] != 0 else np.int64(-1)


@kernel
def look(known: CoinSynopsis, spot: np.uint64, wanted: np.uint64, bit: Whole) -> None:
    """Set this bit of the key's bitmap. The key is entered where its set has room."""
    key, bits, hot = known.key, known.bits, known.hot
    first = np.int64(_set_of(key, spot))
    at = np.int64(-1)
    for way in range(WIDTH):
        if key[first + way] == wanted:
            at = first + way
            break
        if at < 0 and bits[first + way] == 0:
            at = first + way
    if at < 0:
        return
    if key[at] != wanted or bits[at] == 0:
        key[at], bits[at], hot[at] = wanted, 0, 0
    before = bits[at]
    bits[at] |= _FIRST << np.uint32(bit)
    if before != 0 and bits[at] != before:
        hot[at] = 1


@kernel
def decline(known: CoinSynopsis, rng: UInt64s, log_stay: float) -> None:
    """Each bitmap moves down by one bit with probability p. `log_stay` is log(1 - p)."""
    bits, hot = known.bits, known.hot
    at = _gap(rng, log_stay)
    while at < bits.shape[0]:
        bits[at] >>= _FIRST
        hot[at] &= np.uint8(bits[at] != 0)
        at += 1 + _gap(rng, log_stay)


@inlined
def _gap(rng: UInt64s, log_stay: float) -> np.int64:
    """Places that stay as they are before the next one that declines."""
    return np.int64(min(math.log(1.0 - draw_unit(rng)) / log_stay, 1e9))


def log_stay(p: float) -> float:
    """log(1 - p). Minus infinity for p = 1, with which every bitmap declines."""
    return math.log1p(-p) if p < 1 else -math.inf
