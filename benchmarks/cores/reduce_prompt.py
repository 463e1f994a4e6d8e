"""Two ways of bringing clusters to their bucket, compared: `spark.reduce = "hash"` and `"prompt"`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.cores.growth import SLIDE, Memory
from evenflow.aggregates import AggregatePlan
from evenflow.generation.rank_laws import RANKS, Zipf
from evenflow.keys import hash_keys
from evenflow.numeric.arrays import Int32s, UInt64s
from evenflow.partitioners import create
from evenflow.settings import Query
from evenflow.twostep import Layout, combine_task, reduce_task, reduce_windows
from evenflow.wire import MARKS, OFFSETS, FrameHeader, encode_frame, records_of

ID = "reduce-prompt"
WHAT = (
    "CPU seconds and spread of the reduce tasks, clusters by hash or by Prompt's Alg. 3 (8 workers, 8 tasks,"
    " Zipf)"
)
SEED = 7
WORKERS = BUCKETS = 8


def run(*, smoke: bool) -> dict[str, Any]:
    """A row for each skew and each way. Batches are routed by `prompt`, one batch a micro-batch and pane."""
    tuples, keys, batches = (4_000, 1_000, 2) if smoke else (200_000, 100_000, 8)
    rows = []
    for skew in (0.5, 1.0, 1.5):
        ways = {name: _ReduceWay(name) for name in ("hash", "prompt")}
        partitioner = create("prompt", workers=WORKERS, seed=SEED)
        law, draw = Zipf(keys, skew), np.random.default_rng([SEED, RANKS])
        names = pa.array([b"%08d" % key for key in range(keys)], pa.binary())
        hashes = hash_keys(names)
        # The first batch compiles the kernels and fills the caches. It does not count.
        for batch in range(batches + 1):
            ranks = law.ranks(draw.random(tuples), 0)
            times = np.full(tuples, batch * SLIDE, np.int64)
            workers = partitioner.assign_batch(hashes[ranks], times)
            frames = _frames(ways["hash"].plan, batch, names.take(pa.array(ranks)), hashes[ranks], workers)
            # In turns, so that a passing load meets both ways alike.
            for way in ways.values():
                way.step(frames, counts=batch > 0)
        results = [way.results for way in ways.values()]
        rows += [{"zipf": skew, "reduce": name, **way.figures(tuples)} for name, way in ways.items()]
        if results[0] != results[1]:
            raise AssertionError(f"Zipf {skew}: the two ways have other results")
    return {"tuples_a_batch": tuples, "keys": keys, "batches": batches, "rows": rows}


@dataclass
class _ReduceWay:
    """Combiner, reduce tasks if there are any, and buckets, with what each micro-batch took."""

    name: str
    """"hash" or "prompt". Only "prompt" has reduce tasks."""
    results: int = 0
    """Tuples that the result rows count."""
    combine: list[float] = field(default_factory=list)
    """CPU seconds of the combiner in each micro-batch."""
    tasks: list[list[float]] = field(default_factory=list)
    """CPU seconds of each reduce task in each micro-batch. 0 without reduce tasks."""
    clusters: list[list[int]] = field(default_factory=list)
    """Partial rows of each bucket in each micro-batch."""
    sizes: list[list[int]] = field(default_factory=list)
    """Tuples in those rows."""
    buckets: list[list[float]] = field(default_factory=list)
    """CPU seconds of each bucket in each micro-batch."""

    def __post_init__(self) -> None:
        query = Query(
            window=4 * SLIDE, slide=SLIDE, aggregates={"n": "count", "s": "sum(x)"}, types={"x": "int64"}
        )
        self.plan = AggregatePlan.of(query)
        self.layout = Layout(
            fingerprint="f",
            topic_id="t",
            input_partitions=1,
            routed_partitions=WORKERS,
            buckets=BUCKETS,
            max_bytes=1_000_000,
            reduce_tasks=BUCKETS if self.name == "prompt" else None,
        )
        self.states = [Memory() for _ in range(BUCKETS)]

    def step(self, frames: list[tuple[int, bytes]], *, counts: bool) -> None:
        """Run one micro-batch. counts: whether its figures count."""
        sent: list[list[bytes]] = [[] for _ in range(BUCKETS)]

        def combine() -> None:
            for worker, frame in enumerate(frames):
                for blob in combine_task(self.plan, self.layout, [(worker, [frame])]):
                    sent[blob.bucket].append(blob.data)

        combined = _seconds(combine)
        tables = [pa.Table.from_batches([_rows(blob) for blob in blobs]) for blobs in sent]
        clusters = [table.num_rows for table in tables]
        sizes = [int(np.sum(table["rows"].to_numpy())) for table in tables]
        tasks, pieces = [0.0] * BUCKETS, sent
        if self.layout.reduce_tasks is not None:
            pieces = [[] for _ in range(BUCKETS)]
            tasks = [_seconds(partial(self._merge, task, sent[task], pieces)) for task in range(BUCKETS)]
        buckets = [_seconds(partial(self._reduce, at, pieces[at])) for at in range(BUCKETS)]
        if counts:
            self.combine.append(combined)
            self.tasks.append(tasks)
            self.clusters.append(clusters)
            self.sizes.append(sizes)
            self.buckets.append(buckets)

    def _merge(self, task: int, blobs: list[bytes], pieces: list[list[bytes]]) -> None:
        for piece in reduce_task(self.plan, self.layout, task, blobs):
            pieces[piece.bucket].append(piece.data)

    def _reduce(self, bucket: int, blobs: list[bytes]) -> None:
        for table in reduce_windows(self.plan, self.layout, self.states[bucket], blobs):
            self.results += sum(table["n"].to_pylist())

    def figures(self, tuples: int) -> dict[str, float]:
        """CPU seconds per million tuples by step, and fullest over mean of what the tasks get. Medians
        over batches.
        """
        first = self.tasks if self.layout.reduce_tasks is not None else self.buckets
        million = 1e6 / tuples
        return {
            "combine": round(median(self.combine) * million, 3),
            "reduce_tasks": round(median(map(sum, self.tasks)) * million, 3),
            "buckets": round(median(map(sum, self.buckets)) * million, 3),
            "fullest_time": round(median(map(_fullest, first)), 3),
            "fullest_clusters": round(median(map(_fullest, self.clusters)), 4),
            "fullest_tuples": round(median(map(_fullest, self.sizes)), 4),
            "clusters": round(median(map(sum, self.clusters))),
        }


def _frames(
    plan: AggregatePlan, batch: int, keys: pa.Array, hashes: UInt64s, workers: Int32s
) -> list[tuple[int, bytes]]:
    """Pairs (offset, frame) of a batch by worker. The batch is one pane, which it closes."""
    pairs = np.unique(np.stack([hashes, workers.astype(np.uint64)]), axis=1)
    distinct, holders = np.unique(pairs[0], return_counts=True)
    header = FrameHeader(
        fingerprint="f",
        epoch=0,
        input_partitions=1,
        routed_partitions=WORKERS,
        session=1,
        # One input record a batch, so an offset is the number of a batch.
        offsets=records_of([(0, batch, batch)], OFFSETS),
        marks=records_of([(0, (batch + 1) * SLIDE, batch + 1)], MARKS),
        batch=batch,
        # Keys in several data blocks: the partial results of each must meet in one reduce task.
        split=distinct[holders > 1],
    )
    frames = []
    for worker in range(WORKERS):
        mine = keys.take(pa.array(np.flatnonzero(workers == worker)))
        columns = [np.full(len(mine), batch, np.int64), mine, np.ones(len(mine), np.int64)]
        rows = pa.record_batch(columns, schema=plan.frame_schema)
        frames.append((batch, encode_frame(rows, header, sequence=batch)))
    return frames


def _rows(blob: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(blob) as reader:
        return reader.read_next_batch().replace_schema_metadata(None)


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _fullest(values: list[float] | list[int]) -> float:
    return max(values) / (sum(values) / len(values))
