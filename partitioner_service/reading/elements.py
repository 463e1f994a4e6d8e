"""One record, several tuples: what `explode` takes apart, as a block of elements with cells of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.arrays import Bools, Int64s, UInt8s
from evenflow.kernels import kernel
from evenflow.settings.explosion import BLANKS, MOST_ELEMENTS, Explosion
from partitioner_service.reading.cells import TEXT, VALUE, Block, Cells, kind_of
from partitioner_service.reading.characters import (
    BACKSLASH,
    CLOSE_LIST,
    CLOSE_OBJECT,
    COMMA,
    OPEN_LIST,
    OPEN_OBJECT,
    QUOTE,
    is_space,
)
from partitioner_service.reading.json_records import JsonReader
from partitioner_service.reading.reasons import TOO_MANY, Faults
from partitioner_service.reading.strings import PLAIN, texts

_OPENING, _CLOSING = tuple(b'{"":'), tuple(b"}\n")
"""An element of JSON is put into an object of its own, in a field without a name: so the records' own scan reads it."""
_ADDED = len(_OPENING) + len(_CLOSING)


class Elements(NamedTuple):
    """The elements of a block's records, one behind the other.

    parents: the record that each comes from, ascending, shape (n,). The rest as of a block of n records.
    """

    parents: Int64s
    block: Block
    cells: Cells
    faults: Faults

    def first_wrong(self) -> Faults | None:
        """The first fault of each record, all other elements as if nothing were wrong with them. None without any."""
        rows = np.flatnonzero(self.faults.codes)
        if not len(rows):
            return None
        first = rows[np.unique(self.parents[rows], return_index=True)[1]]
        codes = np.zeros_like(self.faults.codes)
        codes[first] = self.faults.codes[first]
        return self.faults._replace(codes=codes)

    @property
    def places(self) -> Int64s:
        """The place of each element in its record, from 1 on."""
        first = np.flatnonzero(np.diff(self.parents, prepend=-1))
        begun = np.repeat(first, np.diff(np.append(first, len(self.parents))))
        return np.arange(1, len(self.parents) + 1) - begun


@kernel
def _value_end(data: UInt8s, at: int) -> int:
    """Where an element of a list ends that is known to be JSON: at the comma or the bracket behind it."""
    depth = 0
    while True:
        here = data[at]
        if here == QUOTE:
            at += 1
            while data[at] != QUOTE:
                at += 2 if data[at] == BACKSLASH else 1
        elif here in (OPEN_LIST, OPEN_OBJECT):
            depth += 1
        elif here in (CLOSE_LIST, CLOSE_OBJECT):
            if depth == 0:
                return at
            depth -= 1
        elif here == COMMA and depth == 0:
            return at
        at += 1


@kernel
def _count(data: UInt8s, begins: Int64s, valid: Bools, counts: Int64s) -> int:
    """Elements of each list, and the bytes of them all."""
    size = 0
    for row in range(begins.shape[0]):
        if not valid[row]:
            continue
        first = begins[row] + 1
        while is_space(data[first]):
            first += 1
        if data[first] == CLOSE_LIST:
            continue
        at = begins[row] + 1  # blanks before the first element are copied with it, as those before the others
        of_row = 0
        while True:
            end = _value_end(data, at)
            counts[row] += 1
            of_row += end - at
            if data[end] == CLOSE_LIST:
                break
            at = end + 1
        if counts[row] <= MOST_ELEMENTS:
            size += of_row
    return size


@kernel
def _copy(data: UInt8s, begins: Int64s, counts: Int64s, out: UInt8s, bounds: Int64s) -> None:
    """Each element between _OPENING and _CLOSING. bounds: where each begins."""
    to = 0
    number = 0
    for row in range(begins.shape[0]):
        if counts[row] == 0:
            continue
        at = begins[row] + 1
        for _ in range(counts[row]):
            bounds[number] = to
            number += 1
            end = _value_end(data, at)
            for byte in range(len(_OPENING)):
                out[to + byte] = _OPENING[byte]
            to += len(_OPENING)
            for byte in range(at, end):
                out[to] = data[byte]
                to += 1
            for byte in range(len(_CLOSING)):
                out[to + byte] = _CLOSING[byte]
            to += len(_CLOSING)
            at = end + 1
    bounds[number] = to


class Exploder:
    """Takes the records of a block apart. columns: those of an element, with their types."""

    def __init__(self, explosion: Explosion, columns: Mapping[str, str]) -> None:
        self._explosion = explosion
        self.kinds = np.array([kind_of(type_) for type_ in columns.values()], np.int64)
        self._reader = None
        self.written = PLAIN
        if explosion.way == "list":
            within = [explosion.within(name) for name in columns]
            self._reader = JsonReader([("", *(path or ())) for path in within], self.kinds)
            self.written = self._reader.written

    def explode(
        self, block: Block, cells: Cells, names: Sequence[str], written: int, faults: Faults
    ) -> Elements:
        """The elements of the records without a fault. Too many of them are a fault. names: of the columns of `cells`."""
        column = names.index(self._explosion.column)
        valid = (faults.codes == 0) & cells.there(column)
        if self._reader is None:
            return self._parts(texts(block.data, cells, column, written), valid, column, faults)
        counts = np.zeros(len(valid), np.int64)
        size = _count(block.data, cells.begins[column], valid, counts)
        _refuse(counts, column, faults)
        parents = np.repeat(np.arange(len(counts)), counts)
        if not len(self.kinds):  # nothing of them is read
            return self._unread(parents)
        out = np.empty(size + _ADDED * len(parents), np.uint8)
        bounds = np.zeros(len(parents) + 1, np.int64)
        _copy(block.data, cells.begins[column], counts, out, bounds)
        of_elements = _block(out, bounds)
        inner = Faults.none(len(parents))
        return Elements(parents, of_elements, self._reader.read(of_elements, inner), inner)

    def _unread(self, parents: Int64s) -> Elements:
        count = len(parents)
        return Elements(parents, Block.of([]), Cells.of(self.kinds, count), Faults.none(count))

    def _parts(self, whole: pa.StringArray, valid: Bools, column: int, faults: Faults) -> Elements:
        """The parts of texts."""
        whole = pc.if_else(pa.array(valid), whole, None)
        if self._explosion.way == "split":
            lists = pc.split_pattern(whole, pattern=self._explosion.separator)
        else:
            lists = pc.split_pattern_regex(whole, pattern=f"[{BLANKS}]+")
        counts = np.array(pc.fill_null(pc.list_value_length(lists), 0), np.int64)
        parts = lists.flatten()
        if self._explosion.way == "words":  # what begins with a blank has nothing before it
            parents = np.repeat(np.arange(len(counts)), counts)
            filled = pc.not_equal(parts, "").to_numpy(zero_copy_only=False)
            parts, counts = (
                parts.filter(pa.array(filled)),
                np.bincount(parents[filled], minlength=len(counts)),
            )
        of_many = np.repeat(counts > MOST_ELEMENTS, counts)
        if of_many.any():
            parts = parts.filter(pa.array(~of_many))
        _refuse(counts, column, faults)
        parents = np.repeat(np.arange(len(counts)), counts)
        if not len(self.kinds):
            return self._unread(parents)
        _, offsets, data = parts.cast(pa.string()).buffers()
        begun = np.frombuffer(offsets, np.int32, len(parts) + 1, 4 * parts.offset).astype(np.int64)
        # A block's records have a line feed behind them; text has none, and nobody looks behind it.
        held = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
        cells = Cells.of(np.array([TEXT]), len(parts))
        cells.states[0] = VALUE
        cells.begins[0] = begun[:-1]
        cells.lengths[0] = np.diff(begun)
        return Elements(parents, Block(held, begun, None), cells, Faults.none(len(parts)))


def _refuse(counts: Int64s, column: int, faults: Faults) -> None:
    """Records with too many elements are a fault and have none."""
    many = counts > MOST_ELEMENTS
    if many.any():
        faults.note(many, TOO_MANY, column=column, at=counts.copy())
        counts[many] = 0


def _block(data: UInt8s, begins: Int64s) -> Block:
    data.setflags(write=False)  # kernels are compiled for an array that nobody writes to
    return Block(data, begins, None)
