"""Routes a stream through the sources of one partitioner, and finds the rows of its windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from evenflow.keys import salts
from evenflow.numeric.arrays import Int32s, UInt64s
from evenflow.partitioners import Partitioner
from evenflow.simulation import KeyedStream, Scenario, entrant
from evenflow.simulation.routing import route


def placed(sources: Sequence[Partitioner], stream: KeyedStream) -> Int32s:
    """The worker of every tuple, shape (m,). Tuple t goes through source t mod s. Each source has its own
    state.
    """
    out = np.empty(len(stream), np.int32)
    for number, source in enumerate(sources):
        mine = slice(number, None, len(sources))
        out[mine] = source.assign(
            np.ascontiguousarray(stream.keys[mine]), np.ascontiguousarray(stream.times[mine])
        )
    return out


def tumbled(stream: KeyedStream, text: str, *, workers: int, seed: int, window_ms: int) -> Int32s:
    """The worker of every tuple, shape (m,), if state is forgotten at the end of each window.

    A window is also a micro-batch.
    """
    scenario = Scenario(workers=workers, seed=seed, window_ms=window_ms, slide_ms=window_ms)
    return route(stream, entrant(text), scenario).workers


def windows(stream: KeyedStream, window_ms: int) -> Iterator[slice]:
    """Rows of each complete tumbling window that has tuples. A single window counts even if it is cut
    short.
    """
    # A late tuple belongs to the newest window so far, so that the rows of a window are one range.
    panes = np.maximum.accumulate(stream.times // window_ms)
    edges = [0, *(np.flatnonzero(np.diff(panes)) + 1).tolist(), len(stream)]
    slices = [slice(low, high) for low, high in pairwise(edges)]
    # The last window is complete if the next tuple of the stream would come after it.
    whole = stream.next_time is not None and stream.next_time // window_ms > int(panes[-1])
    yield from slices if whole or len(slices) == 1 else slices[:-1]


def circling(pool: KeyedStream, tuples: int, *, seed: int, seeds: int) -> Int32s:
    """Key numbers of so many tuples, shape (tuples,), if `pool` is read in a circle. Each seed begins
    elsewhere.
    """
    begin = (seed - 1) % seeds * len(pool) // seeds
    return np.take(pool.codes, np.arange(begin, begin + tuples), mode="wrap")


def renamed(pool: KeyedStream, seed: int) -> UInt64s:
    """The hash of each key number, shape (keys,). Each seed gives the keys other hashes."""
    hashes = np.zeros(pool.key_count, np.uint64)
    hashes[pool.codes] = pool.keys
    return hashes ^ salts(seed, 1)[0]
