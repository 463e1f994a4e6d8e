"""What is wrong with the records of a block, as codes.
The block owns its faults, and `reasons` puts them into words.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenflow.numeric.arrays import Bools, Int64s, UInt8s

NO_VALUE = 1
"""The code of a record without a value. All other codes stand in `reasons`."""


class Faults(NamedTuple):
    """What is wrong with each of n records. The first fault of a record counts."""

    codes: UInt8s
    """Why a record is bad (`reasons`). 0 for a record without a fault. Shape (n,)."""
    columns: npt.NDArray[np.int16]
    """The column of the faulty cell, or -1. Shape (n,)."""
    at: Int64s
    """A place in the record, or another number that the reason tells. Shape (n,)."""

    @classmethod
    def none(cls, rows: int) -> Faults:
        """No faults yet, for so many records."""
        return cls(np.zeros(rows, np.uint8), np.full(rows, -1, np.int16), np.zeros(rows, np.int64))

    def copied(self) -> Faults:
        """A copy. What is noted in one of the two is not in the other."""
        return Faults(self.codes.copy(), self.columns.copy(), self.at.copy())

    def note(self, wrong: Bools, code: int, *, column: int = -1, at: Int64s | None = None) -> None:
        """Note a fault of these records. A record that already has a fault keeps it.

        wrong: shape (n,). at: numbers that the reason tells, shape (n,).
        """
        self.note_rows(np.flatnonzero(wrong), code, column=column, at=at)

    def note_rows(self, rows: Int64s, code: int, *, column: int = -1, at: Int64s | None = None) -> None:
        """As `note`, of the records with these numbers. A block may have many groups of few records, so only
        these are looked at.
        """
        rows = rows[self.codes[rows] == 0]
        self.codes[rows] = code
        self.columns[rows] = column
        if at is not None:
            self.at[rows] = at[rows]
