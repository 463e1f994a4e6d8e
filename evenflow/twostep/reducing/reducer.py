"""The reducer's core: blobs of one bucket -> results of the windows that they close.

The whole input of a micro-batch is collected and sorted, because rows of a group arrive in no promised order.
Then it is merged, and only then are panes closed. A repeated blob changes nothing. A blob that overlaps
merged offsets stops the query with an error.

A pane closes when the mark of every lane (input partition x routed partition) has passed its end, and no
frame of an ended session may still be missing (`sequences`). A window is
emitted once, when its last pane closes. A closed pane cannot get tuples any more. A partial for a closed pane
is a bug upstream and stops the query, too. A stretch of event time without tuples is skipped in one step,
however long it is.

`sliding` makes windows of panes. `changes`, `updates` and `top` choose which rows of a window come out
(`plan.emission`). With updates a window comes out before its last pane closes, and rows of it may come out
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.aggregates import AggregatePlan
from evenflow.aggregates.aggregate import ROWS
from evenflow.keys import hash_keys
from evenflow.twostep.arrival_times import count_arrivals
from evenflow.twostep.layout import Layout
from evenflow.twostep.reducing.changes import Changes, changed_rows
from evenflow.twostep.reducing.merging import begun, new_rows
from evenflow.twostep.reducing.rows_out import result_rows, sliced
from evenflow.twostep.reducing.sliding import advance
from evenflow.twostep.reducing.state import Bucket
from evenflow.twostep.reducing.state_blobs import BucketState
from evenflow.twostep.reducing.summary import SummaryPlan, sent_partials
from evenflow.twostep.reducing.top import BucketReport, leaders, told_leaders
from evenflow.twostep.reducing.updates import Updates
from evenflow.twostep.tally import NO_BATCH, BucketPosition, Tally, Work, sketch
from evenflow.windows import panes_closed_by, window_bounds
from evenflow.wire import decode_blob
from evenflow.wire.blob import Blob

Slices = Iterable[tuple[pa.Table | None, pa.Table]]
"""(partials, what comes out for them) of one window, in slices. With `top` the partials are None."""


def reduce(
    plan: AggregatePlan, layout: Layout, state: BucketState, blobs: Iterable[bytes | pa.Buffer]
) -> pa.Table:
    """All results (plan.result_schema) of the windows that these blobs close, in window order.

    Raises as `reduce_windows` does.
    """
    tables = list(reduce_windows(plan, layout, state, blobs))
    return pa.concat_tables(tables) if tables else plan.result_schema.empty_table()


def reduce_windows(
    plan: AggregatePlan,
    layout: Layout,
    state: BucketState,
    blobs: Iterable[bytes | pa.Buffer],
    *,
    on_tally: Callable[[Tally], object] | None = None,
) -> Iterator[pa.Table]:
    """As `reduce`, but yields tables of one window each.
    A large window comes in slices of about `RESULT_BYTES`.

    on_tally: called once at the end with what was merged and emitted, and where the bucket stands.

    The state is saved when the iterator is exhausted. After an error the state is as it was. Raises
    ProtocolError for an overlap, missing rows, a late partial or input that was routed twice. Raises
    IncompatibleStateError for another query, layout or version, and DataLossError for another routed topic
    and for frames that are gone.
    """
    bucket, decoded = _opened(plan, layout, state, blobs)
    if bucket is not None:
        yield from _reduced(plan, layout, bucket, decoded, _MicroBatchOutput(), on_tally)


def reduce_leaders(
    plan: AggregatePlan,
    layout: Layout,
    state: BucketState,
    blobs: Iterable[bytes | pa.Buffer],
    *,
    on_tally: Callable[[Tally], object] | None = None,
) -> Iterator[bytes]:
    """As `reduce_windows`, for a plan that emits `top`: yields what the bucket sends to the task that merges.

    That task (`merge_leaders`) emits the rows and tells how many. So the tally that `on_tally` gets here
    counts none as emitted.
    """
    bucket, decoded = _opened(plan, layout, state, blobs)
    if bucket is None:
        return
    meta, leading = bucket.meta, _MicroBatchOutput()

    def report() -> BucketReport:
        # Called after the last table, when `leading` knows all windows of the micro-batch.
        arrivals = [(pane, arrival_time) for pane, arrival_time, _ in leading.arrivals]
        return BucketReport(
            bucket=meta.bucket, closed=meta.closed, arrival_times=arrivals, tuples=leading.tuples
        )

    tables = _reduced(plan, layout, bucket, decoded, leading, _none_emitted(on_tally))
    yield from told_leaders(plan, tables, report)


def reduce_part(
    summary: SummaryPlan,
    number: int,
    layout: Layout,
    state: BucketState,
    blobs: Iterable[bytes | pa.Buffer],
    *,
    on_tally: Callable[[Tally], object] | None = None,
) -> Iterator[bytes]:
    """As `reduce_leaders`, for a part of a summary:
    yields what a bucket of this part sends to the task that merges.

    number: that of the part. layout: the part's own. That task is `merge_parts`.
    """
    part = summary.parts[number]
    bucket, decoded = _opened(part.plan, layout, state, blobs)
    if bucket is None:
        return
    meta, emitted = bucket.meta, _MicroBatchOutput()

    def report(tuples: dict[int, int]) -> BucketReport:
        arrivals = [(pane, arrival_time) for pane, arrival_time, _ in emitted.arrivals if pane in tuples]
        # To the task that merges, a bucket of each part is a bucket of its own.
        of_all = number * layout.buckets + meta.bucket
        return BucketReport(
            bucket=of_all, closed=meta.closed, arrival_times=arrivals, tuples=sorted(tuples.items())
        )

    tables = _reduced(part.plan, layout, bucket, decoded, emitted, _none_emitted(on_tally))
    yield from sent_partials(summary, part, tables, report)


def _none_emitted(on_tally: Callable[[Tally], object] | None) -> Callable[[Tally], object] | None:
    """A listener that passes tallies on to `on_tally` as those of a bucket that emits nothing itself.
    None stays None.
    """
    if on_tally is None:
        return None

    def still_to_come(tally: Tally) -> None:
        work = {at: replace(done, emitted={}) for at, done in tally.work.items()}
        on_tally(
            replace(tally, rows=0, unfit=0, closed=dict.fromkeys(tally.closed, 0), emitted={}, work=work)
        )

    return still_to_come


def _opened(
    plan: AggregatePlan, layout: Layout, state: BucketState, blobs: Iterable[bytes | pa.Buffer]
) -> tuple[Bucket | None, list[Blob]]:
    """The bucket and the decoded blobs. The bucket is None if the state is empty and no blob came."""
    bucket = Bucket.saved(plan, layout, state)
    decoded = [decode_blob(data, fingerprint=layout.fingerprint) for data in blobs]
    if bucket is None and decoded:
        bucket = begun(plan, layout, state, decoded[0])
    return bucket, decoded


def _reduced(
    plan: AggregatePlan,
    layout: Layout,
    bucket: Bucket,
    blobs: Sequence[Blob],
    emitted: _MicroBatchOutput,
    on_tally: Callable[[Tally], object] | None,
) -> Iterator[pa.Table]:
    rows = new_rows(plan, layout, bucket, blobs)
    updates = Updates(plan, bucket) if plan.emission.updates else None
    if rows.num_rows:
        for pane, table in _by_pane(plan.merge([rows])):
            bucket.append((0, pane), table)
            if updates is not None:
                updates.note(pane, table)
        for blob in blobs:
            if blob.header.arrival_time is not None:
                bucket.meta.note_arrival(pc.unique(blob.batch["pane"]).to_pylist(), blob.header.arrival_time)
    # Frames of a session that has ended may still be missing: then a pane may lack their tuples.
    if bucket.sessions.settled():
        yield from _close(plan, bucket, emitted, updates)
    if updates is not None:
        yield from _early(plan, updates, emitted)
    tally = None if on_tally is None else _tally(plan, bucket, emitted, rows, blobs)
    bucket.save()
    if on_tally is not None and tally is not None:
        on_tally(tally)


@dataclass
class _MicroBatchOutput:
    """What one micro-batch has emitted so far."""

    windows: int = 0
    """How many windows. A window that comes out again does not count."""
    rows: int = 0
    """How many rows, those that came out again included."""
    unfit: int = 0
    """Values that are null because they do not fit their type."""
    end: int | None = None
    """End of the last window, ms."""
    arrivals: list[tuple[int, int | None, int]] = field(default_factory=list)
    """Of each window: last pane, time (ms) when its newest tuple came or None, rows."""
    tuples: list[tuple[int, int]] = field(default_factory=list)
    """Of each window with tuples: last pane, how many. With `emit = "top"` only."""

    def window(self, plan: AggregatePlan, out: _Out, slices: Slices) -> Iterator[pa.Table]:
        """The results of these slices of a window, which are counted. A window without rows does not
        count.
        """
        rows = 0
        for partials, results in slices:
            rows += results.num_rows
            if partials is not None:
                self.unfit += plan.unfit(partials)
            yield results
        self.rows += rows
        if rows and not out.again:
            self.windows += 1
            self.end = out.end
            self.arrivals.append((out.pane, out.arrival_time, rows))


class _Out(NamedTuple):
    """A window of which rows come out."""

    pane: int
    """The window's last pane."""
    end: int
    """The window's end, ms."""
    arrival_time: int | None
    """When the window's newest tuple came, ms. None if unknown."""
    again: bool = False
    """Whether the window has come out before."""


def _tally(
    plan: AggregatePlan, bucket: Bucket, emitted: _MicroBatchOutput, merged: pa.Table, blobs: Sequence[Blob]
) -> Tally:
    number = bucket.meta.bucket
    waiting = _open_windows(plan, bucket)
    panes = bucket.nodes.ends(bucket.meta.closed)
    stand = BucketPosition(
        windows=len(waiting),
        panes=0 if panes is None else panes[1] - panes[0] + 1,
        next_end=window_bounds(waiting[0], window=plan.window, slide=plan.slide)[1] if waiting else None,
        marks=tuple(bucket.marks.min(axis=0).tolist()),
    )
    work = Work(
        rows=merged.num_rows,
        repeated=sum(blob.batch.num_rows for blob in blobs) - merged.num_rows,
        keys=sketch(hash_keys(merged["key"])),
        # The latency of rows that were merged before has been told already.
        arrivals=count_arrivals((blob.header.arrival_time, blob.batch.num_rows) for blob in blobs)
        if merged.num_rows
        else {},
        emitted=count_arrivals((time, count) for _, time, count in emitted.arrivals),
    )
    return Tally(
        rows=emitted.rows,
        unfit=emitted.unfit,
        closed={number: emitted.windows},
        emitted={} if emitted.end is None else {number: emitted.end},
        bucket_stands={number: stand},
        work={("reduce", NO_BATCH): work},
    )


def _open_windows(plan: AggregatePlan, bucket: Bucket) -> range:
    """Last panes of the open windows with a tuple.

    A gap between tuples counts as if it had tuples, so the answer is one range.
    """
    closed, newest, span = bucket.meta.closed, bucket.meta.newest, plan.panes_per_window
    panes = bucket.nodes.ends(closed)
    # Whether open windows hold a closed pane with tuples.
    reaches_back = newest is not None and newest > closed - span
    if panes is None:
        return range(closed, newest + span) if newest is not None and reaches_back else range(0)
    return range(closed if reaches_back else panes[0], panes[1] + span)


def _by_pane(table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """(pane, its rows without the pane column), by ascending pane. Within a pane the rows keep their
    order.
    """
    panes = table["pane"].to_numpy()
    order = np.argsort(panes, kind="stable")
    columns = table.drop_columns(["pane"])
    numbers, starts = np.unique(panes[order], return_index=True)
    for pane, start, stop in zip(numbers.tolist(), starts, [*starts[1:], len(order)], strict=True):
        rows = order[start:stop]
        whole = (
            len(rows) == rows[-1] - rows[0] + 1
        )  # the rows are consecutive, as usual when time is in order: a slice copies nothing
        yield pane, columns.slice(rows[0], len(rows)) if whole else columns.take(pa.array(rows))


def _close(
    plan: AggregatePlan, bucket: Bucket, emitted: _MicroBatchOutput, updates: Updates | None
) -> Iterator[pa.Table]:
    """Close every pane that the least mark of all lanes has passed. Yields the result tables of the
    windows.
    """
    meta, span = bucket.meta, plan.panes_per_window
    target = int(panes_closed_by(bucket.marks.min(), plan.slide))
    if updates is not None:
        windows = _last(plan, bucket, updates)
    else:
        windows = _changes(plan, bucket) if plan.emission.mode == "changes" else _each(plan, bucket, emitted)
    waiting = list(bucket.nodes.panes(meta.closed, target))
    waiting.reverse()  # the earliest pane is last, where `pop` takes it
    while meta.closed < target:
        pane = meta.closed
        if meta.newest is None or meta.newest < pane - span:  # nothing left to emit or to evict
            if not waiting:
                meta.closed = target
                return
            pane = waiting[-1]  # the gap before this pane has no window with a tuple
        if waiting and waiting[-1] == pane:
            meta.newest = waiting.pop()
        bounds = window_bounds(pane, window=plan.window, slide=plan.slide)
        # `windows` moves the bucket's nodes on at once, and makes only the slices of results lazily.
        slices = windows(pane, bounds)
        arrival_time = meta.closes(pane, span=span)
        meta.closed = pane + 1
        again = updates is not None and not updates.is_first(pane)
        yield from emitted.window(plan, _Out(pane, bounds[1], arrival_time, again), slices)


def _early(plan: AggregatePlan, updates: Updates, emitted: _MicroBatchOutput) -> Iterator[pa.Table]:
    """What comes out of windows that are still open. Called after `_close`."""
    for pane in updates.open_windows():
        bounds = window_bounds(pane, window=plan.window, slide=plan.slide)
        out = _Out(pane, bounds[1], updates.arrival_time(pane), not updates.is_first(pane))
        slices = updates.rows(pane, bounds)
        yield from emitted.window(plan, out, slices if _emits(plan, bounds) else ())
    updates.end()


def _each(
    plan: AggregatePlan, bucket: Bucket, emitted: _MicroBatchOutput
) -> Callable[[int, tuple[int, int]], Slices]:
    """A function that moves on to the window that ends with a pane, and returns all rows of the window.

    With `top` it returns the bucket's leaders of the window, and notes how many tuples the window has.
    """

    def window(pane: int, bounds: tuple[int, int]) -> Slices:
        table = advance(plan, bucket, pane)
        if not table.num_rows or not _emits(plan, bounds):
            return ()
        if plan.emission.mode == "top":
            emitted.tuples.append((pane, pc.sum(table[ROWS]).as_py()))
            return ((None, rows) for rows in leaders(plan, table, pane))
        return ((rows, result_rows(plan, rows, bounds)) for rows in sliced(table))

    return window


def _last(plan: AggregatePlan, bucket: Bucket, updates: Updates) -> Callable[[int, tuple[int, int]], Slices]:
    """As `_each`, but of a window that has come out it returns only the rows that tuples
    of this micro-batch change.
    """

    def window(pane: int, bounds: tuple[int, int]) -> Slices:
        table = advance(plan, bucket, pane)
        slices = updates.of_closed(pane, table, bounds)
        return slices if _emits(plan, bounds) else ()

    return window


def _changes(plan: AggregatePlan, bucket: Bucket) -> Callable[[int, tuple[int, int]], Slices]:
    """As `_each`, but returns the rows that differ from the window before. The first window that is
    emitted is whole.
    """
    changes = Changes(plan, bucket)

    def window(pane: int, bounds: tuple[int, int]) -> Slices:
        moved = changes.advance(pane)
        if not _emits(plan, bounds):
            return ()
        # Readers have not seen the window before, so they get this one as if that had been empty.
        if not _emits(plan, (bounds[0] - plan.slide, bounds[1] - plan.slide)):
            moved = plan.key_schema.empty_table(), changes.whole(pane)
        return changed_rows(plan, moved, bounds, bucket.meta.tuples)

    return window


def _emits(plan: AggregatePlan, bounds: tuple[int, int]) -> bool:
    """Whether the window is emitted. A rebuilt query emits no window that begins before `emit_from` (ms)."""
    return plan.emit_from is None or bounds[0] >= plan.emit_from
