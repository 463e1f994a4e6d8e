"""Reads two groups of columns in one pass, where only what is wrong with the first group is a fault
of the record.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from partitioner_service.reading.cells.cells import ABSENT, Block, Cells

_ASIDE = 255
"""A code that no reason has: of records that are not to be read again."""


class Reader(Protocol):
    """Finds the cells of columns."""

    written: int

    def read(self, block: Block) -> Cells:
        """Cells of the records without a fault. Notes what is wrong with a record in `block.faults`."""


class ReaderBeside:
    """Finds the cells of `first` columns, and behind them those of others.

    strict: reads the first columns alone. both: reads all. A record that `both` cannot read is read again by
    `strict`, and the other columns hold nothing there. So cells and faults of the first columns are those of
    `strict`.
    """

    def __init__(self, strict: Reader, both: Reader, *, first: int) -> None:
        self._strict, self._both, self._first = strict, both, first
        self.written = strict.written

    def read(self, block: Block) -> Cells:
        """As of `Reader`."""
        # One block for both readers, because a reader may put text behind its records.
        faults, block.faults = block.faults, block.faults.copied()
        cells = self._both.read(block)
        tried, block.faults = block.faults, faults
        again = (tried.codes != 0) & (faults.codes == 0)
        if not again.any():
            return cells
        aside = (faults.codes == 0) & ~again
        faults.codes[aside] = _ASIDE
        strict = self._strict.read(block)
        faults.codes[aside] = 0
        rows, first = np.flatnonzero(again), self._first
        cells.states[:first, rows] = strict.states[:, rows]
        cells.begins[:first, rows] = strict.begins[:, rows]
        cells.lengths[:first, rows] = strict.lengths[:, rows]
        cells.ints[:first, rows] = strict.ints[:, rows]
        if strict.floats.shape == strict.states.shape:  # otherwise none of the first columns needs it
            cells.floats[:first, rows] = strict.floats[:, rows]
        cells.states[first:, rows] = ABSENT
        return cells
