"""Lists of JSON and texts that are taken apart or counted: where an element ends,
and how many elements there are.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.grammar.explosion import BLANKS, MOST_ELEMENTS, Explosion
from evenflow.numeric.arrays import Bools, Int64s, UInt8s
from evenflow.numeric.kernels import kernel
from partitioner_service.reading.cells.cells import Cells
from partitioner_service.reading.cells.characters import (
    BACKSLASH,
    CLOSE_LIST,
    CLOSE_OBJECT,
    COMMA,
    OPEN_LIST,
    OPEN_OBJECT,
    QUOTE,
    is_space,
)
from partitioner_service.reading.cells.typed_columns import Texts, text_parts

_BLANKS = tuple(BLANKS.encode())


@kernel
def value_end(data: UInt8s, at: int) -> int:
    """Where an element of a list ends: at the comma or bracket behind it. The list must be valid JSON."""
    depth = 0
    while True:
        byte = data[at]
        if byte == QUOTE:
            at += 1
            while data[at] != QUOTE:
                at += 2 if data[at] == BACKSLASH else 1  # an escaped quote does not end the text
        elif byte in (OPEN_LIST, OPEN_OBJECT):
            depth += 1
        elif byte in (CLOSE_LIST, CLOSE_OBJECT):
            if depth == 0:
                return at
            depth -= 1
        elif byte == COMMA and depth == 0:
            return at
        at += 1


@kernel
def count_elements(data: UInt8s, begins: Int64s, valid: Bools, counts: Int64s) -> int:
    """Fill `counts` with the number of elements of each list.

    Returns the bytes of all elements that will be copied. Lists with too many elements are counted, but their
    bytes are not.
    """
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
            end = value_end(data, at)
            counts[row] += 1
            of_row += end - at
            if data[end] == CLOSE_LIST:
                break
            at = end + 1
        if counts[row] <= MOST_ELEMENTS:
            size += of_row
    return size


def sizes_of_lists(data: UInt8s, cells: Cells, column: int) -> pa.Int64Array:
    """The number of elements of each list in a column, null where there is none.
    data: the block of these cells.
    """
    present = cells.present(column)
    counts = np.zeros(len(present), np.int64)
    count_elements(data, cells.begins[column], present, counts)
    return pa.array(counts, mask=~present)


def sizes_of_texts(texts: pa.StringArray, explosion: Explosion) -> pa.Int64Array:
    """The number of parts that each text is taken apart into, null where there is no text."""
    if explosion.way == "words":
        parts, words = text_parts(texts), np.zeros(len(texts), np.int64)
        _count_words(parts, words)
        return pa.array(words, mask=~parts.valid)
    return pc.add(pc.count_substring(texts, pattern=explosion.separator), 1).cast(pa.int64())


@kernel
def _count_words(texts: Texts, words: Int64s) -> None:
    """Fill `words` with the number of words of each text.
    A regular expression would take some fifty times as long.
    """
    for row in range(words.shape[0]):
        between = True
        for at in range(texts.offsets[row], texts.offsets[row + 1]):
            blank = texts.data[at] in _BLANKS
            words[row] += between and not blank
            between = blank
