"""What it would save if a worker finished the windows of a key by itself, and what that costs, by partitioner.

A worker is the *home* of a key if the first candidate F_1 names it. It may finish a window of the key only if no tuple of
the window went to another worker. So whoever routes a tuple elsewhere announces (pane, key) to the key's home. Everything
else goes to the reducer: what is not at home as partials of a pane, and what home has of an announced key as one partial
of the window.

Both ways run through the cores of combiner and reducer, without any service: the same merges, the same state, the same
blobs. The state of a home is that of a reduce bucket.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.growth import Memory
from evenflow.aggregates import AggregatePlan
from evenflow.arrays import Int32s, Int64s, UInt64s, records
from evenflow.keys import bucket_of, candidate, hash_keys
from evenflow.laws import LAWS
from evenflow.partitioners import create
from evenflow.partitioners.fitting import fitted
from evenflow.rank_laws import labels
from evenflow.settings import Query
from evenflow.twostep.combiner import blob_parts
from evenflow.twostep.rows_out import result_rows, sliced
from evenflow.twostep.sliding import advance_totals, advance_tree
from evenflow.twostep.state import Bucket
from evenflow.wire import LANE, BlobHeader, Segment, decode_blob

ID = "forwarding"
WHAT = "Finishing windows at a key's home: results finished, partials and bytes saved, announcements, CPU seconds"

SLIDE, SPAN, BUCKETS, SEED = 10_000, 6, 8, 7
STREAMS: dict[str, tuple[str, dict[str, float]]] = {
    "uniform": ("uniform", {}),
    "zipf 1.0": ("zipf", {"z": 1.0}),
    "zipf 1.5": ("zipf", {"z": 1.5}),
}
ENTRANTS: dict[str, tuple[str, dict[str, str]]] = {
    "hashing": ("hashing", {}),
    "evenflow": ("evenflow", {}),
    "evenflow, tail=hash": ("evenflow", {"tail": "hash"}),
    "dalton": ("dalton", {}),
    "d-choices": ("d-choices", {}),
    "cam": ("cam", {}),
}
LARGEST_BLOB = 900_000


@dataclass(frozen=True, kw_only=True)
class Case:
    """One stream, one partitioner. warm, measured: panes. tuples: of a pane. blocks: of each pane, each one micro-batch.

    total: the aggregate of the query besides a count. sources: instances that route the stream by turns. states: so many
    states share the homes of all workers.
    """

    law: str
    keys: int
    entrant: str
    workers: int
    sources: int = 1
    tuples: int = 250_000
    blocks: int = 4
    warm: int = SPAN
    measured: int = 3
    total: str = "sum(x)"
    states: int = 8

    @property
    def panes(self) -> int:
        """Panes of the whole stream."""
        return self.warm + self.measured


@dataclass(frozen=True, eq=False)
class Stream:
    """The tuples of a case. keys: one for each rank. The arrays have shape (tuples,)."""

    keys: pa.Array
    hashes: UInt64s
    ranks: Int64s
    panes: Int64s
    workers: Int32s
    home: Int32s
    source: Int32s


def run(*, smoke: bool) -> dict[str, object]:
    """A row for each stream, number of keys, number of workers and partitioner."""
    some = (
        [(1_000, 8)] if smoke else [(keys, workers) for keys in (100_000, 1_000_000) for workers in (8, 64)]
    )
    rows = []
    for law in STREAMS:
        for keys, workers in some:
            for entrant in ENTRANTS:
                case = Case(law=law, keys=keys, entrant=entrant, workers=workers)
                rows.append(row(replace(case, tuples=4_000, measured=1) if smoke else case))
    return {"rows": rows}


def row(case: Case) -> dict[str, object]:
    """All figures of a case."""
    stream = _stream(case)
    found = {name: getattr(case, name) for name in ("law", "keys", "entrant", "workers", "sources", "total")}
    return found | _shares(case, stream) | _costs(case, stream) | _announcing(case, stream)


def _stream(case: Case) -> Stream:
    law, numbers = STREAMS[case.law]
    count = case.panes * case.tuples
    draws = np.random.default_rng(SEED).random(count)
    ranks = LAWS[law].made(case.keys, SEED, **numbers).ranks(draws, 0).astype(np.int64)
    keys = labels(np.arange(case.keys)).cast(pa.binary())
    hashes = hash_keys(keys)[ranks]
    times = np.arange(count) * SLIDE // case.tuples
    workers, source = np.empty(count, np.int32), np.arange(count, dtype=np.int32) % np.int32(case.sources)
    entrant, options = ENTRANTS[case.entrant]
    given: dict[str, Any] = fitted(entrant, options, window_ms=SPAN * SLIDE, slide_ms=SLIDE)
    for number in range(case.sources):
        mine = create(entrant, workers=case.workers, seed=SEED, source=number, sources=case.sources, **given)
        at = np.flatnonzero(source == number)
        workers[at] = mine.assign(hashes[at], times[at])
    home = candidate(hashes, 1, case.workers, SEED)
    return Stream(keys, hashes, ranks, times // SLIDE, workers, home, source)


def _shares(case: Case, stream: Stream) -> dict[str, object]:
    """How many results could be finished at home, and how many announcements that takes, exactly."""
    there = np.zeros((case.panes, case.keys), np.bool_)
    away = np.zeros((case.sources, case.panes, case.keys), np.bool_)
    there[stream.panes, stream.ranks] = True
    out = stream.workers != stream.home
    away[stream.source[out], stream.panes[out], stream.ranks[out]] = True
    results = finished = 0
    for last in range(case.warm, case.panes):
        window = slice(last - SPAN + 1, last + 1)
        held = there[window].any(axis=0)
        results += int(held.sum())
        finished += int((held & ~away[:, window].any(axis=(0, 1))).sum())
    measured = stream.panes >= case.warm
    return {
        "results": results,
        "finished_at_home": round(finished / results, 4),
        "tuples_at_home": round(1 - float(out[measured].mean()), 4),
        "announcements_per_million": _per_million(case, int(away[:, case.warm :].sum())),
        "keys_a_pane": int(there[case.warm :].sum()) // case.measured,
    }


def _costs(case: Case, stream: Stream) -> dict[str, object]:
    """CPU seconds and bytes per million tuples, of today's way and with forwarding. Results must be as many."""
    aggregates = {"n": "count", "total": case.total}
    query = Query(window=SPAN * SLIDE, slide=SLIDE, aggregates=aggregates, types={"x": "int64"})
    plan = AggregatePlan.of(query)
    today, forwarding = _Today(plan, case), _Forwarding(plan, case)
    for pane in range(case.panes):
        if pane == case.warm:
            today.begin()
            forwarding.begin()
        for block in range(case.blocks):
            partials = _combined(plan, case, stream, pane * case.blocks + block)
            announced = _announced(case, stream, pane * case.blocks + block)
            today.step(partials)
            forwarding.add(announced, pane)
            forwarding.step(partials)
        today.close(pane)
        forwarding.close(pane)
    if today.rows != forwarding.rows:
        raise AssertionError(f"{forwarding.rows} results with forwarding, {today.rows} without")
    found: dict[str, object] = {}
    for name, way in (("today", today), ("forwarding", forwarding)):
        cpu = {part: round(_per_million(case, seconds), 3) for part, seconds in way.cpu.items()}
        found[name] = {
            "cpu": cpu | {"all": round(sum(cpu.values()), 3)},
            "partials": _per_million(case, way.partials),
            "blob_kilobytes": _per_million(case, way.sent / 1e3),
            "state_kilobytes": _per_million(case, way.moved / 1e3),
            "state_held_kilobytes": way.held // 1000,
        }
    return found


def _block(case: Case, number: int) -> slice:
    size = case.tuples // case.blocks
    return slice(number * size, (number + 1) * size)


def _combined(plan: AggregatePlan, case: Case, stream: Stream, number: int) -> list[pa.Table]:
    """The partials of each worker of one micro-batch. Both ways have the same."""
    some = _block(case, number)
    workers = stream.workers[some]
    order = np.argsort(workers, kind="stable")
    bounds = np.searchsorted(workers[order], np.arange(case.workers + 1))
    keys = stream.keys.take(pa.array(stream.ranks[some][order]))
    rows = pa.table(
        [pa.array(stream.panes[some][order]), keys, pa.array(stream.ranks[some][order] % 1_000)],
        schema=plan.frame_schema,
    )
    return [plan.combine(rows.slice(start, stop - start)) for start, stop in pairwise(bounds.tolist())]


def _announced(case: Case, stream: Stream, number: int) -> list[UInt64s]:
    """The announced keys' hashes by home, of one micro-batch."""
    some = _block(case, number)
    out = stream.workers[some] != stream.home[some]
    hashes, at = np.unique(stream.hashes[some][out], return_index=True)
    home = stream.home[some][out][at]
    return [hashes[home == worker] for worker in range(case.workers)]


class _Held:
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
        self._step = advance_totals if plan.invertible else advance_tree

    def add(self, rows: pa.Table, pane: int) -> None:
        """Partials of one pane, merged with what is there. As in the reducer, state is saved once a micro-batch."""
        if rows.num_rows:
            self._bucket.append((0, pane), self._plan.merge([rows.drop_columns(["pane"])]))
            self.save()

    def window(self, pane: int) -> pa.Table:
        """The window that ends with this pane."""
        return self._step(self._plan, self._bucket, pane)

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
class _Way:
    """cpu: seconds by part. partials, sent: to reducers, rows and bytes. rows: results. offset: of the next blob."""

    plan: AggregatePlan
    case: Case
    cpu: dict[str, float] = field(default_factory=dict)
    partials: int = 0
    sent: int = 0
    rows: int = 0
    offset: int = 0

    def __post_init__(self) -> None:
        self.buckets = [_Held(self.plan) for _ in range(BUCKETS)]
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
    def held(self) -> int:
        """Bytes of state at the end."""
        return sum(held.size for held in self._states())

    def _states(self) -> list[_Held]:
        return self.buckets

    def _all_moved(self) -> int:
        return sum(held.memory.moved for held in self._states())

    def _note(self, part: str, began: float) -> None:
        self.cpu[part] = self.cpu.get(part, 0.0) + time.process_time() - began

    def _blobs(self, tables: Sequence[pa.Table], hashes: UInt64s) -> list[list[bytes]]:
        """The blobs of these partials by bucket, encoded as the combiner does it."""
        whole = pa.concat_tables(tables)
        of = bucket_of(hashes, BUCKETS).astype(np.int64)
        counts = np.bincount(of, minlength=BUCKETS)
        if whole.num_rows:
            whole = whole.take(pa.array(np.argsort(of, kind="stable")))
        made: list[list[bytes]] = []
        start = 0
        for bucket, count in enumerate(counts.tolist()):
            header = BlobHeader(
                fingerprint="f",
                topic_id="t",
                bucket=bucket,
                buckets=BUCKETS,
                input_partitions=1,
                routed_partitions=self.case.workers,
                segments=(Segment(0, self.offset, self.offset, count, 0, count, 0),),
                marks=np.zeros((1, 1), np.int64),
                lanes=records(0, LANE),
            )
            parts = blob_parts(whole.slice(start, count), header, LARGEST_BLOB)
            made.append([part.data for part in parts])
            start += count
        self.offset += 1
        self.partials += whole.num_rows
        self.sent += sum(len(data) for parts in made for data in parts)
        return made

    def _decoded(self, blobs: Sequence[bytes]) -> pa.Table:
        opened = [decode_blob(data, fingerprint="f") for data in blobs]
        return pa.Table.from_batches([blob.batch for blob in opened], schema=self.plan.partial_schema)

    def _emit(self, table: pa.Table, pane: int) -> None:
        bounds = ((pane + 1) * SLIDE - SPAN * SLIDE, (pane + 1) * SLIDE)
        for rows in sliced(table):
            self.rows += result_rows(self.plan, rows, bounds).num_rows


class _Today(_Way):
    """Every partial goes to a reducer."""

    def step(self, partials: list[pa.Table]) -> None:
        """One micro-batch."""
        began = time.process_time()
        hashes = hash_keys(pa.concat_tables(partials)["key"])
        blobs = self._blobs(partials, hashes)
        self._note("combiner", began)
        began = time.process_time()
        for bucket, mine in zip(self.buckets, blobs, strict=True):
            rows = self._decoded(mine)
            if rows.num_rows:
                bucket.add(rows, int(rows["pane"][0].as_py()))
        self._note("reducer", began)

    def close(self, pane: int) -> None:
        """Emit the windows that end with this pane."""
        began = time.process_time()
        for bucket in self.buckets:
            self._emit(bucket.window(pane), pane)
            bucket.save()
        self._note("reducer", began)


class _Forwarding(_Way):
    """A worker keeps what it is home to."""

    def __post_init__(self) -> None:
        super().__post_init__()
        states = min(self.case.states, self.case.workers)
        self.homes = [_Held(self.plan) for _ in range(states)]
        self.announced: list[dict[int, list[UInt64s]]] = [{} for _ in range(states)]

    def _states(self) -> list[_Held]:
        return [*self.buckets, *self.homes]

    def add(self, announced: list[UInt64s], pane: int) -> None:
        """Take in announcements by home."""
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
        blobs = self._blobs(
            [self.plan.partial_schema.empty_table(), *away],
            np.concatenate([np.empty(0, np.uint64), *away_hashes]),
        )
        self._note("combiner", began)
        began = time.process_time()
        for number, held in enumerate(self.homes):
            rows = pa.concat_tables(split[number :: len(self.homes)])
            if rows.num_rows:
                held.add(rows, int(rows["pane"][0].as_py()))
        self._note("home", began)
        began = time.process_time()
        for bucket, mine in zip(self.buckets, blobs, strict=True):
            rows = self._decoded(mine)
            if rows.num_rows:
                bucket.add(rows, int(rows["pane"][0].as_py()))
        self._note("reducer", began)

    def close(self, pane: int) -> None:
        """Finish what home may finish, hand on the rest of the windows, and reduce that."""
        began = time.process_time()
        handed, handed_hashes = [self.plan.partial_schema.empty_table()], [np.empty(0, np.uint64)]
        for held, announced in zip(self.homes, self.announced, strict=True):
            table = held.window(pane)
            held.save()
            announced.pop(pane - SPAN, None)
            known = np.concatenate(
                [np.empty(0, np.uint64), *(one for each in announced.values() for one in each)]
            )
            if len(known):
                hashes = hash_keys(table["key"])
                kept = ~np.isin(hashes, np.unique(known))
                if not kept.all():
                    rest = table.filter(pa.array(~kept))
                    handed.append(rest.add_column(0, "pane", pa.array(np.full(rest.num_rows, pane))))
                    handed_hashes.append(hashes[~kept])
                    table = table.filter(pa.array(kept))
            self._emit(table, pane)
        blobs = self._blobs(handed, np.concatenate(handed_hashes))
        self._note("home", began)
        began = time.process_time()
        for bucket, mine in zip(self.buckets, blobs, strict=True):
            windows, totals = self._decoded(mine), bucket.window(pane)
            if windows.num_rows:
                totals = self.plan.merge([totals, windows.drop_columns(["pane"])])
            self._emit(totals, pane)
            bucket.save()
        self._note("reducer", began)


def _announcing(case: Case, stream: Stream) -> dict[str, object]:
    """What the partitioner spends on announcements: CPU seconds and bytes per million tuples, announced once per block."""
    size, rows, began = case.tuples // case.blocks, 0, time.process_time()
    for number in range(case.warm * case.blocks, case.panes * case.blocks):
        some = slice(number * size, (number + 1) * size)
        home = candidate(stream.hashes[some], 1, case.workers, SEED)
        out = np.flatnonzero(home != stream.workers[some])
        if len(out):
            hashes, at = np.unique(stream.hashes[some][out], return_index=True)
            where = home[out][at].argsort(kind="stable")
            rows += len(hashes[where])
    return {
        "announcing_cpu": round(_per_million(case, time.process_time() - began), 3),
        "announced_rows_by_block": _per_million(case, rows),
        "announced_kilobytes": _per_million(case, rows * 16 / 1e3),
    }


def _per_million(case: Case, number: float) -> float:
    return round(number / (case.measured * case.tuples) * 1e6, 4)
