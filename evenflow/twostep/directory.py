"""Which nodes a bucket has, in chunks of 256 panes: what a micro-batch does not touch is neither read nor written."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from evenflow.arrays import Int64s
from evenflow.twostep.stored import BucketState, packed, unpacked
from evenflow.windows import END_MARK

CHUNK = 256
"""Panes of a chunk. A chunk also has the nodes of higher levels that begin within it."""
_LEVELS = CHUNK.bit_length()
_SLOTS = 2 * CHUNK + 64
_CHUNKS = "chunks"
Node = tuple[int, int]
"""(level, number)."""


class Directory:
    """How many appends each node has had. 0 for a node that does not exist."""

    def __init__(self, state: BucketState) -> None:
        self._state = state
        saved = state.get(_CHUNKS)
        self._chunks: set[int] = set() if saved is None else set(unpacked(saved).tolist())
        self._known = frozenset(self._chunks)
        self._counts: dict[int, Int64s] = {}
        self._loaded: dict[int, Int64s] = {}

    def appends(self, node: Node) -> int:
        """Appends of this node so far."""
        chunk, slot = _place(node)
        return int(self._chunk(chunk)[slot])

    def loaded(self, node: Node) -> int:
        """Its appends before this micro-batch: what the state store holds of it."""
        chunk, slot = _place(node)
        self._chunk(chunk)
        return int(self._loaded[chunk][slot])

    def set(self, node: Node, appends: int) -> None:
        """From now on the node has had so many appends."""
        chunk, slot = _place(node)
        self._chunk(chunk)[slot] = appends

    def panes(self, begin: int, end: int) -> Iterator[int]:
        """Nodes of level 0 that exist from `begin` to before `end`, ascending."""
        for chunk in sorted({*self._chunks, *self._counts}):
            low = chunk * CHUNK
            if low + CHUNK > begin and low < end:
                for pane in (np.flatnonzero(self._chunk(chunk)[:CHUNK]) + low).tolist():
                    if begin <= pane < end:
                        yield pane

    def ends(self, begin: int) -> tuple[int, int] | None:
        """The first and the last node of level 0 from `begin` on. Looks into their two chunks only."""
        first = next(self.panes(begin, END_MARK), None)
        if first is None:
            return None
        for chunk in sorted({*self._chunks, *self._counts}, reverse=True):
            found = np.flatnonzero(self._chunk(chunk)[:CHUNK])
            if len(found):
                return first, int(found[-1]) + chunk * CHUNK
        return None

    def save(self) -> None:
        """Write the chunks that changed, and which chunks there are."""
        for chunk, counts in self._counts.items():
            if np.array_equal(counts, self._loaded[chunk]):
                continue
            if counts.any():
                self._chunks.add(chunk)
                self._state.put(_name(chunk), packed(counts))
            else:
                self._chunks.discard(chunk)
                self._state.delete(_name(chunk))
        if self._chunks != self._known:
            self._state.put(_CHUNKS, packed(np.array(sorted(self._chunks), np.int64)))

    def _chunk(self, chunk: int) -> Int64s:
        counts = self._counts.get(chunk)
        if counts is None:
            saved = self._state.get(_name(chunk)) if chunk in self._chunks else None
            counts = np.zeros(_SLOTS, np.int64) if saved is None else unpacked(saved).copy()
            self._counts[chunk] = counts
            self._loaded[chunk] = counts.copy()
        return counts


def _place(node: Node) -> tuple[int, int]:
    """(chunk, slot): the panes first, then the nodes of level 1, 2, ... A level that a chunk has once has one slot."""
    level, number = node
    chunk = (number << level) // CHUNK
    if level < _LEVELS:
        return chunk, 2 * CHUNK - (2 * CHUNK >> level) + number % (CHUNK >> level)
    return chunk, 2 * CHUNK - 1 + level - _LEVELS


def _name(chunk: int) -> str:
    return f"nodes/{chunk}"
