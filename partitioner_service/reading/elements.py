"""One record, several tuples: `explode` takes records apart into a block of elements with its own cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.grammar.explosion import BLANKS, MOST_ELEMENTS, Explosion
from evenflow.numeric.arrays import Bools, Int64s, UInt8s
from evenflow.numeric.kernels import kernel
from partitioner_service.reading.cells.cells import TEXT, VALUE, Block, Cells, kinds_of
from partitioner_service.reading.cells.faults import Faults
from partitioner_service.reading.cells.lists import count_elements, sizes_of_texts, value_end
from partitioner_service.reading.cells.reasons import FIRST_LARGE, TOO_MANY
from partitioner_service.reading.cells.sizes import byte_lengths
from partitioner_service.reading.cells.strings import PLAIN, texts
from partitioner_service.reading.cells.two_groups import ReaderBeside
from partitioner_service.reading.json.records import JsonReader

_OPENING, _CLOSING = tuple(b'{"":'), tuple(b"}\n")
"""Each element of a JSON list is put into an object of its own, in a field without a name. So the scan for
records can read elements too.
"""
_ADDED = len(_OPENING) + len(_CLOSING)


class Elements(NamedTuple):
    """The n elements of a block's records, one behind the other."""

    parents: Int64s
    """The record that each element comes from, ascending, shape (n,)."""
    block: Block
    """A block as of n records: the elements, and what is wrong with them."""
    cells: Cells
    """Cells of the elements' own columns."""

    @property
    def faults(self) -> Faults:
        """What is wrong with the elements."""
        return self.block.faults

    def first_wrong(self) -> Block | None:
        """The elements with only the first fault of each record. None if no element has a fault.

        A record with an element that cannot be read is unreadable, even if an element before it is too large.
        """
        rows = np.flatnonzero(self.faults.codes)
        if not len(rows):
            return None
        large = self.faults.codes[rows] >= FIRST_LARGE
        if large.any():
            rows = rows[
                np.lexsort((large, self.parents[rows]))
            ]  # stable: of one kind, the first element stays first
        first = rows[np.unique(self.parents[rows], return_index=True)[1]]
        codes = np.zeros_like(self.faults.codes)
        codes[first] = self.faults.codes[first]
        return replace(self.block, faults=self.faults._replace(codes=codes))

    @property
    def places(self) -> Int64s:
        """The place of each element in its record, counted from 1. Shape (n,)."""
        first = np.flatnonzero(np.diff(self.parents, prepend=-1))  # the elements that begin a record
        begun = np.repeat(first, np.diff(np.append(first, len(self.parents))))
        return np.arange(1, len(self.parents) + 1) - begun


@kernel
def _copy(data: UInt8s, begins: Int64s, counts: Int64s, out: UInt8s, bounds: Int64s) -> None:
    """Copy each element to `out`, between _OPENING and _CLOSING.

    bounds: where each element begins in `out`.
    """
    to = 0
    number = 0
    for row in range(begins.shape[0]):
        if counts[row] == 0:
            continue
        at = begins[row] + 1
        for _ in range(counts[row]):
            bounds[number] = to
            number += 1
            end = value_end(data, at)
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
    """Takes the records of a block apart.

    columns: the columns of an element, with their types. beside: more of them, which are no reason to reject
    a record (`ReaderBeside`). Only of lists in JSON, and only beside others.
    """

    def __init__(
        self, explosion: Explosion, columns: Mapping[str, str], beside: Mapping[str, str] | None = None
    ) -> None:
        self._explosion = explosion
        self.kinds = kinds_of(columns)
        self._reader: JsonReader | ReaderBeside | None = None
        self.written = PLAIN
        if explosion.way == "list":
            self._reader = self._reading(columns)
            self.written = self._reader.written
            if beside:
                both = self._reading({**columns, **beside})
                self._reader = ReaderBeside(self._reader, both, first=len(columns))

    def _reading(self, columns: Mapping[str, str]) -> JsonReader:
        within = [self._explosion.within(name) for name in columns]
        return JsonReader([("", *(path or ())) for path in within], kinds_of(columns))

    def explode(self, block: Block, cells: Cells, names: Sequence[str], written: int) -> Elements:
        """The elements of the records without a fault. A record with too many elements is a fault.

        names: names of the columns of `cells`. written: how these cells were written (JSON, CSV or PLAIN).
        """
        column = names.index(self._explosion.column)
        valid = (block.faults.codes == 0) & cells.present(column)
        if self._reader is None:
            return self._parts(texts(block.data, cells, column, written), valid, column, block.faults)
        counts = np.zeros(len(valid), np.int64)
        size = count_elements(block.data, cells.begins[column], valid, counts)
        _refuse(counts, column, block.faults)
        parents = np.repeat(np.arange(len(counts)), counts)
        if not len(self.kinds):  # the query only counts elements
            return self._unread(parents)
        out = np.empty(size + _ADDED * len(parents), np.uint8)
        bounds = np.zeros(len(parents) + 1, np.int64)
        _copy(block.data, cells.begins[column], counts, out, bounds)
        of_elements = _block(out, bounds)
        return Elements(parents, of_elements, self._reader.read(of_elements))

    def _unread(self, parents: Int64s) -> Elements:
        """Elements without any cell."""
        count = len(parents)
        return Elements(parents, Block.unread(count), Cells.of(self.kinds, count))

    def _parts(self, whole: pa.StringArray, valid: Bools, column: int, faults: Faults) -> Elements:
        """The parts of the texts in `whole`. valid: which records to take apart."""
        taken = valid & ~self._refused(whole, valid, column, faults)
        whole = pc.if_else(pa.array(taken), whole, None)
        if self._explosion.way == "split":
            lists = pc.split_pattern(whole, pattern=self._explosion.separator)
        else:
            lists = pc.split_pattern_regex(whole, pattern=f"[{BLANKS}]+")
        counts = np.array(pc.fill_null(pc.list_value_length(lists), 0), np.int64)
        parts = lists.flatten()
        if self._explosion.way == "words":  # blanks at the beginning or the end of a text make empty parts
            parents = np.repeat(np.arange(len(counts)), counts)
            filled = pc.not_equal(parts, "").to_numpy(zero_copy_only=False)
            parts, counts = (
                parts.filter(pa.array(filled)),
                np.bincount(parents[filled], minlength=len(counts)),
            )
        parents = np.repeat(np.arange(len(counts)), counts)
        if not len(self.kinds):
            return self._unread(parents)
        _, offsets, data = parts.cast(pa.string()).buffers()
        begun = np.frombuffer(offsets, np.int32, len(parts) + 1, 4 * parts.offset).astype(np.int64)
        # Unlike a block's records, these texts have no line feed behind them. No scan reads them, so none is
        # needed.
        buffer = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
        cells = Cells.of(np.array([TEXT]), len(parts))
        cells.states[0] = VALUE
        cells.begins[0] = begun[:-1]
        cells.lengths[0] = np.diff(begun)
        return Elements(parents, Block.laid_out(buffer, begun), cells)

    def _refused(self, whole: pa.StringArray, valid: Bools, column: int, faults: Faults) -> Bools:
        """Which texts have too many parts. Each is a fault.

        The parts are counted before any is made. A part takes many times the byte that it may have in a text,
        and no block is too small for a single record.
        """
        if int(byte_lengths(whole).max(initial=0)) < MOST_ELEMENTS:  # each part but one has a byte behind it
            return np.zeros(len(valid), np.bool_)
        counts = np.array(pc.fill_null(sizes_of_texts(whole, self._explosion), 0), np.int64)
        counts[~valid] = 0
        return _refuse(counts, column, faults)


def _refuse(counts: Int64s, column: int, faults: Faults) -> Bools:
    """Note a fault for records with too many elements, and set their counts to 0. Returns which these are."""
    many = counts > MOST_ELEMENTS
    if many.any():
        faults.note(many, TOO_MANY, column=column, at=counts.copy())  # before the counts are changed
        counts[many] = 0
    return many


def _block(data: UInt8s, begins: Int64s) -> Block:
    # Read-only like other blocks, because numba would compile every kernel again for a writable array.
    data.setflags(write=False)
    return Block.laid_out(data, begins)
