"""A combiner that keeps what its worker is home to, and finishes the windows that no other worker has tuples of.

The frames of one routed partition -> blobs for the reducers, and results of windows that are complete here. What the
worker is not home to goes to the reducers at once, as in `combine_task`. What it is home to stays in panes, as in a
reducer. When a pane closes in every lane of the routed partition, the window that ends with it is split by key:

* A row is a result, if all tuples of the window were routed by one plan (`epochs`) and no pane of the window was announced
  for the key (`evenflow/homes.py`). Then nobody else has a tuple of the key.
* Any other row is handed on to the key's reducer, as a partial of the whole window.

So a reducer emits a key's window exactly if it gets a partial of it. It cannot wait for a home in vain: what a home hands
on comes in the blob with the marks that close the window's last pane.

What a worker keeps is a `Bucket` with two more strings: `epochs`, and `announced`, which has the pairs (pane, hash). Rule
"forwarding is announced".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from evenflow.aggregates import AggregatePlan
from evenflow.arrays import Bools, Int64s, UInt64s, records
from evenflow.errors import ProtocolError
from evenflow.homes import home_of
from evenflow.keys import hash_keys
from evenflow.twostep.announced import Announced
from evenflow.twostep.combiner import BlobPart, Fold, Frames, Range, blobs_of, decoded, tally_of
from evenflow.twostep.epochs import Epochs
from evenflow.twostep.lanes import UNREAD, RoutedLanes, routed_twice
from evenflow.twostep.layout import Layout
from evenflow.twostep.reducer import Emitted, Slices, Windows, by_pane, close_panes, emits
from evenflow.twostep.rows_out import result_rows, sliced
from evenflow.twostep.sequences import RangeSequences
from evenflow.twostep.since import since
from evenflow.twostep.sliding import advance_totals, advance_tree
from evenflow.twostep.state import Bucket
from evenflow.twostep.stored import BucketState, packed, unpacked
from evenflow.twostep.tally import Tally
from evenflow.windows import panes_closed_by
from evenflow.wire import ANNOUNCED, LANE, BlobHeader

_EPOCHS = "epochs"


@dataclass(frozen=True, kw_only=True)
class Homes:
    """What decides where keys are at home and which panes are closed.

    seed: that of the query's hash family. delay: how far (ms) the mark of an input partition is behind its newest tuple.
    """

    seed: int
    delay: int


@dataclass(frozen=True, kw_only=True)
class Forwarded:
    """What came of some frames of one worker: blobs in the order of buckets, and results (plan.result_schema)."""

    blobs: list[BlobPart] = field(default_factory=list)
    results: list[pa.Table] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Worker:
    """A worker with its share of the query. routed: its number, that of its routed partition."""

    plan: AggregatePlan
    layout: Layout
    homes: Homes
    routed: int

    @property
    def own(self) -> Layout:
        """The layout of what the worker keeps: it watches the lanes of its own routed partition."""
        return replace(self.layout, buckets=self.layout.routed_partitions)


def forward_task(
    worker: Worker, state: BucketState, frames: Frames, *, told: Callable[[Tally], object] | None = None
) -> Forwarded:
    """Take in the next frames of this worker.

    state: what the worker keeps. It is saved at the end. After an error it is as it was. Frames that were taken in before
    change nothing. told: called once at the end, if there were new frames.

    Raises as `combine_task` and `reduce` do. Raises ProtocolError for a plan that was not told, and for an announcement
    of a closed pane.
    """
    if worker.plan.emission.mode != "all" or worker.plan.slides_per_pane != 1:
        raise ProtocolError(
            "only a query that emits all rows, and whose panes are those of its frames, has homes"
        )
    task = _Task(worker, state)
    for offset, data in frames:
        task.add(offset, data)
    return task.end(told)


class _Task:
    """Some frames of one worker."""

    def __init__(self, worker: Worker, state: BucketState) -> None:
        self._worker = worker
        self._plan, self._layout, self._routed = worker.plan, worker.layout, worker.routed
        self._state = state
        # Read before anything else is, because a bucket of another query must be refused first.
        self._bucket = Bucket.saved(worker.plan, worker.own, state) or _first(worker, state)
        saved = state.get(_EPOCHS)
        self._epochs = Epochs(
            None if saved is None else unpacked(saved), slide=worker.plan.slide, delay=worker.homes.delay
        )
        self._announced = Announced(state)
        self._lanes = RoutedLanes(worker.layout, worker.routed)
        self._sequences = RangeSequences(worker.routed)
        self._folds: dict[int, Fold] = {}
        self._came: list[tuple[int | None, int]] = []
        self._first = self._last = -1

    def add(self, offset: int, data: bytes | pa.Buffer) -> None:
        """Take in the next frame."""
        if offset <= self._bucket.merged[self._routed]:
            return
        where = f"routed partition {self._routed}, offset {offset}"
        if offset <= self._last:
            raise ProtocolError(f"{where} was read after {self._last}")
        frame = decoded(self._layout, data, where)
        self._lanes.add(frame, offset)
        self._sequences.add(frame, offset)
        self._epochs.add(frame, where)
        if frame.header.announces:
            self._announce(frame.batch, where)
        else:
            # Keys have their homes by the plan of the frame, so frames of each number of workers are folded apart.
            fold = self._folds.setdefault(frame.header.workers, Fold(self._plan))
            fold.add(frame.batch, where)
            self._came.append((frame.header.came, frame.batch.num_rows))
        self._first = offset if self._first < 0 else self._first
        self._last = offset

    def end(self, told: Callable[[Tally], object] | None) -> Forwarded:
        """Close what is closed by now, and save."""
        if self._first < 0:
            return Forwarded()
        self._check_lanes()
        away = [self._plan.partial_schema.empty_table()]
        for workers, fold in sorted(self._folds.items()):
            away.append(self._kept(fold.result(), workers))
        emitted, handed = Emitted(), [self._plan.partial_schema.empty_table()]
        results = list(self._closed(emitted, handed))
        entry = self._range(pa.concat_tables(away), pa.concat_tables(handed))
        hashes = hash_keys(entry.partials["key"])
        forwarded = Forwarded(
            blobs=list(blobs_of(self._layout, [entry], entry.partials, hashes)), results=results
        )
        self._save()
        if told is not None:
            told(self._tally(entry, hashes, emitted))
        return forwarded

    def _announce(self, batch: pa.RecordBatch, where: str) -> None:
        if not batch.schema.equals(ANNOUNCED) or batch.column(0).null_count or batch.column(1).null_count:
            raise ProtocolError(f"{where}: a frame announces the columns {batch.schema}, not {ANNOUNCED}")
        panes, hashes = (column.to_numpy() for column in batch.columns)
        self._check_open(panes, where)
        self._announced.add(panes, hashes)

    def _check_open(self, panes: Int64s, where: str) -> None:
        if len(panes) and int(panes.min()) < self._bucket.meta.closed:
            raise ProtocolError(
                f"{where}: there came something for pane {int(panes.min())}, but every pane before "
                f"{self._bucket.meta.closed} is closed: a bug upstream, or a foreign record"
            )

    def _check_lanes(self) -> None:
        """Raise unless these frames go on where the last ones ended."""
        bucket, sequences = self._bucket, self._sequences.rows()
        bucket.grow(len(self._lanes.marks))
        # Totals are of all routed partitions together, and this worker knows one. The reducers compare them.
        sequences["frames"] = 0
        bucket.sessions.add(sequences.tolist(), f"offsets {self._first}..{self._last}")
        reached = bucket.reached[0]
        for _, partition, first, last in self._lanes.rows().tolist():
            if first != UNREAD and first < reached[partition]:
                raise routed_twice(self._routed, partition, first, int(reached[partition]))
            reached[partition] = max(int(reached[partition]), last)

    def _kept(self, rows: pa.Table, workers: int) -> pa.Table:
        """Keep the rows whose keys are at home here, by a plan of so many workers. Returns the others."""
        self._check_open(rows["pane"].to_numpy(), f"routed partition {self._routed}")
        home = home_of(hash_keys(rows["key"]), workers, self._worker.homes.seed) == self._routed
        for pane, table in by_pane(_only(rows, home)) if home.any() else ():
            self._bucket.append((0, pane), table)
        return _only(rows, ~home)

    def _closed(self, emitted: Emitted, handed: list[pa.Table]) -> Iterator[pa.Table]:
        bucket = self._bucket
        target = int(panes_closed_by(self._epochs.marks.min(), self._plan.slide))
        for table in close_panes(self._plan, bucket, target, self._windows(handed), emitted):
            emitted.rows += table.num_rows
            yield table
        # No window that is still open has a pane before this one.
        oldest = bucket.meta.closed - self._plan.panes_per_window + 1
        self._announced.forget(oldest)
        self._epochs.forget(oldest)

    def _windows(self, handed: list[pa.Table]) -> Windows:
        plan, step = self._plan, advance_totals if self._plan.invertible else advance_tree

        def window(pane: int, bounds: tuple[int, int]) -> Slices:
            table = step(plan, self._bucket, pane)
            if not table.num_rows or not emits(plan, bounds):
                return ()
            alone = self._alone(hash_keys(table["key"]), pane)
            rest = _only(table, ~alone)
            if rest.num_rows:
                handed.append(rest.add_column(0, "pane", pa.array(np.full(rest.num_rows, pane))))
            return ((rows, result_rows(plan, rows, bounds)) for rows in sliced(_only(table, alone)))

        return window

    def _alone(self, hashes: UInt64s, pane: int) -> Bools:
        """Whether nobody else has tuples of each of these keys in the window that ends with this pane."""
        first = pane - self._plan.panes_per_window + 1
        if not self._epochs.only(first, pane):
            return np.zeros(len(hashes), np.bool_)
        return ~np.isin(hashes, self._announced.between(first, pane))

    def _range(self, away: pa.Table, handed: pa.Table) -> Range:
        tuples = sum(fold.tuples for fold in self._folds.values())
        return Range(
            self._routed,
            self._first,
            self._last,
            self._lanes,
            self._sequences.rows(),
            pa.concat_tables([away, handed.select(away.schema.names).cast(away.schema)]),
            tuples,
            since(self._came),
            handed.num_rows,
        )

    def _save(self) -> None:
        self._bucket.merged[self._routed] = self._last
        self._bucket.save()
        self._announced.save()
        self._state.put(_EPOCHS, packed(self._epochs.saved()))

    def _tally(self, entry: Range, hashes: UInt64s, emitted: Emitted) -> Tally:
        number = self._layout.buckets + self._routed  # no bucket has this number
        return replace(
            tally_of([entry], hashes),
            rows=emitted.rows,
            unfit=emitted.unfit,
            closed={number: emitted.windows},
            emitted={} if emitted.end is None else {number: emitted.end},
        )


def _first(worker: Worker, state: BucketState) -> Bucket:
    """What a worker keeps before its first frame."""
    layout = worker.own
    header = BlobHeader(
        fingerprint=layout.fingerprint,
        topic_id=layout.topic_id,
        bucket=worker.routed,
        buckets=layout.buckets,
        input_partitions=layout.input_partitions,
        routed_partitions=layout.routed_partitions,
        segments=(),
        marks=np.empty((0, layout.input_partitions), np.int64),
        lanes=records(0, LANE),
    )
    return Bucket.first(worker.plan, state, header)


def _only(table: pa.Table, which: Bools) -> pa.Table:
    """The rows for which `which` is true, in one piece."""
    if which.all():
        return table
    return table.filter(pa.array(which)).combine_chunks()
