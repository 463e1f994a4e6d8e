"""Which nodes a bucket has. The directory is kept in chunks of 256 panes.

A micro-batch reads and writes only the chunks that it touches.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from evenflow.numeric.arrays import Int64s
from evenflow.twostep.reducing.state_blobs import BucketState, needed, packed, unpacked
from evenflow.windows import END_MARK

CHUNK = 256
"""Panes of a chunk. A chunk also holds the nodes of higher levels that begin within these panes."""
_LEVELS = CHUNK.bit_length()
"""Levels 0 to 8: those whose nodes cover no more panes than a chunk has."""
_SLOTS = 2 * CHUNK + 64
"""2 * CHUNK - 1 slots for the nodes of levels 0 to 8, and more than enough for one node of each higher
level.
"""
_CHUNKS = "chunks"
Node = tuple[int, int]
"""(level, number): the node covers panes [number * 2^level, (number + 1) * 2^level)."""


class Directory:
    """How many appends each node has had. A node that does not exist has 0."""

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
        """Appends of this node before this micro-batch.
        They say which of the node's runs the state store holds.
        """
        chunk, slot = _place(node)
        self._chunk(chunk)
        return int(self._loaded[chunk][slot])

    def set(self, node: Node, appends: int) -> None:
        """Note that the node has had so many appends. 0 removes the node."""
        chunk, slot = _place(node)
        self._chunk(chunk)[slot] = appends

    def panes(self, begin: int, end: int) -> Iterator[int]:
        """Numbers of the panes from `begin` to before `end` that exist, ascending."""
        for chunk in sorted({*self._chunks, *self._counts}):
            low = chunk * CHUNK
            # Chunks outside are not even read from the state store.
            if low + CHUNK > begin and low < end:
                for pane in (np.flatnonzero(self._chunk(chunk)[:CHUNK]) + low).tolist():
                    if begin <= pane < end:
                        yield pane

    def ends(self, begin: int) -> tuple[int, int] | None:
        """Numbers of the first and the last pane from `begin` on, or None.

        Reads few chunks: from either end to the first one with a pane.
        """
        first = next(self.panes(begin, END_MARK), None)
        if first is None:
            return None
        for chunk in sorted({*self._chunks, *self._counts}, reverse=True):
            positions = np.flatnonzero(self._chunk(chunk)[:CHUNK])
            if len(positions):
                return first, int(positions[-1]) + chunk * CHUNK
        return None

    def save(self) -> None:
        """Write the chunks that changed, and the list of chunks if it changed."""
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
            saved = needed(self._state, _name(chunk)) if chunk in self._chunks else None
            # `unpacked` gives a read-only array. A second copy stays as it was loaded.
            counts = np.zeros(_SLOTS, np.int64) if saved is None else unpacked(saved).copy()
            self._counts[chunk] = counts
            self._loaded[chunk] = counts.copy()
        return counts


def _place(node: Node) -> tuple[int, int]:
    """(chunk, slot) of a node. A chunk's slots hold its 256 panes, then its 128 nodes of level 1, and so on.

    A level above 8 has one slot, because at most one of its nodes begins in a chunk.
    """
    level, number = node
    chunk = (number << level) // CHUNK
    if level < _LEVELS:
        return chunk, 2 * CHUNK - (2 * CHUNK >> level) + number % (CHUNK >> level)
    return chunk, 2 * CHUNK - 1 + level - _LEVELS


def _name(chunk: int) -> str:
    return f"nodes/{chunk}"
