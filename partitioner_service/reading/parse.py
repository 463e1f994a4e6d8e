"""Records to columns: keep what the query needs, give every bad record a reason of its own.

Compiled code (`reading`) reads a block as a whole, and judges each record by itself. Everything after that
works on columns: keys, event times, derived columns, and numbers that must be finite.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.expressions.columns import Columns
from evenflow.expressions.engine import Engine
from evenflow.expressions.explosion import record_and_element_columns
from evenflow.grammar.arrow_types import arrow_type
from evenflow.limits import REPEATED_BYTES
from evenflow.lookup_table import LookupTable
from evenflow.numeric.arrays import Bools, Float64s, Int64s
from evenflow.settings import Settings
from evenflow.text.json_text import arrays
from partitioner_service.reading.cells.cells import Block, Cells, kinds_of
from partitioner_service.reading.cells.faults import Faults
from partitioner_service.reading.cells.payloads import Payloads
from partitioner_service.reading.cells.reasons import (
    FAR_TIME,
    FAR_TIMESTAMP,
    LARGE_REPEATED,
    NO_KEY,
    NO_KEY_COLUMN,
    NO_LOOKUP_KEY,
    NO_NOTES,
    NO_ROW,
    NO_ROW_OF_ELEMENT,
    NO_ROW_OF_KEY,
    NO_TIME,
    NO_TIME_COLUMN,
    NO_TIMESTAMP,
    NOT_DERIVED,
    BadRecords,
    Explainer,
)
from partitioner_service.reading.cells.sizes import byte_lengths, note_large, texts_of, without_long
from partitioner_service.reading.cells.strings import texts
from partitioner_service.reading.cells.times import MAX_TIME, far, from_iso, from_seconds, undated
from partitioner_service.reading.cells.two_groups import Reader, ReaderBeside
from partitioner_service.reading.columns import CellColumns, reader_of
from partitioner_service.reading.costs import Pricing, only
from partitioner_service.reading.elements import Elements, Exploder
from partitioner_service.reading.registered.records import RegisteredReader
from partitioner_service.reading.registered.schemas import Schemas, schemas_of


@dataclass(frozen=True)
class ParsedBlock:
    """The m readable records of a block, and their n tuples."""

    rows: Int64s
    """Positions of the readable records in the block, ascending, shape (m,)."""
    times: Int64s
    """Event times (ms) of these records, shape (m,)."""
    keys: pa.BinaryArray
    """Keys of the tuples in order, shape (n,)."""
    values: pa.RecordBatch
    """The aggregated columns of the tuples, n rows."""
    bad: BadRecords
    """The reason of every other row."""
    counts: Int64s | None = None
    """Number of tuples of each readable record, shape (m,). It is 0 where `query.where` keeps nothing, and
    above 1 where `query.explode` takes a record apart. None means that each record is one tuple."""
    costs: Float64s | None = None
    """What `partitioner.cost` computes for the tuples, not yet whole or within the range, shape (n,). NaN
    where it is no number. None if each tuple costs 1."""

    @property
    def tuple_times(self) -> Int64s:
        """Event time of each tuple, ms. Shape (n,)."""
        return self.times if self.counts is None else np.repeat(self.times, self.counts)

    @property
    def empty(self) -> int:
        """Number of readable records that have no tuple."""
        return 0 if self.counts is None else int(np.count_nonzero(self.counts == 0))


def taken_apart(parsed: ParsedBlock, sizes: Sequence[int]) -> list[ParsedBlock]:
    """What was parsed, cut into consecutive stretches of the block.

    sizes: number of records in each stretch. The rows of a stretch count from its own first record.
    """
    bounds = np.cumsum([0, *sizes])
    cuts = np.searchsorted(parsed.rows, bounds).tolist()
    # Where the tuples of each stretch begin. With `counts`, a record can be no tuple or several, so records
    # and tuples have different bounds.
    starts = cuts if parsed.counts is None else np.append(0, np.cumsum(parsed.counts))[cuts].tolist()
    pieces = []
    stretches = zip(pairwise(bounds.tolist()), pairwise(cuts), pairwise(starts), strict=True)
    for (first, last), (begin, stop), (start, end) in stretches:
        values = parsed.values.slice(start, end - start) if parsed.values.num_columns else parsed.values
        rows, times = parsed.rows[begin:stop] - first, parsed.times[begin:stop]
        counts = None if parsed.counts is None else parsed.counts[begin:stop]
        keys, bad = parsed.keys.slice(start, end - start), parsed.bad.between(first, last)
        costs = None if parsed.costs is None else parsed.costs[start:end]
        pieces.append(ParsedBlock(rows, times, keys, values, bad, counts, costs))
    return pieces


class Parser:
    """Parses blocks of records as `settings.input` and `settings.query` say.

    unmatched: how many readable records of the newest block have no row in the lookup file. schemas: where
    the schemas of Avro and Protobuf records come from. None means the registry in the settings. Raises what
    `LookupTable` raises for a lookup file that does not fit.
    """

    def __init__(self, settings: Settings, *, schemas: Schemas | None = None) -> None:
        self._query = settings.query
        schemas = schemas or schemas_of(settings)
        columns = settings.query.resolved
        self._types = settings.query.record_columns
        self._names = list(self._types)
        self._kinds = kinds_of(self._types)
        derived = {
            **columns.looked_up,
            **{name: expression.type for name, expression in columns.derived.items()},
        }
        self._lookup = None if settings.query.lookup is None else LookupTable(settings.query)
        self.unmatched = 0
        self._value_schema = pa.schema(
            [(name, arrow_type(type_)) for name, type_ in settings.query.value_columns.items()]
        )
        self._most = (settings.query.max_key_bytes, settings.query.max_value_bytes)
        self._csv = settings.input.format == "csv"
        # One row of the year 40,000 would stop the application whose sink cannot hold it.
        self._dated = settings.results.dated
        self._elements = settings.query.element_columns
        self._of_each = {*self._elements, *(columns.looked_up if columns.each else ())}
        reader = reader_of(settings, self._types, self._kinds, schemas)
        self._registered = reader if isinstance(reader, RegisteredReader) else None
        self._reader: Reader = reader
        cost, self._pricing = settings.cost, None
        if cost is not None:
            self._pricing = Pricing(
                settings, cost, records=self._types, elements=self._elements, schemas=schemas
            )
            if self._pricing.beside_records:
                types = {**self._types, **self._pricing.beside_records}
                both = reader_of(settings, types, kinds_of(types), schemas)
                self._reader = ReaderBeside(reader, both, first=len(self._types))
        self._explainer = self._of_elements = Explainer(
            self._types | derived, fields=len(settings.input.columns), most=self._most
        )
        self._exploder = None
        self._once, self._engine = None, _engine(columns)
        if settings.query.explosion is not None:
            beside = None if self._pricing is None else self._pricing.beside_elements
            self._exploder = Exploder(settings.query.explosion, self._elements, beside)
            self._of_elements = Explainer(self._elements | derived, most=self._most)
            self._once, self._engine = map(_engine, record_and_element_columns(columns, self._elements))
        self._repeated = settings.query.repeated_texts
        # Columns whose faults have to be known before a record is taken apart (see `_exploded`).
        used = [*settings.query.key_columns, *self._value_schema.names, *settings.query.lookup_key]
        for engine in (self._once, self._engine):
            used += [] if engine is None else engine.reads
        self._used = [name for name in dict.fromkeys(used) if name in columns.read]

    @property
    def needs_key(self) -> bool:
        """Whether the query's key is the raw record key."""
        return self._query.key == "@key"

    @property
    def needs_timestamp(self) -> bool:
        """Whether the event time is the record timestamp."""
        return self._query.time == "@timestamp"

    @property
    def lookup(self) -> LookupTable | None:
        """The rows of the lookup file. None without a lookup."""
        return self._lookup

    def parse(
        self,
        values: Sequence[bytes | None],
        *,
        keys: Sequence[bytes | None] | None = None,
        timestamps: Sequence[int] | Int64s | None = None,
    ) -> ParsedBlock:
        """Columns of n records. `keys` and `timestamps` (ms) have n entries where the query needs them.

        Values and keys that are `Payloads` are read where they lie. Others are gathered first.

        All values together must be below 2 GiB, and so must all keys (see `blocks`). Raises RegistryAway,
        before anything was done, if a schema that a record names cannot be had now. Raises SchemaRefused if
        the registry hands out no schema to us.
        """
        block = Block.of(values) if self._names else Block.unread(len(values))
        cells = self._reader.read(block) if self._names else Cells.of(self._kinds, 0)
        columns = self._columns(block, cells)
        if self._exploder is not None:
            return self._exploded(values, block, cells, columns, keys, timestamps)
        raw = self._raw_keys(keys) if self.needs_key else None
        time = None
        if self._lookup is not None:
            time = self._times_of(block, cells, timestamps)
            self._look_up(self._lookup, columns, raw)
        chosen = self._derive(self._engine, columns, self._explainer.places)
        if raw is None:
            key, sizes = self._keys_of(columns, chosen)
        else:
            self._need_raw(raw, columns.faults, chosen)
            key, sizes = raw, byte_lengths(raw)
        if time is None:
            time = self._times_of(block, cells, timestamps)
        batch = self._batch(columns)
        self._note_large(block.faults, sizes, batch)
        bad = self._explainer.explain(block, cells, notes=self._notes)
        if chosen is not None and chosen.all():
            chosen = None
        if not len(bad) and chosen is None:
            costs = self._costs_of(values, block, cells, columns)
            return ParsedBlock(np.arange(len(values)), time, key, batch, bad, costs=costs)
        good = block.faults.codes == 0
        of_tuples = good if chosen is None else good & chosen
        counts = None if chosen is None else chosen[good].astype(np.int64)
        # Last of all: a fault of a column that the cost reads is noted too late to count.
        costs = only(self._costs_of(values, block, cells, columns), of_tuples)
        return ParsedBlock(
            np.flatnonzero(good), time[good], *_only(key, batch, of_tuples), bad, counts, costs
        )

    def _look_up(self, table: LookupTable, columns: CellColumns, raw: pa.BinaryArray | None) -> None:
        """Add the columns of the lookup file.
        A record without a row is a fault, unless its columns are to be null.

        Everything else that can be wrong with what was read is noted before, so that such a record is
        unreadable.
        """
        for name in self._used:
            columns[name]  # reading a column notes its faults
        if self._query.where is None:
            self._need_outer(columns, raw, None)
        match = table.find([columns[name] for name in self._query.lookup_key])
        columns.update(match.columns)
        self._note_unmatched(match.missing & (columns.faults.codes == 0), columns)

    def _look_up_apart(
        self, table: LookupTable, columns: CellColumns, own: CellColumns, elements: Elements
    ) -> None:
        """As `_look_up`, for records that are taken apart.
        One element without a row makes the record unmatched.
        """
        records = np.arange(len(columns.faults.codes))
        each, where = (own, elements.parents) if self._query.lookup_of_elements else (columns, records)
        match = table.find([each[name] for name in self._query.lookup_key])
        each.update(match.columns)
        missing, broken, whole = (np.zeros(len(records), np.bool_) for _ in range(3))
        missing[where[match.missing]] = True
        broken[elements.parents[elements.faults.codes != 0]] = True
        # A record without elements has no tuples, so nothing of it can be wrong.
        whole[elements.parents] = True
        self._note_unmatched(missing & whole & ~broken & (columns.faults.codes == 0), columns)

    def _note_unmatched(self, missing: Bools, columns: CellColumns) -> None:
        """Count the records without a row, and note a fault of each if they are to be rejected.
        missing: shape (n,).
        """
        self.unmatched = int(np.count_nonzero(missing))
        if not self.unmatched or self._query.lookup is None or self._query.lookup.missing == "null":
            return
        key = self._query.lookup_key
        if self._query.lookup_of_elements:
            columns.faults.note(missing, NO_ROW_OF_ELEMENT)
        else:
            places = [self._explainer.places[name] for name in key]
            for name, place in zip(key, places, strict=True):
                columns.faults.note(_missing(columns[name], missing), NO_LOOKUP_KEY, column=place)
            columns.faults.note(missing, NO_ROW if len(key) == 1 else NO_ROW_OF_KEY, column=places[0])

    def _costs_of(
        self, values: Sequence[bytes | None], block: Block, cells: Cells, columns: Mapping[str, pa.Array]
    ) -> Float64s | None:
        """What each record costs. None if each costs 1."""
        if self._pricing is None:
            return None
        shared_block = block if self._names else None
        own = self._pricing.of_records(values, shared_block, cells, self._reader.written, columns)
        return self._pricing.numbers(own, columns, len(values))

    @property
    def _notes(self) -> Mapping[int, str]:
        """What reasons tell of the schema ids of the newest block."""
        return NO_NOTES if self._registered is None else self._registered.withheld

    def _exploded(
        self,
        values: Sequence[bytes | None],
        block: Block,
        cells: Cells,
        columns: CellColumns,
        keys: Sequence[bytes | None] | None,
        timestamps: Sequence[int] | Int64s | None,
    ) -> ParsedBlock:
        """What is parsed of records that are taken apart: each element is a tuple.

        If one element of a record cannot be read, the whole record is rejected.
        """
        assert self._exploder is not None
        time = self._times_of(block, cells, timestamps)
        raw = self._raw_keys(keys) if self.needs_key else None
        # Only records without a fault are taken apart, so every fault of the record itself has to be known
        # before. Whether it needs a key is known only when its elements are filtered.
        for name in self._used:
            if name not in self._elements:
                columns[name]  # reading a column notes its faults
        as_taken = block.copied() if self._pricing is not None and self._pricing.explodes else None
        elements = self._exploder.explode(block, cells, self._names, self._reader.written)
        own = CellColumns(
            self._elements,
            elements.block,
            elements.cells,
            written=self._exploder.written,
            csv=False,
        )
        for name in self._elements:
            own[name]  # an element that cannot be read makes the record unreadable, even if it is too large
        if self._lookup is not None:
            self._look_up_apart(self._lookup, columns, own, elements)
        unread = elements.faults.codes.copy()
        once = self._once_a_record(columns, raw, elements)
        raw = once.raw
        tuples = _Tuples(own, columns, self._of_each, elements.parents)
        chosen = self._derive(self._engine, tuples, self._of_elements.places)
        if chosen is None:
            chosen = np.ones(len(elements.parents), np.bool_)
        if once.chosen is not None:
            chosen = chosen & once.chosen[elements.parents]
        has_tuple = np.zeros(block.rows, np.bool_)
        has_tuple[elements.parents[chosen]] = True
        self._need_outer(columns, raw, has_tuple & ~once.cut)
        if raw is None:
            key, sizes = self._keys_of(tuples, chosen)
        else:
            key = raw.take(pa.array(elements.parents))
            sizes = byte_lengths(key)
        batch = self._batch(tuples)
        self._note_large(elements.faults, sizes, batch)
        # What follows from texts that were taken out is no fault of the elements, nor is what a record has
        # itself.
        cut = once.cut[elements.parents]
        elements.faults.codes[cut] = unread[cut]
        elements.faults.codes[block.faults.codes[elements.parents] != 0] = 0
        bad = self._explainer.explain(block, cells, notes=self._notes)
        wrong = elements.first_wrong()
        good = block.faults.codes == 0
        if wrong is not None:
            of_elements = self._of_elements.explain(wrong, elements.cells)
            good[elements.parents[of_elements.rows]] = False
            bad = bad.and_others(of_elements.of_records(elements.parents, elements.places))
        of_tuples = good[elements.parents] & chosen
        counts = np.bincount(elements.parents[of_tuples], minlength=len(good))[good]
        costs = only(
            self._costs_of_elements(values, block, cells, elements, as_taken, columns, tuples), of_tuples
        )
        return ParsedBlock(
            np.flatnonzero(good), time[good], *_only(key, batch, of_tuples), bad, counts, costs
        )

    def _costs_of_elements(
        self,
        values: Sequence[bytes | None],
        block: Block,
        cells: Cells,
        elements: Elements,
        as_taken: Block | None,
        columns: CellColumns,
        tuples: _Tuples,
    ) -> Float64s | None:
        """What each element costs. None if each costs 1.

        as_taken: the records with the faults that they had when they were taken apart.
        """
        if self._pricing is None:
            return None
        assert self._exploder is not None
        parents = elements.parents
        own = self._pricing.of_records(values, block, cells, self._reader.written, columns)
        if not self._pricing.each:
            return self._pricing.numbers(own, columns, len(values))[parents]
        own = {name: column.take(pa.array(parents)) for name, column in own.items()}
        own |= self._pricing.of_elements(elements, self._exploder.written)
        if as_taken is not None:
            own |= self._pricing.taken_apart(as_taken, cells, self._names, self._reader.written)
        return self._pricing.numbers(own, tuples, len(parents))

    def _once_a_record(
        self, columns: CellColumns, raw: pa.BinaryArray | None, elements: Elements
    ) -> _RecordColumns:
        """Compute what reads the records alone, before their elements repeat it.

        A record whose elements would repeat too much text is a fault. Its texts are taken out, and become
        null.
        """
        counts = np.bincount(elements.parents, minlength=len(columns.faults.codes))
        # A record without elements has no tuples, so nothing of it can be wrong.
        chosen = self._derive(self._once, columns, self._explainer.places, within=counts > 0)
        texts = {name: columns[name] for name in self._repeated} | ({} if raw is None else {"@key": raw})
        repeated = sum(map(byte_lengths, texts.values())) * counts
        large = repeated > REPEATED_BYTES
        if not large.any():
            return _RecordColumns(chosen, raw, large)
        broken = np.zeros(len(counts), np.bool_)
        broken[elements.parents[elements.faults.codes != 0]] = True
        columns.faults.note(large & ~broken, LARGE_REPEATED, at=repeated)
        cut = {name: pc.if_else(pa.array(large), None, column) for name, column in texts.items()}
        raw = cut.pop("@key", None)
        columns.update(cut)
        return _RecordColumns(chosen, raw, large)

    def _batch(self, by_name: dict[str, pa.Array]) -> pa.RecordBatch:
        """The columns that are aggregated."""
        # A safe cast raises for a whole number that a double does not hold exactly. No value may stop a
        # query.
        columns = [pc.cast(by_name[field.name], field.type, safe=False) for field in self._value_schema]
        return pa.RecordBatch.from_arrays(columns, schema=self._value_schema)

    def _columns(self, block: Block, cells: Cells) -> CellColumns:
        """The columns of the records. Each is read when it is first asked for."""
        return CellColumns(self._types, block, cells, written=self._reader.written, csv=self._csv)

    def _derive(
        self,
        engine: Engine | None,
        columns: CellColumns | _Tuples,
        places: Mapping[str, int],
        *,
        within: Bools | None = None,
    ) -> Bools | None:
        """Add the derived columns of this engine.

        Returns for which rows its condition is true, None if it has none. within: the rows that can be wrong.
        """
        if engine is None:
            return None
        derived, wrong, chosen = engine.compute(
            {name: columns[name] for name in engine.reads}, len(columns.faults.codes)
        )
        for name, rows in wrong.items():
            columns.faults.note(rows if within is None else rows & within, NOT_DERIVED, column=places[name])
        columns.update(derived)
        return chosen

    def _raw_keys(self, keys: Sequence[bytes | None] | None) -> pa.BinaryArray:
        """The record keys."""
        assert keys is not None
        return keys.column() if isinstance(keys, Payloads) else pa.array(keys, pa.binary())

    def _need_raw(self, raw: pa.BinaryArray, faults: Faults, keyed: Bools | None) -> None:
        """Note a fault wherever the record key is null. keyed: as of `_need`."""
        if raw.null_count:
            faults.note(_missing(raw, keyed), NO_KEY)

    def _need_outer(self, columns: CellColumns, raw: pa.BinaryArray | None, keyed: Bools | None) -> None:
        """Note a fault of each record that is taken apart and lacks what its tuples share of their key.

        raw: record keys, or None if the query has other keys. keyed: as of `_need`.
        """
        if raw is not None:
            self._need_raw(raw, columns.faults, keyed)
        for name in self._query.key_columns:
            if name in self._types and name not in self._elements:
                self._need(columns, name, self._explainer.places, keyed)

    def _keys_of(self, columns: CellColumns | _Tuples, keyed: Bools | None) -> tuple[pa.BinaryArray, Int64s]:
        """The keys that the key columns make, and their sizes in bytes. Several columns become a JSON array.

        A key with a column that is too long for any key is null. Its size is that of the longest column. A
        key that lacks a column has size 0. keyed: as of `_need`.
        """
        places = self._of_elements.places
        parts = [columns[name] for name in self._query.key_columns]
        for name in self._query.key_columns:
            if name in places:  # `_need_outer` looks at a column of the record beside its elements
                self._need(columns, name, places, keyed)
        if len(parts) == 1:
            key = parts[0].cast(pa.string()).cast(pa.binary())
            return key, byte_lengths(key)
        most = self._query.max_key_bytes
        key = arrays([without_long(part, most) for part in parts]).cast(pa.binary())
        sizes = byte_lengths(key)
        for part in parts:
            if pa.types.is_string(part.type):
                np.maximum(sizes, byte_lengths(part), out=sizes)
        for part in parts:
            if part.null_count:
                sizes[_missing(part, None)] = 0
        return key, sizes

    def _note_large(self, faults: Faults, keys: Int64s, batch: pa.RecordBatch) -> None:
        """Note a fault of each tuple that is too large. keys: the sizes of the keys in bytes."""
        values = texts_of(batch.columns)
        most_key, most_values = self._most
        note_large(faults, keys, values, most_key=most_key, most_values=most_values)

    def _need(
        self, columns: CellColumns | _Tuples, name: str, places: Mapping[str, int], keyed: Bools | None
    ) -> None:
        """Note a fault wherever this column of the key is null: there is no key then.

        keyed: the rows that need a key, because the filter keeps them. None: all rows. Shape (n,).
        """
        column = columns[name]
        if column.null_count:
            columns.faults.note(_missing(column, keyed), NO_KEY_COLUMN, column=places[name])

    def _times_of(self, block: Block, cells: Cells, timestamps: Sequence[int] | Int64s | None) -> Int64s:
        """Event times in ms, one per record. A record without a usable one is a fault."""
        faults = block.faults
        if self.needs_timestamp:
            assert timestamps is not None
            stamps = np.asarray(timestamps, dtype=np.int64)
            faults.note(stamps < 0, NO_TIMESTAMP)
            faults.note(stamps > MAX_TIME, FAR_TIMESTAMP, at=stamps)
            if self._dated:
                faults.note(undated(stamps), FAR_TIMESTAMP, at=stamps)
            return stamps
        column = self._names.index(self._query.time)
        faults.note(~cells.present(column), NO_TIME_COLUMN, column=column)
        unit = self._query.time_unit
        if unit == "iso":
            times, wrong = from_iso(texts(block.data, cells, column, self._reader.written))
            faults.note(wrong, NO_TIME, column=column)
        elif unit == "s":
            times, wrong = from_seconds(cells.floats[column])
            faults.note(wrong, FAR_TIME, column=column)
        else:
            whole = cells.ints[column]
            times = np.floor_divide(whole, 1000) if unit == "us" else whole
            faults.note(far(times), FAR_TIME, column=column)
        if self._dated:
            faults.note(undated(times), FAR_TIME, column=column)
        return times


class _RecordColumns(NamedTuple):
    """What was computed once a record."""

    chosen: Bools | None
    """For which records the part of `query.where` that reads the record alone is true.
    None if there is no such part."""
    raw: pa.BinaryArray | None
    """Record keys. None if the query has other keys."""
    cut: Bools
    """From which records the texts were taken out."""


class _Tuples(dict[str, pa.Array]):
    """Columns of tuples by name: those of the elements, and those of the records that the elements come from.

    names: of the elements' own columns. parents: the record of each element.
    """

    def __init__(self, own: CellColumns, outer: CellColumns, names: Container[str], parents: Int64s) -> None:
        super().__init__()
        self._own, self._outer, self._names = own, outer, names
        self._parents = pa.array(parents)

    @property
    def faults(self) -> Faults:
        """The faults of the elements."""
        return self._own.faults

    def __missing__(self, name: str) -> pa.Array:
        own = name in self._names
        column = self[name] = self._own[name] if own else self._outer[name].take(self._parents)
        return column


def _missing(column: pa.Array, among: Bools | None) -> Bools:
    """Which of these rows are null. among: the rows that are looked at, None for all. Shape (n,)."""
    missing: Bools = column.is_null().to_numpy(zero_copy_only=False)
    return missing if among is None else missing & among


def _only(keys: pa.BinaryArray, values: pa.RecordBatch, keep: Bools) -> tuple[pa.BinaryArray, pa.RecordBatch]:
    """The keys and values of the tuples for which `keep` is true."""
    mask = pa.array(keep)
    # A query that only counts has no value columns, and so nothing to filter.
    return keys.filter(mask), values.filter(mask) if values.num_columns else values


def _engine(columns: Columns) -> Engine | None:
    """What computes the derived columns and the condition. None if there are none."""
    return Engine(columns) if columns.derived or columns.where is not None else None
