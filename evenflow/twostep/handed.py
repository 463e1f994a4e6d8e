"""Partials of whole windows that homes have handed on, until the bucket emits these windows.

handed          int64: the pane and the number of tables of each window, by the window's last pane
handed/PANE/N   Arrow: table N of the window that ends with this pane
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from evenflow.twostep.stored import BucketState, needed, packed, table_bytes, table_of, unpacked

_NAME = "handed"


class Handed:
    """The tables by the last pane of their window. `save` writes what changed."""

    def __init__(self, state: BucketState) -> None:
        self._state = state
        saved = state.get(_NAME)
        rows = [] if saved is None else unpacked(saved).reshape(-1, 2).tolist()
        self._saved = {int(pane): int(tables) for pane, tables in rows}
        self._new: dict[int, list[pa.Table]] = {}
        self._gone: set[int] = set()

    def panes(self) -> set[int]:
        """Last panes of the windows that wait."""
        return ({*self._saved} - self._gone) | {*self._new}

    def add(self, pane: int, table: pa.Table) -> None:
        """Add partials (key_schema) of the window that ends with this pane."""
        self._new.setdefault(pane, []).append(table)

    def take(self, pane: int) -> list[pa.Table]:
        """The tables of this window, in the order in which they came. They are forgotten."""
        saved = 0 if pane in self._gone else self._saved.get(pane, 0)
        tables = [table_of(needed(self._state, f"{_NAME}/{pane}/{n}")) for n in range(saved)]
        if saved:
            self._gone.add(pane)
        return tables + self._new.pop(pane, [])

    def save(self) -> None:
        """Write the new tables, and delete those of windows that are out."""
        if not self._new and not self._gone:
            return
        for pane in sorted(self._gone):
            for number in range(self._saved.pop(pane)):
                self._state.delete(f"{_NAME}/{pane}/{number}")
        for pane, tables in sorted(self._new.items()):
            before = self._saved.get(pane, 0)
            for number, table in enumerate(tables, start=before):
                self._state.put(f"{_NAME}/{pane}/{number}", table_bytes(table))
            self._saved[pane] = before + len(tables)
        if self._saved:
            self._state.put(_NAME, packed(np.array(sorted(self._saved.items()), np.int64)))
        elif self._state.get(_NAME) is not None:
            self._state.delete(_NAME)
        self._new, self._gone = {}, set()
