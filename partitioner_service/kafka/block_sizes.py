"""Blocks that are not too large, neither as they come nor as what they become.

Arrow's columns of text hold less than 2 GiB each, and a container may have 1 GiB in all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from evenflow.expressions.growth import Growth, growths
from evenflow.grammar.explosion import MOST_ELEMENTS
from evenflow.limits import JSON_GROWTH, REPEATED_BYTES
from evenflow.numeric.arrays import Bools, Int64s
from evenflow.settings import Settings
from partitioner_service.reading.cells.payloads import Payloads

MOST_BYTES = 1 << 30
"""Limit of a block: half of what a column of text can hold."""
GROWN_BYTES = 1 << 27
"""Limit of what the texts of a block become. Records that are taken apart repeat texts, by which a block
could grow a thousand times. While it is parsed it takes about twice as much.
"""
EXPLODED_BYTES = 1 << 22
"""Limit of a block whose records are taken apart.
An element has two bytes at least: some two million tuples at most.
"""
_SAMPLE_BYTES = 8_000_000

_MOST_GROWTH = 1 << 28
"""More growth than this makes any record a block of its own."""
_MOST_OF_A_RECORD = 1 << 40
"""Bytes that count for one record at most, so that no sum of a block overflows."""


@dataclass(frozen=True, eq=False)
class Widths:
    """How large a column of texts can become that is made of a block."""

    growth: Growth = Growth()  # noqa: RUF009 - a Growth is immutable
    """Growth of the column that grows most."""
    exploded: bool = False
    """Whether records are taken apart."""
    repeats: bool = False
    """Whether elements of a record repeat texts of the record."""
    marks: Bools | None = None
    """Bytes of which a record has at least as many as its elements, less one. Shape (256,). None: no such
    bytes are known."""

    @classmethod
    def of(cls, settings: Settings) -> Widths:
        """The widths of the columns of this query."""
        query = settings.query
        texts = growths(query.resolved) if query.columns or query.lookup else {}
        all_texts = [Growth(), *texts.values()]
        if len(query.key_columns) > 1:  # they become one JSON array
            parts = [texts.get(name, Growth()) for name in query.key_columns]
            all_texts.append(sum((part * JSON_GROWTH for part in parts), Growth(0, 48 * len(parts))))
        widest = Growth(
            min(_MOST_GROWTH, max(text.factor for text in all_texts)),
            min(_MOST_GROWTH, max(text.added for text in all_texts)),
        )
        repeats = bool(query.repeated_texts) or query.key == "@key"
        repeats = repeats and query.explode is not None
        return cls(widest, query.explode is not None, repeats, _marks(settings) if repeats else None)

    def elements_of(self, values: Payloads) -> Int64s | None:
        """At least as many elements as these records have, shape (n,). None if nobody knows without reading
        them.
        """
        if self.marks is None or not len(values):
            return None
        compact = values.compact()
        return np.add.reduceat(self.marks[compact.data], compact.begins[:-1], dtype=np.int64) + 1

    def bytes_of(self, sizes: Int64s, elements: Int64s | None = None) -> Int64s:
        """Bytes that records of these sizes (bytes) can have in a column, shape (n,).
        elements: as of `elements_of`.
        """
        texts, rows = sizes, np.ones_like(sizes)
        if self.repeats:
            # Of a record, half can be elements of a byte each, and the other half the text that each repeats.
            most = sizes * sizes // 4
            if elements is not None:
                most = np.minimum(most, sizes * elements)
            texts = sizes + np.minimum(most, REPEATED_BYTES)
        if self.exploded:
            rows = np.minimum(sizes, MOST_ELEMENTS) + 1
        return np.minimum(texts * self.growth.factor + rows * self.growth.added, _MOST_OF_A_RECORD)


def cut(
    values: Int64s,
    keys: Int64s | None = None,
    *,
    most_bytes: int = MOST_BYTES,
    widths: Widths | None = None,
    elements: Int64s | None = None,
) -> Iterator[tuple[int, int]]:
    """Stretches (first, stop) of records with at most `most_bytes`.
    A single larger record is a stretch of its own.

    values, keys: sizes (bytes) of the values, and of the keys if they count as well. Shape (n,), n > 0.
    widths: if given, what a stretch becomes is bounded, too (`GROWN_BYTES`). elements: of each record, as of
    `Widths.elements_of`.
    """
    sizes = values if keys is None else values + keys
    ends = [_ends(sizes)]
    mosts = [most_bytes]
    if widths is not None:
        ends.append(_ends(widths.bytes_of(sizes, elements)))
        mosts.append(GROWN_BYTES)
    first = 0
    while first < len(sizes):
        stops = [
            int(np.searchsorted(end, end[first] + most, side="right")) - 1
            for end, most in zip(ends, mosts, strict=True)
        ]
        stop = max(min(stops), first + 1)  # one record always goes on, however large
        yield first, stop
        first = stop


def sample_batches(
    values: Sequence[bytes | None], keys: Sequence[bytes | None], widths: Widths
) -> Iterator[slice]:
    """Consecutive records of a sample, of about 8 MB at a time or of what becomes `GROWN_BYTES`."""
    if not values:
        return
    payloads, key_sizes = Payloads.of(values), Payloads.of(keys).sizes
    elements = widths.elements_of(payloads)
    for first, stop in cut(
        payloads.sizes, key_sizes, most_bytes=_SAMPLE_BYTES, widths=widths, elements=elements
    ):
        yield slice(first, stop)


def _marks(settings: Settings) -> Bools | None:
    explosion = settings.query.explosion
    if explosion is None or settings.input.registered:
        return None
    marks = np.zeros(256, np.bool_)
    marks[ord("\\")] = True  # JSON can write any character as an escape
    if explosion.way == "list":
        marks[ord(",")] = True
    elif explosion.way == "split":
        marks[explosion.separator.encode()[0]] = True
    else:  # all that is or can begin a blank
        marks[: ord(" ") + 1] = marks[128:] = True
    return marks


def _ends(sizes: Int64s) -> Int64s:
    return np.concatenate([[0], np.cumsum(sizes)])
