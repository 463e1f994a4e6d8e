"""The plan of a query: the partial columns of its aggregates, computed together over Arrow tables.

    rows --combine--> partials per (pane, key) --merge--> partials per key --finish--> results

`merge` groups by the columns `pane` and `key`, or by `key` alone if the tables have no column `pane`. So one
function merges workers within a pane, and panes within a window.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.aggregates.aggregate import ROWS, ROWS_COLUMN, PartialColumn
from evenflow.aggregates.kinds.count import COUNT
from evenflow.aggregates.partials.grouping import Grouping, group_rows
from evenflow.aggregates.partials.reductions import reduce_column, subtract_column
from evenflow.aggregates.registry import aggregate
from evenflow.aggregates.result_expressions import Output, ResultExpression, condition, expressed
from evenflow.aggregates.size_limits import Room, is_text
from evenflow.errors import ConfigError
from evenflow.grammar.aggregate_spec import HIDDEN_COLUMN, AggregateSpec
from evenflow.grammar.arrow_types import arrow_type
from evenflow.grammar.column_types import ColumnType
from evenflow.grammar.emission import Emission
from evenflow.keys import hash_keys
from evenflow.numeric.arrays import Int64s, one_chunk, viewed
from evenflow.text.spelling import did_you_mean

_PANE = pa.field("pane", pa.int64())
_KEY = pa.field("key", pa.binary())
_WIDE_KEY = pa.field("key", pa.large_binary())
"""Key column of partial tables.
The keys of one window may have more than the 2 GiB that a binary column holds.
"""
_TIME = pa.field("time", pa.int64())
_VALUE = "v:"
"""Prefix of value columns in frames, so that a value column may be called "pane", "key" or "time"."""
TUPLES, TUPLES_OF_ALL = HIDDEN_COLUMN, f"{HIDDEN_COLUMN}_of_all"
"""Result columns that count tuples, so that `verify` sees a lost tuple whatever the aggregates are.

Rule "a gap is noticed".
"""


class QueryShape(Protocol):
    """What a plan is made of: the settings
    of a query (`evenflow.settings.Query` says what each of them means).
    """

    @property
    def aggregates(self) -> Mapping[str, AggregateSpec]: ...
    @property
    def routed_for(self) -> Sequence[AggregateSpec]: ...
    @property
    def value_columns(self) -> Mapping[str, ColumnType]: ...
    @property
    def own_key(self) -> str | None: ...
    @property
    def having(self) -> str | None: ...
    @property
    def emission(self) -> Emission: ...
    @property
    def emit_from(self) -> int | None: ...
    @property
    def window(self) -> int: ...
    @property
    def slide_ms(self) -> int: ...
    @property
    def slides_per_pane(self) -> int: ...
    @property
    def max_state_bytes(self) -> int: ...
    @property
    def max_result_bytes(self) -> int: ...


@dataclass(frozen=True, kw_only=True)
class AggregatePlan:
    """How the aggregates of one query are computed in two steps. Make it with `AggregatePlan.of`."""

    window: int
    """Length of the window, ms."""
    slide: int
    """Slide of the window, ms."""
    slides_per_pane: int
    """How many panes of the frames are one pane here.
    It is above 1 for a view whose slide is longer than its query's."""
    timed: bool
    """Whether frames hold event times, because an aggregate of the query or of one
    of its views asks for them."""
    own_key: str | None
    """The value column that a view groups by in place of the key in frames, None for that key."""
    having: ResultExpression | None
    """The condition for rows of a summary to come out, None for all."""
    emit_from: int | None
    """Event time (ms) from which on windows are emitted, None for all."""
    emission: Emission
    """Which rows of a window come out."""
    outputs: tuple[Output, ...]
    """The result columns, in order."""
    values: tuple[tuple[str, pa.DataType], ...]
    """Name and type of each value column of a frame, in order."""
    partials: tuple[PartialColumn, ...]
    """The partial columns, each once. `rows` is the first."""

    @classmethod
    def of(cls, query: QueryShape) -> AggregatePlan:
        """The plan of this query.

        Raises ConfigError for an unknown aggregate, for a column that an aggregate does not take, and for an
        `emit` that orders by something without an order.
        """
        kinds = query.value_columns
        outputs = _outputs(query, kinds, _room(query, kinds))
        partials = {ROWS: ROWS_COLUMN}
        for output in outputs:
            for partial in output.aggregate.partials(output.call):
                # Two aggregates may share a partial column, but one name must not stand for two of them.
                assert partials.setdefault(partial.name, partial) == partial, partial.name
        emission = query.emission
        _check_order(emission, outputs)
        return cls(
            window=query.window,
            slide=query.slide_ms,
            slides_per_pane=query.slides_per_pane,
            timed=any(
                _asks_for_times(_output(str(spec), spec, kinds))
                for spec in query.routed_for
                if spec.expression is None
            ),
            own_key=query.own_key,
            having=None if query.having is None else condition(query.having, outputs),
            emit_from=query.emit_from,
            emission=emission,
            outputs=tuple(outputs),
            values=tuple((name, arrow_type(type_)) for name, type_ in kinds.items()),
            partials=tuple(partials.values()),
        )

    @property
    def panes_per_window(self) -> int:
        """Number of panes in a window."""
        return self.window // self.slide

    @property
    def invertible(self) -> bool:
        """Whether every partial column can be subtracted exactly, so that panes can be taken off totals."""
        return all(partial.invertible for partial in self.partials)

    @property
    def grows(self) -> bool:
        """Whether a result row has texts or lists, whose size is bounded by settings alone."""
        return any(_grows(type_) for type_ in self.output_schema.types)

    @property
    def frame_schema(self) -> pa.Schema:
        """Columns of a frame: pane, key, the time (ms) if the plan is `timed`,
        and value columns with prefixed names.
        """
        timed = [_TIME] if self.timed else []
        return pa.schema(
            [_PANE, _KEY, *timed, *(pa.field(_VALUE + name, type_) for name, type_ in self.values)]
        )

    @property
    def partial_schema(self) -> pa.Schema:
        """Columns of a partial table over several panes: pane, key, partial columns."""
        return pa.schema([_PANE, *self.key_schema])

    @property
    def key_schema(self) -> pa.Schema:
        """Columns of a partial table of one pane, node or window: key, partial columns."""
        return pa.schema([_WIDE_KEY, *(pa.field(partial.name, partial.type) for partial in self.partials)])

    @property
    def result_schema(self) -> pa.Schema:
        """Columns of a result table: window_start and window_end (ms), key, then those of `beside_key`."""
        bounds = [pa.field("window_start", pa.int64()), pa.field("window_end", pa.int64())]
        return pa.schema([*bounds, _KEY, *self.beside_key])

    @property
    def beside_key(self) -> pa.Schema:
        """Columns of a result row behind its key: `emission_schema`, `output_schema`, `tuples_schema`."""
        return pa.schema([*self.emission_schema, *self.output_schema, *self.tuples_schema])

    @property
    def emission_schema(self) -> pa.Schema:
        """Columns that `emit` adds to a result row: some of revision, gone and rank."""
        types = {"revision": pa.int64(), "gone": pa.bool_(), "rank": pa.int64()}
        return pa.schema([(name, types[name]) for name in self.emission.columns])

    @property
    def tuples_schema(self) -> pa.Schema:
        """Columns that count tuples for `verify`.

        `_tuples`: of the row's key in its window. It is left out where a `count` is among the aggregates,
        which is the same number. `_tuples_of_all`: of all keys of the window. A row has it where not every
        key has a row. With `changes` it counts only the keys that the reducer keeps with the row's key.
        """
        counted = any(function is COUNT and not call.column for _, function, call in self.outputs)
        names = [*(() if counted else (TUPLES,)), *(() if self.emission.mode == "all" else (TUPLES_OF_ALL,))]
        return pa.schema([(name, pa.int64()) for name in names])

    @property
    def output_schema(self) -> pa.Schema:
        """The aggregates' result columns alone."""
        return pa.schema([(label, function.result_type(call)) for label, function, call in self.outputs])

    def combine(self, rows: pa.Table) -> pa.Table:
        """Partials per (pane, key) of these tuples (columns: frame_schema), in order of first appearance.

        Tuples have the panes and keys of frames. Partials have this plan's own panes (see `slides_per_pane`)
        and keys: a tuple without its `own_key` is in no partial.
        """
        if self.own_key is not None:
            rows = _regrouped(rows, _VALUE + self.own_key)
        if self.slides_per_pane > 1:
            panes = np.floor_divide(rows["pane"].to_numpy(), self.slides_per_pane)
            rows = rows.set_column(0, _PANE, pa.array(panes))
        return self._grouped(
            rows, self.partial_schema, lambda partial, groups: _combined(rows, partial, groups)
        )

    def merge(self, tables: Sequence[pa.Table]) -> pa.Table:
        """One row of partials per (pane, key), or per key if the tables have no pane column.

        Rows are merged in the order of the tables, and this order determines float sums. Without any table
        the result is an empty table of `partial_schema`.
        """
        with_pane = bool(tables) and "pane" in tables[0].schema.names
        schema = self.partial_schema if with_pane or not tables else self.key_schema
        if len(tables) == 1 and tables[0].num_rows <= 1:
            return tables[0].select(schema.names)
        joined = (
            pa.concat_tables([table.select(schema.names) for table in tables])
            if tables
            else schema.empty_table()
        )
        return self._grouped(
            joined,
            schema,
            lambda partial, groups: reduce_column(partial.merge, one_chunk(joined[partial.name]), groups),
        )

    def evict(self, totals: pa.Table, expired: Sequence[pa.Table], arrived: Sequence[pa.Table]) -> pa.Table:
        """Totals per key, less the expired panes, plus the arrived panes. Keys without tuples are dropped.

        The plan must be invertible, and the totals must hold the panes that expire.
        """
        assert self.invertible
        if not expired:
            return self.merge([totals, *arrived])
        names = self.key_schema.names
        joined = pa.concat_tables([table.select(names) for table in (totals, *arrived, *expired)])
        # One grouping serves both: the rows from `stays` on are subtracted.
        stays = joined.num_rows - sum(table.num_rows for table in expired)
        moved = self._grouped(
            joined,
            self.key_schema,
            lambda partial, groups: subtract_column(
                partial.merge, one_chunk(joined[partial.name]), groups, stays
            ),
        )
        return moved.filter(pc.not_equal(moved[ROWS], 0))

    def finish(self, table: pa.Table) -> pa.Table:
        """The aggregates' results of each row of a partial table (columns: output_schema)."""
        schema = self.output_schema
        columns = [function.finish(table, call) for _, function, call in self.outputs]
        narrow = [_narrow(column, field.type) for column, field in zip(columns, schema, strict=True)]
        return pa.Table.from_arrays(narrow, schema=schema)

    def tuples(self, table: pa.Table, of_all: int | None = None) -> list[pa.Array | pa.ChunkedArray]:
        """Columns of `tuples_schema` for each row of a partial table.

        of_all: tuples of all keys of the window. None: there is no such column.
        """
        columns = [table[ROWS]] if TUPLES in self.tuples_schema.names else []
        if of_all is not None:
            columns.append(pa.repeat(pa.scalar(of_all, pa.int64()), table.num_rows))
        return columns

    def unfit(self, table: pa.Table) -> int:
        """How many values of `finish(table)` are null
        because they do not fit (a sum in int64, a list in its room).
        """
        return sum(function.unfit(table, call) for _, function, call in self.outputs)

    def _grouped(
        self, rows: pa.Table, schema: pa.Schema, reduced: Callable[[PartialColumn, Grouping], pa.Array]
    ) -> pa.Table:
        """Rows grouped by pane and key, as `schema` has them. reduced: makes each partial column."""
        if rows.num_rows == 0:
            return schema.empty_table()
        keys = one_chunk(rows["key"])
        panes = _int64s(one_chunk(rows["pane"])) if "pane" in schema.names else None
        groups = group_rows(keys, panes, hashes=hash_keys(keys))
        columns = [] if panes is None else [pa.array(panes[groups.first])]
        columns.append(keys.take(pa.array(groups.first)).cast(_WIDE_KEY.type))
        columns += [reduced(partial, groups) for partial in self.partials]
        return pa.Table.from_arrays(columns, schema=schema)


def _regrouped(rows: pa.Table, column: str) -> pa.Table:
    """The tuples that have a value in this column, with the value as their key: text in UTF-8, as keys of
    one column are.
    """
    rows = rows.filter(pc.is_valid(rows[column]))
    keys = rows[column].cast(pa.string()).cast(pa.binary())
    return rows.set_column(rows.schema.get_field_index("key"), _KEY, keys)


def _check_order(emission: Emission, outputs: Sequence[Output]) -> None:
    """Raise ConfigError if `top` orders by no result column, or by a column whose values have no order."""
    if emission.mode != "top":
        return
    types = {label: function.result_type(call) for label, function, call in outputs}
    ordered = [label for label, type_ in types.items() if _has_order(type_)]
    column = emission.column
    if column in ordered:
        return
    description = f"a {types[column]}" if column in types else "no result column"
    raise ConfigError(
        f"emit = '{emission}': {column!r} is {description}",
        hint=(
            "order by an aggregate that gives numbers, decimals, dates or text:"
            f" {', '.join(ordered) or 'there is none'}{did_you_mean(column, ordered)}"
        ),
    )


def _has_order(type_: pa.DataType) -> bool:
    tests = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_decimal,
        pa.types.is_date,
        pa.types.is_string,
    )
    return any(test(type_) for test in tests)


def _output(
    label: str, spec: AggregateSpec, kinds: Mapping[str, ColumnType], room: Room | None = None
) -> Output:
    function = aggregate(spec.function)
    # An aggregate without a column is called for no type: any type will do.
    kind = kinds[spec.column] if spec.column is not None else "int64"
    call = function.call(label, spec, kind)
    return Output(label, function, call if room is None else replace(call, room=room))


def outputs_of(query: QueryShape) -> list[Output]:
    """The result columns in the order of the settings: aggregates, and expressions over these."""
    return _outputs(query, query.value_columns, None)


def _outputs(query: QueryShape, kinds: Mapping[str, ColumnType], room: Room | None) -> list[Output]:
    specs = query.aggregates
    outputs = {
        label: _output(label, spec, kinds, room) for label, spec in specs.items() if spec.expression is None
    }
    return [
        outputs[label] if spec.expression is None else expressed(label, spec.expression, outputs)
        for label, spec in specs.items()
    ]


def _room(query: QueryShape, kinds: Mapping[str, ColumnType]) -> Room:
    """What one column may take: the columns of a kind share what the settings allow evenly."""
    outputs = _outputs(query, kinds, None)
    partials = {
        partial.name: partial for output in outputs for partial in output.aggregate.partials(output.call)
    }
    sets = sum(partial.shares_state for partial in partials.values())
    lists = sum(_grows(output.aggregate.result_type(output.call)) for output in outputs)
    return Room(state=query.max_state_bytes // max(sets, 1), result=query.max_result_bytes // max(lists, 1))


def _grows(type_: pa.DataType) -> bool:
    """Whether results of this type have no size of their own: texts and lists."""
    return is_text(type_) or pa.types.is_list(type_)


def _asks_for_times(output: Output) -> bool:
    return any(partial.timed for partial in output.aggregate.partials(output.call))


def _combined(rows: pa.Table, partial: PartialColumn, groups: Grouping) -> pa.Array:
    values = None if partial.source is None else one_chunk(rows[_VALUE + partial.source])
    if partial.timed:
        values = pa.StructArray.from_arrays([one_chunk(rows[_TIME.name]), values], ["time", "value"])
    return reduce_column(partial.combine, values, groups)


def _narrow(column: pa.Array | pa.ChunkedArray, type_: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """The column with 32-bit offsets for texts and lists. A slice of a window is small enough for them.

    The values are copied first, because Arrow's `cast` also looks at what lies before a slice.
    """
    if column.type == type_:
        return column
    return column.take(pa.array(np.arange(len(column)))).cast(type_)


def _int64s(column: pa.Array) -> Int64s:
    return viewed(column.buffers()[1], np.int64, column.offset, len(column))
