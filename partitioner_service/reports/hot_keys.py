"""The hottest keys of a period and the workers they went to, for people only.

The figures come from a sample: every n-th tuple of a block, at most `_SAMPLE` tuples, which costs some 0.1 ms
a block. So the share of a key is an estimate, and a worker that got few tuples of a key may be missing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.numeric.arrays import Int32s, UInt64s
from evenflow.reporting.words import LONGEST_SHOWN, shown_bytes
from evenflow.telemetry import HotKey

SHOWN = 10
"""Number of keys that are told."""
_SAMPLE = 1_024
"""Tuples of a block that are looked at."""
_OF_A_BLOCK = 16
"""Keys of a block that are counted."""
_REMEMBERED = 512
"""Keys of a period that are remembered."""
_MOST_WORKERS = 64
"""Workers that are told of a key."""
_STRIDE = 1 << 16
"""Distance between the cells of two keys: more than there are workers."""
_PREFIX = 4 * LONGEST_SHOWN
"""Bytes of a key that are kept: a character has at most four."""


@dataclass
class _KeyCounts:
    """What is known of a key."""

    key: bytes | None
    """How the key begins."""
    length: int
    """Bytes of the whole key."""
    workers: Counter[int] = field(default_factory=Counter)
    """Estimated tuples by worker."""

    @property
    def tuples(self) -> int:
        return self.workers.total()


class HotKeys:
    """The hottest keys of one period."""

    def __init__(self) -> None:
        self._keys: dict[int, _KeyCounts] = {}
        self._tuples = 0

    def note(self, keys: pa.BinaryArray, hashes: UInt64s, workers: Int32s) -> None:
        """Count the tuples of a block, in any order. keys, hashes of the keys, workers: one per tuple."""
        self._tuples += len(hashes)
        step = -(-len(hashes) // _SAMPLE)  # the quotient, rounded up
        if not step:
            return
        # The sample begins at another tuple each time, because a block may have a rhythm of its own.
        looked_at = np.arange(self._tuples % step, len(hashes), step)
        kinds, first, inverse, counts = np.unique(
            hashes[looked_at], return_index=True, return_inverse=True, return_counts=True
        )
        top = np.argsort(counts, kind="stable")[-_OF_A_BLOCK:]
        # The place of each key of the sample among the hottest, -1 for a key that is not one of them.
        rank = np.full(len(kinds), -1)
        rank[top] = np.arange(len(top))
        ranks = rank[inverse]
        # Key and worker in one number, so that one `unique` counts the pairs.
        cells, tuples = np.unique(
            ranks[ranks >= 0] * _STRIDE + workers[looked_at[ranks >= 0]], return_counts=True
        )
        entries = [
            self._counts_of(int(kinds[kind]), keys, int(looked_at[at]))
            for kind, at in zip(top, first[top], strict=True)
        ]
        for cell, many in zip(cells.tolist(), (step * tuples).tolist(), strict=True):
            entries[cell // _STRIDE].workers[cell % _STRIDE] += many
        if len(self._keys) > _REMEMBERED:
            self._forget_the_coldest()

    def top(self) -> list[HotKey]:
        """The hottest `SHOWN` keys, the hottest first."""
        hottest_first = sorted(self._keys.values(), key=lambda counts: -counts.tuples)
        return [self._as_hot_key(counts) for counts in hottest_first[:SHOWN]]

    def hot_key(self, hashed: int) -> HotKey | None:
        """The key with this hash, None if it is not among the keys that are remembered."""
        counts = self._keys.get(hashed)
        return None if counts is None else self._as_hot_key(counts)

    def _counts_of(self, hashed: int, keys: pa.BinaryArray, position: int) -> _KeyCounts:
        """What is known of the key with this hash. The key stands at this position of `keys`."""
        if hashed not in self._keys:
            key = keys.slice(position, 1)
            self._keys[hashed] = _KeyCounts(
                pc.binary_slice(key, 0, _PREFIX)[0].as_py(), pc.binary_length(key)[0].as_py() or 0
            )
        return self._keys[hashed]

    def _forget_the_coldest(self) -> None:
        coldest_last = sorted(self._keys.items(), key=lambda entry: -entry[1].tuples)
        self._keys = dict(coldest_last[: _REMEMBERED // 2])

    def _as_hot_key(self, counts: _KeyCounts) -> HotKey:
        split = counts.workers.most_common(_MOST_WORKERS)
        return HotKey(
            key=shown_bytes(counts.key),
            length=counts.length,
            share=min(1.0, counts.tuples / self._tuples),
            holders=len(counts.workers),
            workers=[worker for worker, _ in split],
            parts=[round(tuples / counts.tuples, 4) for _, tuples in split],
        )
