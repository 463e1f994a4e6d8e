"""Why a record is unreadable: a code where the fault is found, and words for many records at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.grammar.column_types import ANY_VALUE, decimal_scale
from evenflow.grammar.explosion import MOST_ELEMENTS
from evenflow.limits import KEY_BYTES, REPEATED_BYTES, VALUE_BYTES
from evenflow.numeric.arrays import Bools, Int64s
from partitioner_service.reading.cells.cells import Block, Cells
from partitioner_service.reading.cells.faults import NO_VALUE, Faults
from partitioner_service.reading.cells.strings import shown

NO_OBJECT, NO_JSON, CUT_OFF, HALF_PAIR, MORE_JSON, TWICE = range(NO_VALUE + 1, 8)
OTHER_TYPE_TEXT, OTHER_TYPE_NUMBER, OTHER_TYPE_TRUTH, OTHER_TYPE_NESTED, NOT_WHOLE, TOO_LARGE, NOT_FINITE = (
    range(8, 15)
)
NOT_UTF8, NO_KEY_COLUMN, NO_TIME_COLUMN, NO_KEY, NO_TIMESTAMP, NO_TIME, FAR_TIME, FAR_TIMESTAMP = range(
    15, 23
)
EMPTY, BYTE_ORDER_MARK, MORE_LINES, OTHER_FIELDS = range(23, 27)
NO_TRUTH, NO_DATE, NO_DECIMAL, NOT_DERIVED = range(27, 31)
NO_INNER, TOO_MANY, LONG_EXPONENT = range(31, 34)
NO_MAGIC, NO_SCHEMA, UNFIT_SCHEMA, NOT_DECODED, OTHER_FORM, TIME_OUT, WITHHELD = range(40, 47)
NO_LOOKUP_KEY, NO_ROW, NO_ROW_OF_KEY, NO_ROW_OF_ELEMENT = range(50, 54)
LARGE_KEY, LARGE_VALUES, LARGE_REPEATED = range(60, 63)
FIRST_LARGE = LARGE_KEY
"""A record with a code from here on can be read, but something of it is too large (reason `too-large`)."""
UNREADABLE, UNMATCHED, LARGE = "unreadable", "unmatched", "too-large"
OF_RECORDS = (UNREADABLE, UNMATCHED, LARGE)
"""The reasons for which the parser rejects a record. Each code belongs to one."""

_WORDS = {
    NO_VALUE: "the record has no value",
    NO_OBJECT: "the record is no JSON object",
    NO_JSON: "the record is not valid JSON at byte {at}",
    CUT_OFF: "the record is not valid JSON: it ends at byte {at}, before the object does",
    HALF_PAIR: "the record is not valid JSON: half of a surrogate pair at byte {at}",
    MORE_JSON: "the record holds more than one JSON object: something follows at byte {at}",
    TWICE: "column {column} is there twice",
    OTHER_TYPE_TEXT: 'column {column} holds text where {needed} is needed ("{text}")',
    OTHER_TYPE_NUMBER: "column {column} holds a number where {needed} is needed ({text})",
    OTHER_TYPE_TRUTH: "column {column} holds true or false where {needed} is needed",
    OTHER_TYPE_NESTED: "column {column} holds an object or a list where {needed} is needed",
    NOT_WHOLE: "column {column} holds a number that is not whole where {needed} is needed ({text})",
    TOO_LARGE: "column {column} holds a whole number that 64 bits do not hold ({text})",
    NOT_FINITE: "column {column} is not a finite number ({text})",
    NOT_UTF8: "column {column} is not valid UTF-8",
    NO_KEY_COLUMN: "key column {column} is missing or null",
    NO_TIME_COLUMN: "time column {column} is missing or null",
    NO_KEY: "the record has no key",
    NO_TIMESTAMP: "the record has no timestamp",
    NO_TIME: "time column {column} does not hold a time ({text})",
    FAR_TIME: "time column {column} holds a time that is out of range ({text})",
    FAR_TIMESTAMP: "the record's timestamp {at} ms is out of range",
    EMPTY: "the record is empty",
    BYTE_ORDER_MARK: "the record begins with a byte order mark",
    MORE_LINES: "the record holds more than one line: another begins at byte {at}",
    OTHER_FIELDS: "the record holds {at} fields instead of {fields}",
    NO_TRUTH: "column {column} is neither true nor false ({text})",
    NO_DATE: "column {column} holds no date of the form 2026-01-31 ({text})",
    NO_DECIMAL: "column {column} does not hold {needed} ({text})",
    NO_INNER: "a field on the way to column {column} holds no object",
    LONG_EXPONENT: "column {column} holds a number whose exponent has more than 9 digits ({text})",
    TOO_MANY: f"column {{column}} has {{at}} elements, more than {MOST_ELEMENTS:,}",
    NO_MAGIC: (
        "the record is not in Confluent's wire format: byte 0 and the four bytes of a schema id come first"
    ),
    NO_SCHEMA: "the registry has no schema of id {at}",
    WITHHELD: "the registry refuses schema {note}",
    UNFIT_SCHEMA: "schema {at} cannot be read, see docs/formats.md",
    NOT_DECODED: "the record does not decode by schema {at}",
    OTHER_FORM: "column {column} does not hold {needed} by schema {at}",
    TIME_OUT: "time column {column} holds a time that is out of range, by schema {at}",
    LARGE_KEY: "the key, or one of its columns, has {at} bytes; {most_key} is the most (query.max_key_bytes)",
    LARGE_VALUES: "the texts of a tuple have {at} bytes; {most_values} is the most (query.max_value_bytes)",
    LARGE_REPEATED: (
        "the texts that every element repeats have {at} bytes in all elements together; "
        f"{REPEATED_BYTES:,} is the most"
    ),
    NO_LOOKUP_KEY: "column {column}, which is looked up, is missing or null",
    NO_ROW: "the lookup file has no row for column {column} ({text})",
    NO_ROW_OF_KEY: "the lookup file has no row for column {column} and the others of its key",
    NO_ROW_OF_ELEMENT: "the lookup file has no row for an element of the record",
    NOT_DERIVED: "derived column {column} has a value that {needed} cannot hold",
}
_NEEDED = {
    "int64": "a whole number",
    "float64": "a number",
    "string": "text",
    "bool": "true or false",
    "date": "a date",
    "list": "a list",
    ANY_VALUE: "text, a number, true or false",
}


def needed(type_: str) -> str:
    """What a column of this declared type needs, in words."""
    scale = decimal_scale(type_)
    return (
        _NEEDED[type_]
        if scale is None
        else f"a decimal of at most 18 digits, {scale} of them behind the point"
    )


def reason_of(code: int) -> str:
    """Which of the three reasons a code belongs to."""
    if code >= FIRST_LARGE:
        return LARGE
    return UNMATCHED if code >= NO_LOOKUP_KEY else UNREADABLE


@dataclass(frozen=True, eq=False)
class BadRecords(Mapping[int, str]):
    """The bad records of a block: a mapping from rows to why each row is rejected."""

    rows: Int64s
    """Positions of the bad records in the block, ascending."""
    details: pa.BinaryArray
    """Why each row is rejected, in UTF-8."""
    kinds: Int64s
    """For each row, which of `words` its detail is."""
    words: Sequence[str]
    """The different details, with dots in place of what a record holds."""
    reasons: Sequence[str]
    """For each of `words`, the reason that it belongs to (`reason_of`)."""

    def __getitem__(self, row: int) -> str:
        place = int(np.searchsorted(self.rows, row))
        if place == len(self.rows) or self.rows[place] != row:
            raise KeyError(row)
        return str(self.details[place].as_py(), "utf-8")

    def __iter__(self) -> Iterator[int]:
        return iter(self.rows.tolist())

    def __len__(self) -> int:
        return len(self.rows)

    def between(self, first: int, stop: int) -> BadRecords:
        """The bad records among rows first to stop - 1. Their rows count from `first`."""
        if not len(self.rows):
            return self
        begin, end = np.searchsorted(self.rows, (first, stop)).tolist()
        return BadRecords(
            self.rows[begin:end] - first,
            self.details.slice(begin, end - begin),
            self.kinds[begin:end],
            self.words,
            self.reasons,
        )

    def of_records(self, parents: Int64s, places: Int64s) -> BadRecords:
        """Bad elements as bad records. The reasons name the place of the element.

        parents, places: record of each element, and its place in the record. No record may have two bad
        elements here.
        """
        behind = pa.array(places[self.rows]).cast(pa.string()).cast(pa.binary())
        details = pc.binary_join_element_wise(self.details, b" (element ", behind, b")", b"")
        words = [f"{reason} (element ...)" for reason in self.words]
        return BadRecords(parents[self.rows], details, self.kinds, words, self.reasons)

    def and_others(self, others: BadRecords) -> BadRecords:
        """These bad records and others together. The two have no row in common."""
        rows = np.concatenate([self.rows, others.rows])
        order = np.argsort(rows, kind="stable")
        details = pa.concat_arrays([self.details, others.details]).take(pa.array(order))
        kinds = np.concatenate([self.kinds, others.kinds + len(self.words)])[order]
        words, reasons = [*self.words, *others.words], [*self.reasons, *others.reasons]
        return BadRecords(rows[order], details, kinds, words, reasons)

    def of_reason(self, reason: str) -> Bools:
        """Which of the records are rejected for this reason. Shape (len(self),)."""
        # The False behind them keeps the type where there is no reason at all.
        mask: Bools = np.array([*(kind == reason for kind in self.reasons), False], np.bool_)[self.kinds]
        return mask

    @property
    def too_large(self) -> Bools:
        """Which of the records are readable but too large. Shape (len(self),)."""
        return self.of_reason(LARGE)

    def counted(self) -> dict[str, int]:
        """Number of records by reason, with dots in place of what a record holds."""
        counts = np.bincount(self.kinds, minlength=len(self.words)).tolist()
        return {words: count for words, count in zip(self.words, counts, strict=True) if count}


NO_NOTES: Mapping[int, str] = {}


def _with_notes(
    parts: pa.BinaryArray, is_note: Bools, rows: Int64s, faults: Faults, notes: Mapping[int, str]
) -> pa.BinaryArray:
    """`parts` with the notes of those rows whose reason tells one."""
    of_rows = [notes[number] for number in faults.at[rows[is_note]].tolist()]
    return pc.replace_with_mask(parts, pa.array(is_note), pa.array(of_rows, pa.string()).cast(pa.binary()))


class Explainer:
    """Says what is wrong with records.

    types: the declared types of their columns, by name. fields: number of fields that a csv record should
    have. most: (`query.max_key_bytes`, `query.max_value_bytes`). places: number of each column, by name.
    """

    def __init__(
        self, types: Mapping[str, str], *, fields: int = 0, most: tuple[int, int] = (KEY_BYTES, VALUE_BYTES)
    ) -> None:
        # Names are cut, because every rejected record carries them.
        self._columns = [(repr(name)[:200], needed(type_)) for name, type_ in types.items()]
        self._fields = fields
        self._most = {"most_key": f"{most[0]:,}", "most_values": f"{most[1]:,}"}
        self.places = {name: place for place, name in enumerate(types)}

    def explain(self, block: Block, cells: Cells, *, notes: Mapping[int, str] = NO_NOTES) -> BadRecords:
        """The bad records of a block, with reasons in words.

        notes: what the reason says of a number in `Faults.at`, if it says more than the number.

        Python's own work is per different reason. What is per record is vectorised.
        """
        faults = block.faults
        rows = np.flatnonzero(faults.codes)
        if not len(rows):
            return BadRecords(rows, pa.array([], pa.binary()), rows, [], [])
        codes, columns = faults.codes[rows].astype(np.int64), faults.columns[rows].astype(np.int64)
        # Code and column in one number, so that equal reasons are found at once. Column -1 becomes 0.
        groups, kinds = np.unique(codes << 16 | (columns + 1), return_inverse=True)
        templates = [self._template(int(group) >> 16, (int(group) & 0xFFFF) - 1) for group in groups]
        before, after = (pa.array([t[side] for t in templates], pa.binary()) for side in (0, 2))
        parts = self._parts(templates, kinds, rows, block, cells)
        parts = _with_notes(
            parts, np.array([part == b"note" for _, part, _ in templates])[kinds], rows, faults, notes
        )
        details = pc.binary_join_element_wise(before.take(kinds), parts, after.take(kinds), b"")
        words = [(before + (b"..." if part else b"") + after).decode() for before, part, after in templates]
        return BadRecords(rows, details, kinds, words, [reason_of(int(group) >> 16) for group in groups])

    def _template(self, code: int, column: int) -> tuple[bytes, bytes, bytes]:
        """A reason in three parts: the text before the part that differs, which part that is,
        the text after it.

        The part that differs from record to record is "at", "note", "text" or nothing.
        """
        # NUL marks that part, because `repr` of a column's name never holds a NUL.
        known = {"at": "\0at\0", "note": "\0note\0", "text": "\0text\0", "fields": self._fields, **self._most}
        if column >= 0:
            known |= dict(zip(("column", "needed"), self._columns[column], strict=True))
        before, shows, after = (*_WORDS[code].format(**known).split("\0"), "", "")[:3]
        return before.encode(), shows.encode(), after.encode()

    def _parts(
        self,
        templates: Sequence[tuple[bytes, bytes, bytes]],
        kinds: Int64s,
        rows: Int64s,
        block: Block,
        cells: Cells,
    ) -> pa.BinaryArray:
        """The part that differs from record to record, for each of these rows."""
        shows = np.array([part for _, part, _ in templates])[kinds]
        parts = pa.array(block.faults.at[rows]).cast(pa.string()).cast(pa.binary())
        parts = pc.if_else(pa.array(shows == b"at"), parts, pa.scalar(b"", pa.binary()))
        is_text = shows == b"text"
        of_cells = rows[is_text]
        texts = shown(block.data, cells, block.faults.columns[of_cells], of_cells)
        return pc.replace_with_mask(parts, pa.array(is_text), texts)
