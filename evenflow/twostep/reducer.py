"""The reducer's core: blobs of one bucket -> results of the windows that they close.

The whole input is collected and sorted (rows of a group arrive in no promised order), merged, and only
then are panes closed. Repeated blobs change nothing; one that overlaps what was merged stops everything.
A pane closes when the mark of every lane (input partition x routed partition) has passed its end, and
a window is emitted, once, when its last pane closes. A pane that is closed cannot get tuples any more:
a partial for it is a bug upstream and stops everything too.

Sliding windows:

* invertible plan: `totals` per key, plus the new pane, minus the expired one;
* any other: a dyadic tree. Node (l, k) covers 2^l panes from k * 2^l; it is made of its two children when
  its last pane closes. A window is O(log) nodes, always the same ones for the same window. The left child
  goes when its parent is made (every later window that holds the child holds the parent), a node goes
  when a window begins behind its start: what stays is at most twice the tuples' keys of one window.

Stretches of event time without tuples are skipped in one step, however long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evenflow.aggregates import AggregatePlan
from evenflow.keys import hash_keys
from evenflow.twostep.layout import Layout
from evenflow.twostep.merging import new_rows
from evenflow.twostep.since import since
from evenflow.twostep.state import Bucket
from evenflow.twostep.stored import BucketState
from evenflow.twostep.tally import NO_BATCH, Stand, Tally, Work, sketch
from evenflow.windows import panes_closed_by, window_bounds
from evenflow.wire import cut, decode_blob
from evenflow.wire.blob import Blob

RESULT_BYTES = 16_000_000
"""About how large a table of results is; a single row may be larger."""


def reduce(
    plan: AggregatePlan, layout: Layout, state: BucketState, blobs: Iterable[bytes | pa.Buffer]
) -> pa.Table:
    """All results (plan.result_schema) of the windows that these blobs close, in window order."""
    tables = list(reduce_windows(plan, layout, state, blobs))
    return pa.concat_tables(tables) if tables else plan.result_schema.empty_table()


def reduce_windows(
    plan: AggregatePlan,
    layout: Layout,
    state: BucketState,
    blobs: Iterable[bytes | pa.Buffer],
    *,
    told: Callable[[Tally], object] | None = None,
) -> Iterator[pa.Table]:
    """As `reduce`, tables of one window each, a window in slices of about `RESULT_BYTES`.

    told: is handed what was merged and emitted and where the bucket stands, at the end.

    The state is saved when the iterator is exhausted. Raises ProtocolError (overlap, missing rows, late partial,
    input that was routed twice), IncompatibleStateError (other query, layout or version) and DataLossError (other
    routed topic); the state is then as it was.
    """
    bucket = Bucket(plan, layout, state)
    decoded = [decode_blob(data, fingerprint=layout.fingerprint) for data in blobs]
    rows = new_rows(plan, layout, bucket, decoded)
    if rows.num_rows:
        for pane, table in _by_pane(plan.merge([rows])):
            bucket.append((0, pane), table)
        for blob in decoded:
            if blob.header.came is not None:
                bucket.meta.note_came(pc.unique(blob.batch["pane"]).to_pylist(), blob.header.came)
    if bucket.known:
        emitted = _Emitted()
        for table in _close(plan, bucket, emitted):
            emitted.rows += table.num_rows
            yield table
        tally = None if told is None else _tally(plan, bucket, emitted, rows, decoded)
        bucket.save()
        if told is not None and tally is not None:
            told(tally)


@dataclass
class _Emitted:
    """Of one micro-batch; end (ms): of the last window; came: by when the newest tuple of a window came, its rows."""

    windows: int = 0
    rows: int = 0
    unfit: int = 0
    end: int | None = None
    came: list[tuple[int | None, int]] = field(default_factory=list)


def _tally(
    plan: AggregatePlan, bucket: Bucket, emitted: _Emitted, merged: pa.Table, blobs: Sequence[Blob]
) -> Tally:
    number = bucket.meta.bucket
    waiting = _open_windows(plan, bucket)
    panes = bucket.nodes.ends(bucket.meta.closed)
    stand = Stand(
        windows=len(waiting),
        panes=0 if panes is None else panes[1] - panes[0] + 1,
        next_end=window_bounds(waiting[0], window=plan.window, slide=plan.slide)[1] if waiting else None,
        marks=tuple(bucket.marks.min(axis=0).tolist()),
    )
    work = Work(
        rows=merged.num_rows,
        repeated=sum(blob.batch.num_rows for blob in blobs) - merged.num_rows,
        keys=sketch(hash_keys(merged["key"])),
        # What was merged before has its latency told already.
        came=since((blob.header.came, blob.batch.num_rows) for blob in blobs) if merged.num_rows else {},
        emitted=since(emitted.came),
    )
    return Tally(
        rows=emitted.rows,
        unfit=emitted.unfit,
        closed={number: emitted.windows},
        emitted={} if emitted.end is None else {number: emitted.end},
        stands={number: stand},
        work={("reduce", NO_BATCH): work},
    )


def _open_windows(plan: AggregatePlan, bucket: Bucket) -> range:
    """Last panes of the windows that are not emitted yet and have a tuple (of a gap between tuples: as if it had)."""
    closed, newest, span = bucket.meta.closed, bucket.meta.newest, plan.panes_per_window
    panes = bucket.nodes.ends(closed)
    reaches_back = newest is not None and newest > closed - span
    if panes is None:
        return range(closed, newest + span) if newest is not None and reaches_back else range(0)
    return range(closed if reaches_back else panes[0], panes[1] + span)


def _by_pane(table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    panes = table["pane"].to_numpy()
    order = np.argsort(panes, kind="stable")
    columns = table.drop_columns(["pane"])
    numbers, starts = np.unique(panes[order], return_index=True)
    for pane, start, stop in zip(numbers.tolist(), starts, [*starts[1:], len(order)], strict=True):
        rows = order[start:stop]
        whole = (
            len(rows) == rows[-1] - rows[0] + 1
        )  # consecutive already: the usual case when time is in order
        yield pane, columns.slice(rows[0], len(rows)) if whole else columns.take(pa.array(rows))


def _close(plan: AggregatePlan, bucket: Bucket, emitted: _Emitted) -> Iterator[pa.Table]:
    meta, span = bucket.meta, plan.panes_per_window
    target = int(panes_closed_by(bucket.marks.min(), plan.slide))
    step = _advance_totals if plan.invertible else _advance_tree
    waiting = list(bucket.nodes.panes(meta.closed, target))
    waiting.reverse()
    while meta.closed < target:
        pane = meta.closed
        if meta.newest is None or meta.newest < pane - span:  # nothing left to emit or to evict
            if not waiting:
                meta.closed = target
                return
            pane = waiting[-1]
        if waiting and waiting[-1] == pane:
            meta.newest = waiting.pop()
        table = step(plan, bucket, pane)
        came = meta.closes(pane, span=span)
        meta.closed = pane + 1
        start, end = window_bounds(pane, window=plan.window, slide=plan.slide)
        if table.num_rows and (plan.emit_from is None or start >= plan.emit_from):
            emitted.windows += 1
            emitted.unfit += plan.unfit(table)
            emitted.end = end
            emitted.came.append((came, table.num_rows))
            for rows in _sliced(table):
                yield _results(plan, rows, start, end)


def _advance_totals(plan: AggregatePlan, bucket: Bucket, pane: int) -> pa.Table:
    """Totals of the window that ends with this pane."""
    arrived = bucket.node((0, pane))
    if plan.panes_per_window == 1:
        bucket.drop_node((0, pane))
        return arrived if arrived is not None else plan.key_schema.empty_table()
    expired = bucket.node((0, pane - plan.panes_per_window))
    totals = bucket.totals
    if arrived is not None or expired is not None:
        totals = bucket.totals = plan.evict(
            totals, [] if expired is None else [expired], [] if arrived is None else [arrived]
        )
        bucket.drop_node((0, pane - plan.panes_per_window))
    return totals


def _advance_tree(plan: AggregatePlan, bucket: Bucket, pane: int) -> pa.Table:
    """Merged nodes of the window that ends with this pane."""
    first = pane - plan.panes_per_window + 1
    top = plan.panes_per_window.bit_length() - 1
    for level in range(1, top + 1):
        if (pane + 1) % (1 << level):
            break
        number = pane >> level
        left, right = (level - 1, 2 * number), (level - 1, 2 * number + 1)
        children = [table for table in (bucket.node(left), bucket.node(right)) if table is not None]
        if children:
            bucket.append((level, number), children[0] if len(children) == 1 else plan.merge(children))
        bucket.drop_node(left)
    tables = [table for node in _cover(first, pane, top) if (table := bucket.node(node)) is not None]
    for level in range(top + 1):
        if first % (1 << level) == 0:
            bucket.drop_node((level, first >> level))
    if len(tables) == 1:
        return tables[0]
    return plan.merge(tables) if tables else plan.key_schema.empty_table()


def _cover(first: int, last: int, top: int) -> Iterator[tuple[int, int]]:
    """The fewest nodes of levels 0..top that cover panes first..last, from left to right."""
    while first <= last:
        aligned = top if first == 0 else (first & -first).bit_length() - 1
        level = min(aligned, top, (last - first + 1).bit_length() - 1)
        yield level, first >> level
        first += 1 << level


def _sliced(table: pa.Table) -> Iterator[pa.Table]:
    """What leaves a task is small, however large a window is: Arrow's text columns end at 2 GiB."""
    for batch in table.combine_chunks().to_batches():
        for rows in cut(batch, RESULT_BYTES):
            yield pa.Table.from_batches([rows])


def _results(plan: AggregatePlan, table: pa.Table, start: int, end: int) -> pa.Table:
    rows = table.num_rows
    bounds = [pa.array(np.full(rows, bound, np.int64)) for bound in (start, end)]
    columns = [*bounds, _narrow(table["key"].chunk(0)), *plan.finish(table).columns]
    return pa.Table.from_arrays(columns, schema=plan.result_schema)


def _narrow(keys: pa.LargeBinaryArray) -> pa.BinaryArray:
    """The keys of a slice as ordinary binary; `cast` refuses a slice that lies beyond 2 GiB of its column."""
    _, offsets, data = keys.buffers()
    bounds = np.frombuffer(offsets, np.int64)[keys.offset : keys.offset + len(keys) + 1]
    own = pa.py_buffer((bounds - bounds[0]).astype(np.int32))
    used = data.slice(int(bounds[0]), int(bounds[-1] - bounds[0])) if data is not None else pa.py_buffer(b"")
    return pa.Array.from_buffers(pa.binary(), len(keys), [None, own, used])
