"""Two ways from partials to results: reducers alone, and homes that finish what nobody announced."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from benchmarks.cores.growth import Memory
from evenflow.aggregates import AggregatePlan
from evenflow.keys import bucket_of, candidate, hash_keys
from evenflow.numeric.arrays import Int32s, UInt64s, records
from evenflow.twostep.combiner import blob_parts
from evenflow.twostep.reducing.rows_out import result_rows, sliced
from evenflow.twostep.reducing.sliding import advance
from evenflow.twostep.reducing.state import Bucket
from evenflow.wire import LANE, BlobHeader, Segment, decode_blob

SLIDE, SPAN, BUCKETS, SEED = 10_000, 6, 8, 7
LARGEST_BLOB = 900_000


@dataclass(frozen=True, kw_only=True)
class ForwardingCase:
    """One stream, one partitioner."""

    law: str
    """Name of the stream in `STREAMS`."""
    keys: int
    """Distinct keys of the law."""
    entrant: str
    """Name of the partitioner in `ENTRANTS`."""
    workers: int
    """Workers to which the tuples are routed."""
    sources: int = 1
    """Instances that route the stream by turns."""
    tuples: int = 250_000
    """Tuples of a pane."""
    blocks: int = 4
    """Blocks of each pane. Each is one micro-batch."""
    warm: int = SPAN
    """Panes before the first that is measured."""
    measured: int = 3
    """Panes whose windows are measured."""
    total: str = "sum(x)"
    """The aggregate of the query besides a count."""
    states: int = 8
    """So many states share the homes of all workers."""

    @property
    def panes(self) -> int:
        """Panes of the whole stream."""
        return self.warm + self.measured


def encoded(partials: pa.Table, buckets: Int32s, *, workers: int, offset: int) -> list[list[bytes]]:
    """The parts of the blob of each bucket, encoded as the combiner does it.

    buckets: the bucket of each partial, shape (rows,). workers: partitions of the routed topic. offset: of
    the frames that the partials were combined from.
    """
    counts = np.bincount(buckets, minlength=BUCKETS)
    # Sorted by bucket, so that the rows of a bucket are one slice.
    if partials.num_rows:
        partials = partials.take(pa.array(np.argsort(buckets, kind="stable")))
    blobs: list[list[bytes]] = []
    start = 0
    for bucket, count in enumerate(counts.tolist()):
        header = BlobHeader(
            fingerprint="f",
            topic_id="t",
            bucket=bucket,
            buckets=BUCKETS,
            input_partitions=1,
            routed_partitions=workers,
            segments=(Segment(0, offset, offset, count, 0, count, 0),),
            marks=np.zeros((1, 1), np.int64),
            lanes=records(0, LANE),
        )
        parts = blob_parts(partials.slice(start, count), header, LARGEST_BLOB)
        blobs.append([part.data for part in parts])
        start += count
    return blobs


class PaneState:
    """Partials of panes that become windows: the state of a bucket, or of a home."""

    def __init__(self, plan: AggregatePlan) -> None:
        self._plan = plan
        self.memory = Memory()
        header = BlobHeader(
            fingerprint="f",
            topic_id="t",
            bucket=0,
            buckets=1,
            input_partitions=1,
            routed_partitions=1,
            segments=(),
            marks=np.zeros((1, 1), np.int64),
            lanes=records(0, LANE),
        )
        self._bucket = Bucket.first(plan, self.memory, header)

    def add(self, rows: pa.Table, pane: int) -> None:
        """Partials of one pane, merged with what is there. As in the reducer, state is saved once a
        micro-batch.
        """
        if rows.num_rows:
            self._bucket.append((0, pane), self._plan.merge([rows.drop_columns(["pane"])]))
            self.save()

    def window(self, pane: int) -> pa.Table:
        """The window that ends with this pane."""
        return advance(self._plan, self._bucket, pane)

    def save(self) -> None:
        """Write what changed, and read it back when it is needed, as between two micro-batches."""
        self._bucket.save()
        meta = self._bucket.meta
        self._bucket = Bucket(self._plan, self.memory, meta, self.memory["lanes"])

    @property
    def size(self) -> int:
        """Bytes of the state."""
        return sum(map(len, self.memory.values()))


@dataclass
class Way:
    """One way in which partial results become windows, and what it costs."""

    plan: AggregatePlan
    """The aggregates of the query."""
    case: ForwardingCase
    """What is routed."""
    cpu: dict[str, float] = field(default_factory=dict)
    """Part of the way -> CPU seconds."""
    partials: int = 0
    """Rows that were sent to reducers."""
    sent: int = 0
    """Bytes that were sent to reducers."""
    rows: int = 0
    """Result rows."""
    offset: int = 0
    """Offset of the next blob."""
    emitted: list[pa.Table] | None = None
    """The result rows, if there is a list for them."""

    def __post_init__(self) -> None:
        self.buckets = [PaneState(self.plan) for _ in range(BUCKETS)]
        self._moved = 0

    def begin(self) -> None:
        """Measure from here on."""
        self.cpu = dict.fromkeys(self.cpu, 0.0)
        self.partials = self.sent = self.rows = 0
        self._moved = self._all_moved()

    @property
    def moved(self) -> int:
        """Bytes of state read and written since `begin`."""
        return self._all_moved() - self._moved

    @property
    def state_bytes(self) -> int:
        """Bytes of state at the end."""
        return sum(state.size for state in self._states())

    def _states(self) -> list[PaneState]:
        return self.buckets

    def _all_moved(self) -> int:
        return sum(state.memory.moved for state in self._states())

    def _note(self, part: str, began: float) -> None:
        self.cpu[part] = self.cpu.get(part, 0.0) + time.process_time() - began

    def blobs(self, tables: Sequence[pa.Table], hashes: UInt64s) -> list[list[bytes]]:
        """The blobs of these partials by bucket, encoded as the combiner does it."""
        whole = pa.concat_tables(tables)
        blobs = encoded(whole, bucket_of(hashes, BUCKETS), workers=self.case.workers, offset=self.offset)
        self.offset += 1
        self.partials += whole.num_rows
        self.sent += sum(len(data) for parts in blobs for data in parts)
        return blobs

    def decoded(self, blobs: Sequence[bytes]) -> pa.Table:
        opened = [decode_blob(data, fingerprint="f") for data in blobs]
        return pa.Table.from_batches([blob.batch for blob in opened], schema=self.plan.partial_schema)

    def _reduce(self, blobs: Sequence[Sequence[bytes]]) -> None:
        """Give each bucket its blobs."""
        began = time.process_time()
        # All rows of a micro-batch are of one pane: a pane has a whole number of blocks.
        for bucket, mine in zip(self.buckets, blobs, strict=True):
            rows = self.decoded(mine)
            if rows.num_rows:
                bucket.add(rows, int(rows["pane"][0].as_py()))
        self._note("reducer", began)

    def _emit(self, table: pa.Table, pane: int) -> None:
        bounds = ((pane + 1) * SLIDE - SPAN * SLIDE, (pane + 1) * SLIDE)
        for rows in sliced(table):
            results = result_rows(self.plan, rows, bounds)
            self.rows += results.num_rows
            if self.emitted is not None:
                self.emitted.append(results)


class Today(Way):
    """Every partial goes to a reducer."""

    def step(self, partials: list[pa.Table]) -> None:
        """One micro-batch."""
        began = time.process_time()
        hashes = hash_keys(pa.concat_tables(partials)["key"])
        blobs = self.blobs(partials, hashes)
        self._note("combiner", began)
        self._reduce(blobs)

    def close(self, pane: int) -> None:
        """Emit the windows that end with this pane."""
        began = time.process_time()
        for bucket in self.buckets:
            self._emit(bucket.window(pane), pane)
            bucket.save()
        self._note("reducer", began)


class Forwarding(Way):
    """A worker keeps what it is home to."""

    def __post_init__(self) -> None:
        super().__post_init__()
        states = min(self.case.states, self.case.workers)
        self.homes = [PaneState(self.plan) for _ in range(states)]
        self.announced: list[dict[int, list[UInt64s]]] = [{} for _ in range(states)]

    def _states(self) -> list[PaneState]:
        return [*self.buckets, *self.homes]

    def add(self, announced: list[UInt64s], pane: int) -> None:
        """Take in announcements by home."""
        # Several workers share a state where there are more workers than states.
        for worker, hashes in enumerate(announced):
            self.announced[worker % len(self.homes)].setdefault(pane, []).append(hashes)

    def step(self, partials: list[pa.Table]) -> None:
        """One micro-batch."""
        began = time.process_time()
        away, away_hashes = [], []
        split = []
        for worker, rows in enumerate(partials):
            hashes = hash_keys(rows["key"])
            home = candidate(hashes, 1, self.case.workers, SEED) == worker
            split.append(rows.filter(pa.array(home)) if not home.all() else rows)
            if not home.all():
                away.append(rows.filter(pa.array(~home)))
                away_hashes.append(hashes[~home])
        # The empty table and array: there may be no rows away from home, and nothing cannot be concatenated.
        blobs = self.blobs(
            [self.plan.partial_schema.empty_table(), *away],
            np.concatenate([np.empty(0, np.uint64), *away_hashes]),
        )
        self._note("combiner", began)
        began = time.process_time()
        for number, state in enumerate(self.homes):
            rows = pa.concat_tables(split[number :: len(self.homes)])
            if rows.num_rows:
                state.add(rows, int(rows["pane"][0].as_py()))
        self._note("home", began)
        self._reduce(blobs)

    def close(self, pane: int) -> None:
        """Finish what home may finish, hand on the rest of the windows, and reduce that."""
        began = time.process_time()
        handed, handed_hashes = [self.plan.partial_schema.empty_table()], [np.empty(0, np.uint64)]
        for home, announced in zip(self.homes, self.announced, strict=True):
            table = home.window(pane)
            home.save()
            # This pane has just left the window, so what was announced in it no longer keeps a key from being
            # finished.
            announced.pop(pane - SPAN, None)
            announced_keys = np.concatenate(
                [np.empty(0, np.uint64), *(key_hashes for each in announced.values() for key_hashes in each)]
            )
            if len(announced_keys):
                hashes = hash_keys(table["key"])
                finished = ~np.isin(hashes, np.unique(announced_keys))
                if not finished.all():
                    rest = table.filter(pa.array(~finished))
                    handed.append(rest.add_column(0, "pane", pa.array(np.full(rest.num_rows, pane))))
                    handed_hashes.append(hashes[~finished])
                    table = table.filter(pa.array(finished))
            self._emit(table, pane)
        blobs = self.blobs(handed, np.concatenate(handed_hashes))
        self._note("home", began)
        began = time.process_time()
        for bucket, mine in zip(self.buckets, blobs, strict=True):
            windows, totals = self.decoded(mine), bucket.window(pane)
            if windows.num_rows:
                totals = self.plan.merge([totals, windows.drop_columns(["pane"])])
            self._emit(totals, pane)
            bucket.save()
        self._note("reducer", began)
