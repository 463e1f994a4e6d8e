"""Summaries: the rows of closed windows of several plans,
aggregated once more (`evenflow.settings.sections.query.summaries`).

Each bucket of each part closes its windows as ever. It makes partials of the rows that come out (`partials`),
and sends them to one task. The task merges the partials of all parts and buckets, and emits a window once
every bucket of every part has closed it. So a row of a summary never lacks a row of a part. Buckets may close
a window in different micro-batches. So each says in every micro-batch how far it has closed, as with `top`.

A window of the summary is known by the pane with which the windows of its parts end. All parts have the same
panes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.aggregates import AggregatePlan
from evenflow.aggregates.aggregate import ROWS
from evenflow.aggregates.partials.grouping import group_rows
from evenflow.aggregates.plan import TUPLES
from evenflow.aggregates.size_limits import group_sums
from evenflow.settings.sections.query import Query
from evenflow.settings.sections.query.summaries import KEY
from evenflow.twostep.key_index import KeyIndex
from evenflow.twostep.layout import Layout
from evenflow.twostep.reducing.rows_out import result_rows, sliced
from evenflow.twostep.reducing.state_blobs import BucketState, table_bytes, table_of
from evenflow.twostep.reducing.top import (
    BucketReport,
    MergeProgress,
    first_rows,
    leaders,
    one_column,
    ranked,
    report_bytes,
    report_in,
    tally_of_windows,
)
from evenflow.twostep.tally import Tally
from evenflow.windows import window_bounds

_ROWS = "rows"


@dataclass(frozen=True, kw_only=True)
class PartPlan:
    """A part of a summary."""

    plan: AggregatePlan
    """How the part's own results are computed: it emits all rows of all windows."""
    by: str
    """The result column by which the part's rows are grouped."""


@dataclass(frozen=True, kw_only=True)
class SummaryPlan:
    """How a summary is computed."""

    plan: AggregatePlan
    """The plan over rows of its parts, whose value columns are result columns of theirs."""
    parts: tuple[PartPlan, ...]
    """The queries whose rows are aggregated."""

    @classmethod
    def of(cls, query: Query) -> SummaryPlan:
        """The plan of this summary."""
        parts = [PartPlan(plan=AggregatePlan.of(part), by=by) for part, by in query.parts]
        return cls(plan=AggregatePlan.of(query), parts=tuple(parts))

    def partials(self, part: PartPlan, rows: pa.Table) -> pa.Table:
        """Partials (plan.partial_schema) of result rows of one part and one window.

        A row without a key is in none. Their number of tuples (`ROWS`) is that of the tuples which the rows
        are made of.
        """
        own = part.plan
        if part.by == KEY:
            keys = rows["key"]
        else:
            rows = rows.filter(pc.is_valid(rows[part.by]))
            keys = rows[part.by].cast(pa.string()).cast(pa.binary())
        panes = rows["window_end"].to_numpy() // self.plan.slide - 1
        values = [
            rows[field.name.removeprefix("v:")].cast(field.type)
            if field.name.removeprefix("v:") in own.output_schema.names
            else pa.nulls(rows.num_rows, field.type)
            for field in self._frame
        ]
        schema = self.plan.frame_schema
        tuples = pa.Table.from_arrays([pa.array(panes, pa.int64()), keys, *values], schema=schema)
        partials = self.plan.combine(tuples)
        if not partials.num_rows:
            return partials
        # The rows are of one window, so the key alone says which partial a row is in.
        every = one_column(tuples["key"])
        same_key = group_rows(every)
        counts = one_column(rows[_counter(own)]).to_numpy()
        sums = group_sums(same_key.ids.astype(np.int64), counts, same_key.count)
        at = KeyIndex(every.take(pa.array(same_key.first))).find(one_column(partials["key"]))
        return partials.set_column(partials.schema.get_field_index(ROWS), ROWS, pa.array(sums[at]))

    @property
    def _frame(self) -> list[pa.Field]:
        """The value columns of a row as the summary's plan combines it."""
        return list(self.plan.frame_schema)[2:]


def sent_partials(
    summary: SummaryPlan,
    part: PartPlan,
    tables: Iterable[pa.Table],
    report: Callable[[dict[int, int]], BucketReport],
) -> Iterator[bytes]:
    """What a bucket of a part sends to the task that merges: partials,
    then an empty table that carries what it says.

    tables: result rows of the part. report: called after the last table with the number of tuples of each
    window that was sent, by its last pane.
    """
    tuples: dict[int, int] = {}
    for rows in tables:
        partials = summary.partials(part, rows)
        if partials.num_rows:
            pane = partials["pane"][0].as_py()  # a table holds rows of one window
            tuples[pane] = tuples.get(pane, 0) + pc.sum(partials[ROWS]).as_py()
            yield table_bytes(partials)
    yield report_bytes(report(tuples), summary.plan.partial_schema)


def merge_parts(
    summary: SummaryPlan,
    layout: Layout,
    state: BucketState,
    sent: Iterable[bytes],
    *,
    on_tally: Callable[[Tally], object] | None = None,
) -> Iterator[pa.Table]:
    """Results (plan.result_schema) of the windows that every bucket of every part has closed by now,
    in window order.

    sent: what buckets have sent in this micro-batch (`sent_partials`). Buckets come in any order, and what
    one bucket sent comes in one piece. The state is saved when the iterator is exhausted. on_tally: called
    once at the end with what was emitted.
    """
    plan, stand = summary.plan, MergeProgress.load(state)
    before, pieces = _waiting(state, plan), _pieces(stand, sent)
    rows = plan.merge([before, *pieces])
    panes = rows["pane"].to_numpy()
    due = stand.closed_by_all(layout.buckets * len(summary.parts), plan)
    emitted: list[tuple[int | None, int]] = []
    unfit, end = 0, None
    for pane in np.unique(panes[panes < due]).tolist():
        mine = rows.filter(pa.array(panes == pane)).drop_columns(["pane"])
        bounds = window_bounds(pane, window=plan.window, slide=plan.slide)
        arrival_time, of_all = stand.arrival_times.pop(pane, None), stand.tuples.pop(pane)
        if plan.emit_from is not None and bounds[0] < plan.emit_from:
            continue
        mine = _having(plan, mine)
        count = 0
        for table in _results(plan, mine, pane, bounds, of_all):
            count += table.num_rows
            yield table
        if count:
            end = bounds[1]
            unfit += plan.unfit(mine)
            emitted.append((arrival_time, count))
    tally = tally_of_windows(emitted, unfit=unfit, end=end)
    stand.save(state)
    waiting = rows.filter(pa.array(panes >= due))
    if waiting.num_rows:
        state.put(_ROWS, table_bytes(waiting))
    elif before.num_rows:  # `delete` takes only a name that exists
        state.delete(_ROWS)
    if on_tally is not None:
        on_tally(tally)


def _pieces(stand: MergeProgress, sent: Iterable[bytes]) -> list[pa.Table]:
    """The partials that were sent, in the order of the buckets,
    so that a repeated micro-batch merges them alike.

    What the buckets say is noted in `stand`.
    """
    pieces: dict[int, list[pa.Table]] = {}
    waiting: list[pa.Table] = []
    for table in map(table_of, sent):
        report = report_in(table)
        if report is None:
            waiting.append(table)
            continue
        stand.hears(report)
        pieces.setdefault(report.bucket, []).extend(waiting)
        waiting = []
    assert not waiting, "a bucket's partials come before what it says"
    return [table for bucket in sorted(pieces) for table in pieces[bucket]]


def _results(
    plan: AggregatePlan, rows: pa.Table, pane: int, bounds: tuple[int, int], of_all: int
) -> Iterator[pa.Table]:
    """The rows of one window that come out. rows: its partials. pane: its last pane.
    of_all: tuples of all its keys.
    """
    if not rows.num_rows:
        return
    if plan.emission.mode == "top":
        first = pa.concat_tables(leaders(plan, rows, pane)).combine_chunks()
        yield ranked(plan, first_rows(plan, first), bounds, of_all)
        return
    for table in sliced(rows):
        yield result_rows(plan, table, bounds)


def _having(plan: AggregatePlan, rows: pa.Table) -> pa.Table:
    """The partials of the keys for which the plan's condition is true."""
    if plan.having is None or not rows.num_rows:
        return rows
    chosen, _ = plan.having.values(rows)
    return rows.filter(pc.fill_null(chosen, False))


def _waiting(state: BucketState, plan: AggregatePlan) -> pa.Table:
    data = state.get(_ROWS)
    return plan.partial_schema.empty_table() if data is None else table_of(data)


def _counter(plan: AggregatePlan) -> str:
    """The result column that says how many tuples a row is made of."""
    if TUPLES in plan.tuples_schema.names:
        return TUPLES
    return next(
        label for label, function, call in plan.outputs if function.name == "count" and not call.column
    )
