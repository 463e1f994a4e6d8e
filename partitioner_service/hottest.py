"""The hottest keys of a period and the workers they went to, from a sample of each block: for people only.

Of each block every n-th tuple is looked at, `_SAMPLE` of them at most, which costs some 0.1 ms a block. So a share is an
estimate, and of a key's workers one that got few of its tuples may be missing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.arrays import Int32s, UInt64s
from evenflow.talking.words import LONGEST_SHOWN, shown_bytes
from evenflow.telemetry import HotKey

SHOWN = 10
"""Keys that are told."""
_SAMPLE = 1_024
_OF_A_BLOCK = 16
_REMEMBERED = 512
_MOST_WORKERS = 64
_STRIDE = 1 << 16
"""More than there are workers."""
_PREFIX = 4 * LONGEST_SHOWN


@dataclass
class _Seen:
    """workers: tuples by worker."""

    key: bytes | None
    length: int
    workers: Counter[int] = field(default_factory=Counter)

    @property
    def tuples(self) -> int:
        return self.workers.total()


class Hottest:
    """Of one period."""

    def __init__(self) -> None:
        self._seen: dict[int, _Seen] = {}
        self._tuples = 0

    def note(self, keys: pa.BinaryArray, hashes: UInt64s, workers: Int32s) -> None:
        """The tuples of a block in any order: key, hash of the key, worker."""
        self._tuples += len(hashes)
        step = -(-len(hashes) // _SAMPLE)
        if not step:
            return
        # Another beginning each time: a block may have a rhythm of its own.
        looked_at = np.arange(self._tuples % step, len(hashes), step)
        kinds, first, inverse, counts = np.unique(
            hashes[looked_at], return_index=True, return_inverse=True, return_counts=True
        )
        top = np.argsort(counts, kind="stable")[-_OF_A_BLOCK:]
        rank = np.full(len(kinds), -1)
        rank[top] = np.arange(len(top))
        ranks = rank[inverse]
        cells, tuples = np.unique(
            ranks[ranks >= 0] * _STRIDE + workers[looked_at[ranks >= 0]], return_counts=True
        )
        known = [
            self._known(int(kinds[kind]), keys, int(looked_at[at]))
            for kind, at in zip(top, first[top], strict=True)
        ]
        for cell, many in zip(cells.tolist(), (step * tuples).tolist(), strict=True):
            known[cell // _STRIDE].workers[cell % _STRIDE] += many
        if len(self._seen) > _REMEMBERED:
            self._forget_the_coldest()

    def top(self) -> list[HotKey]:
        """The hottest `SHOWN` keys, the hottest first."""
        hottest_first = sorted(self._seen.values(), key=lambda seen: -seen.tuples)
        return [self._told(seen) for seen in hottest_first[:SHOWN]]

    def _known(self, hashed: int, keys: pa.BinaryArray, position: int) -> _Seen:
        if hashed not in self._seen:
            one = keys.slice(position, 1)
            self._seen[hashed] = _Seen(
                pc.binary_slice(one, 0, _PREFIX)[0].as_py(), pc.binary_length(one)[0].as_py() or 0
            )
        return self._seen[hashed]

    def _forget_the_coldest(self) -> None:
        coldest_last = sorted(self._seen.items(), key=lambda entry: -entry[1].tuples)
        self._seen = dict(coldest_last[: _REMEMBERED // 2])

    def _told(self, seen: _Seen) -> HotKey:
        split = seen.workers.most_common(_MOST_WORKERS)
        return HotKey(
            key=shown_bytes(seen.key),
            length=seen.length,
            share=min(1.0, seen.tuples / self._tuples),
            holders=len(seen.workers),
            workers=[worker for worker, _ in split],
            parts=[round(tuples / seen.tuples, 4) for _, tuples in split],
        )
