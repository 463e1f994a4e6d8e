"""Which keys of a routed partition's frames may have tuples at other workers, too: Prompt's reference tables.

A table is that of one micro-batch of one partitioner session (`wire.FrameHeader.split`). It says nothing of
other batches and of other instances, which may have the same key at another worker. Where the clusters of a
key go by such a table, they may meet as late as in the key's bucket. So a table decides about balance and
cost, never about results.
"""

from __future__ import annotations

import numpy as np

from evenflow.numeric.arrays import Bools, UInt64s
from evenflow.wire.frame import Frame


class SplitKeyTables:
    """The tables of a range of frames of one routed partition.

    A key counts as split if any table has it, or if any frame with tuples has no table.
    """

    def __init__(self) -> None:
        self._tables: dict[tuple[int, int | None], UInt64s] = {}
        self._known = True

    def add(self, frame: Frame) -> None:
        """Take in the next frame."""
        header = frame.header
        if not frame.batch.num_rows:
            return
        if header.split is None:
            self._known = False
        else:
            self._tables[header.session, header.batch] = header.split

    def have(self, hashes: UInt64s) -> Bools:
        """Whether the keys with these hashes (`keys.hash_keys`) count as split, shape (n,)."""
        if not self._known or not self._tables:
            return np.full(len(hashes), not self._known)
        return np.isin(hashes, np.concatenate(list(self._tables.values())))
