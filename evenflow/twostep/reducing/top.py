"""`emit = "top(K, COLUMN)"`: of each window the K rows that are first by a column, over all buckets.

Each bucket sends its own first K rows of a window (`leaders`) to one task. The window's first K rows are
among the leaders of all buckets. The task merges the leaders, and emits a window once every bucket has closed
it. Buckets may close a window in different micro-batches. So each bucket says in every micro-batch how far it
has closed, even if it has no rows. At most K rows of each window wait.

The order of rows: by value. NaN comes after all numbers, and null comes last. Equal values are ordered by the
bytes of their keys.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.aggregates import AggregatePlan
from evenflow.aggregates.plan import TUPLES_OF_ALL
from evenflow.grammar.emission import Emission
from evenflow.numeric.arrays import Int64s, one_chunk
from evenflow.twostep.arrival_times import count_arrivals
from evenflow.twostep.layout import Layout
from evenflow.twostep.reducing.rows_out import narrow_keys, sliced
from evenflow.twostep.reducing.state_blobs import BucketState, table_bytes, table_of
from evenflow.twostep.tally import NO_BATCH, Tally, Work
from evenflow.windows import NO_MARK, panes_closed_by, window_bounds

_SAID, STAND, _ROWS = b"evenflow", "stand", "rows"
_PANE, _UNFIT, _KEY, _VALUES = range(4)
"""Places of the columns in a table of leaders. Their names do not identify them: an aggregate may be
called "key", too.
"""


@dataclass(frozen=True, kw_only=True)
class BucketReport:
    """What a bucket says after the leaders of the windows that it has closed in one micro-batch."""

    bucket: int
    """The bucket that reports, by its number."""
    closed: int
    """The bucket's panes below this one are closed."""
    arrival_times: list[tuple[int, int | None]] = field(default_factory=list)
    """For each window with rows: its last pane, and when its newest tuple came (ms) or None."""
    tuples: list[tuple[int, int]] = field(default_factory=list)
    """For each window with rows: its last pane, and how many tuples all keys of the bucket have in it."""


def leaders(plan: AggregatePlan, table: pa.Table, pane: int) -> Iterator[pa.Table]:
    """The first K rows of a window of one bucket as results (leaders_schema), in slices.

    table: all partials of the window in this bucket. pane: the window's last pane.
    """
    function, call = next(
        (function, call) for label, function, call in plan.outputs if label == plan.emission.column
    )
    first = _first(plan.emission, one_column(function.finish(table, call)), one_column(table["key"]))
    for rows in sliced(table.take(pa.array(first))):
        size = rows.num_rows
        unfit = np.zeros(size, np.int64)
        if plan.unfit(rows):  # rare, so only then each row is asked
            unfit[:] = [plan.unfit(rows.slice(row, 1)) for row in range(size)]
        columns = [
            pa.array(np.full(size, pane, np.int64)),
            pa.array(unfit),
            narrow_keys(rows["key"].chunk(0)),
        ]
        values = [*plan.finish(rows).columns, *plan.tuples(rows)]
        yield pa.Table.from_arrays([*columns, *values], schema=leaders_schema(plan))


def leaders_schema(plan: AggregatePlan) -> pa.Schema:
    """Columns of a table of leaders: last pane of the window, number of values that do not fit,
    key, aggregates, `_tuples`.

    `_tuples` is there if `AggregatePlan.tuples_schema` has it.
    """
    own = [field for field in plan.tuples_schema if field.name != TUPLES_OF_ALL]
    columns = [("pane", pa.int64()), ("unfit", pa.int64()), ("key", pa.binary())]
    return pa.schema([*columns, *plan.output_schema, *own])


def told_leaders(
    plan: AggregatePlan, tables: Iterable[pa.Table], report: Callable[[], BucketReport]
) -> Iterator[bytes]:
    """What a bucket sends to the task that merges: tables of leaders, then an empty table that carries what
    the bucket says.

    report: called after the last table, because only then it is known.
    """
    for table in tables:
        yield table_bytes(table)
    yield report_bytes(report(), leaders_schema(plan))


def report_bytes(report: BucketReport, schema: pa.Schema) -> bytes:
    """What a bucket says, as an empty table of this schema behind the tables that it sends."""
    text = json.dumps(vars(report), separators=(",", ":"))
    return table_bytes(schema.empty_table().replace_schema_metadata({_SAID: text}))


def report_in(table: pa.Table) -> BucketReport | None:
    """What a bucket says, if this is the table that carries it (`report_bytes`)."""
    text = (table.schema.metadata or {}).get(_SAID)
    return None if text is None else BucketReport(**json.loads(text))


def merge_leaders(
    plan: AggregatePlan,
    layout: Layout,
    state: BucketState,
    sent: Iterable[bytes],
    *,
    on_tally: Callable[[Tally], object] | None = None,
) -> Iterator[pa.Table]:
    """Results (plan.result_schema) of the windows that every bucket has closed by now, in window order.

    sent: what buckets have sent in this micro-batch (`told_leaders`). Buckets come in any order, and what one
    bucket sent comes in one piece. The state is saved when the iterator is exhausted. on_tally: called once
    at the end with what was emitted.
    """
    stand = MergeProgress.load(state)
    waiting = [_rows(state, plan)]
    for table in map(table_of, sent):
        report = report_in(table)
        if report is None:
            waiting.append(table)
        else:
            stand.hears(report)
    rows = pa.concat_tables([table.replace_schema_metadata(None) for table in waiting]).combine_chunks()
    panes = rows.column(_PANE).to_numpy()
    due = stand.closed_by_all(layout.buckets, plan)
    emitted: list[tuple[int | None, int]] = []
    unfit, end, leaders = 0, None, []
    for pane in np.unique(panes).tolist():
        first = first_rows(plan, rows.filter(pa.array(panes == pane)))
        if pane >= due:
            leaders.append(first)  # no more than K rows: what cannot be among the first K is dropped here
            continue
        bounds = window_bounds(pane, window=plan.window, slide=plan.slide)
        end = bounds[1]
        unfit += pc.sum(first.column(_UNFIT)).as_py()
        emitted.append((stand.arrival_times.pop(pane, None), first.num_rows))
        yield ranked(plan, first, bounds, stand.tuples.pop(pane))
    tally = tally_of_windows(emitted, unfit=unfit, end=end)
    stand.save(state)
    if leaders:
        state.put(_ROWS, table_bytes(pa.concat_tables(leaders)))
    elif waiting[0].num_rows:  # `delete` takes only a name that exists
        state.delete(_ROWS)
    if on_tally is not None:
        on_tally(tally)


def tally_of_windows(emitted: list[tuple[int | None, int]], *, unfit: int, end: int | None) -> Tally:
    """What the task that merges has done in a micro-batch.

    emitted: by window, time (ms) when its newest tuple came, and how many rows came out. end: of the newest
    window, ms.
    """
    return Tally(
        rows=sum(count for _, count in emitted),
        unfit=unfit,
        closed={0: len(emitted)},
        emitted={} if end is None else {0: end},
        work={("reduce", NO_BATCH): Work(emitted=count_arrivals(emitted))},
    )


@dataclass(kw_only=True)
class MergeProgress:
    """What the task that merges remembers besides rows."""

    closed: dict[int, int] = field(default_factory=dict)
    """By bucket, the pane below which it has closed all."""
    arrival_times: dict[int, int | None] = field(default_factory=dict)
    """By last pane of a window that waits: when its newest tuple came, ms.
    None if a bucket does not know it."""
    tuples: dict[int, int] = field(default_factory=dict)
    """By last pane of a window that waits: how many tuples the buckets have told so far."""

    @classmethod
    def load(cls, state: BucketState) -> MergeProgress:
        data = state.get(STAND)
        fields = {} if data is None else json.loads(data)
        numbers = {name: {int(at): value for at, value in pairs} for name, pairs in fields.items()}
        return cls(
            closed=numbers.get("closed", {}),
            arrival_times=numbers.get("came", {}),  # the state calls them so
            tuples=numbers.get("tuples", {}),
        )

    def save(self, state: BucketState) -> None:
        numbers: Mapping[str, Mapping[int, int | None]] = {
            "closed": self.closed,
            "came": self.arrival_times,
            "tuples": self.tuples,
        }
        fields = {name: sorted(pairs.items()) for name, pairs in numbers.items()}
        state.put(STAND, json.dumps(fields, separators=(",", ":")).encode())

    def hears(self, report: BucketReport) -> None:
        self.closed[report.bucket] = report.closed
        for pane, arrival_time in report.arrival_times:
            earlier = self.arrival_times.get(pane, arrival_time)
            newest = None if arrival_time is None or earlier is None else max(arrival_time, earlier)
            self.arrival_times[pane] = newest
        for pane, tuples in report.tuples:
            self.tuples[pane] = self.tuples.get(pane, 0) + tuples

    def closed_by_all(self, buckets: int, plan: AggregatePlan) -> int:
        """All panes below the one that is returned are closed in every bucket."""
        if len(self.closed) < buckets:  # a bucket that has never spoken has closed nothing
            return int(panes_closed_by(NO_MARK, plan.slide))
        return min(self.closed.values())


def _rows(state: BucketState, plan: AggregatePlan) -> pa.Table:
    data = state.get(_ROWS)
    return leaders_schema(plan).empty_table() if data is None else table_of(data)


def first_rows(plan: AggregatePlan, rows: pa.Table) -> pa.Table:
    values = one_column(rows.column(_VALUES + plan.output_schema.get_field_index(plan.emission.column)))
    return rows.take(pa.array(_first(plan.emission, values, one_column(rows.column(_KEY)))))


def ranked(plan: AggregatePlan, rows: pa.Table, bounds: tuple[int, int], of_all: int) -> pa.Table:
    size = rows.num_rows
    times = [pa.array(np.full(size, bound, np.int64)) for bound in bounds]
    rank = pa.array(np.arange(1, size + 1))
    totals = pa.array(np.full(size, of_all, np.int64))
    columns = [*times, rows.column(_KEY), rank, *rows.columns[_VALUES:], totals]
    return pa.Table.from_arrays(columns, schema=plan.result_schema)


def _first(emission: Emission, values: pa.Array, keys: pa.Array) -> Int64s:
    """Numbers of the first K rows, in order, shape (up to K,)."""
    some = _contenders(emission, values)
    if some is not None:
        values, keys = values.take(pa.array(some)), keys.take(pa.array(some))
    order = pc.sort_indices(
        pa.table({"value": values, "key": keys}),
        sort_keys=[("value", "ascending" if emission.ascending else "descending"), ("key", "ascending")],
    )
    first: Int64s = order.to_numpy()[: emission.rows].astype(np.int64)
    return first if some is None else some[first]


def _contenders(emission: Emission, values: pa.Array) -> Int64s | None:
    """Numbers of the rows that may be among the first K, found in O(rows) without a sort.
    None: any row may be.
    """
    if len(values) <= 4 * emission.rows or not (
        pa.types.is_int64(values.type) or pa.types.is_float64(values.type)
    ):
        return None
    # A value that equals itself is neither null nor NaN. With more than K such values, none of the others can
    # be first.
    number_rows = np.flatnonzero(pc.fill_null(pc.equal(values, values), False).to_numpy(zero_copy_only=False))
    if len(number_rows) <= emission.rows:
        return None
    own = values.take(pa.array(number_rows)).to_numpy()
    place = emission.rows - 1 if emission.ascending else len(own) - emission.rows
    # Rows that tie with the K-th value stay: the bytes of their keys decide.
    last = np.partition(own, place)[place]
    return number_rows[own <= last if emission.ascending else own >= last]


def one_column(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column, chunked or not, as one array."""
    return one_chunk(column) if isinstance(column, pa.ChunkedArray) else column
