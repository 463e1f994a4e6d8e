"""Both steps without a broker: frames in, results out; and the same windows from plain dicts."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from evenflow.aggregates import AggregatePlan
from evenflow.keys import hash_keys
from evenflow.numeric.arrays import UInt64s
from evenflow.settings import Query
from evenflow.twostep import Layout, combine_task, reduce, reduce_task
from evenflow.windows import END_MARK
from evenflow.wire import MARKS, OFFSETS, FrameHeader, encode_frame, records_of

SLIDE = 10
INPUTS, ROUTED = 2, 3
SESSION = 7
LAYOUT: dict[str, Any] = {"fingerprint": "f", "input_partitions": INPUTS, "routed_partitions": ROUTED}
INVERTIBLE = {"n": "count", "s": "sum(i)", "m": "mean(i)"}
EVERYTHING = {"n": "count", "s": "sum(f)", "m": "mean(i)", "lo": "min(i)", "hi": "max(f)"}
Row = tuple[int, bytes, int | None, float | None]


class Dict(dict[str, bytes]):
    """A BucketState that counts its writes."""

    puts = 0

    def put(self, name: str, value: bytes) -> None:
        self.puts += 1
        self[name] = bytes(value)

    def delete(self, name: str) -> None:
        del self[name]


def plan_of(aggregates: dict[str, str], panes: int, **more: Any) -> AggregatePlan:
    types = {"i": "int64"} if any("(i)" in spec for spec in aggregates.values()) else {}
    query = Query(window=panes * SLIDE, slide=SLIDE, aggregates=aggregates, types=types, **more)
    return AggregatePlan.of(query)


@dataclass
class Pipe:
    """Frames in, results out, without a broker: one offset counter per routed partition.

    reduce_tasks: how many merge clusters before the buckets do, None for none. forwarding_seed: of the family
    whose F_1 is the bucket of a key, with forwarding.
    """

    plan: AggregatePlan
    buckets: int = 2
    max_bytes: int = 1_000_000
    reduce_tasks: int | None = None
    forwarding_seed: int | None = None
    tasks: tuple[tuple[int, ...], ...] = ((0, 2), (1,))
    offsets: list[int] = field(default_factory=lambda: [0] * ROUTED)
    numbers: list[int] = field(default_factory=lambda: [0] * ROUTED)
    frames: list[list[tuple[int, bytes]]] = field(default_factory=lambda: [[] for _ in range(ROUTED)])
    states: list[Dict] = field(default_factory=list)
    history: list[list[bytes]] = field(default_factory=list)
    found: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.states = [Dict() for _ in range(self.buckets)]
        self.history = [[] for _ in range(self.buckets)]

    def write(
        self,
        routed: int,
        rows: list[Row],
        marks: dict[int, int],
        *,
        came: int | None = None,
        batch: int | None = None,
        split: UInt64s | None = None,
        segments: list[int] | None = None,
    ) -> None:
        """segments: rows of each of the workers that share the partition. None: it has one."""
        columns = {"pane": [r[0] for r in rows], "key": [r[1] for r in rows], "i": [r[2] for r in rows]}
        columns["f"] = [r[3] for r in rows]
        columns["time"] = [r[0] * SLIDE for r in rows]
        schema = self.plan.frame_schema
        tuples = pa.record_batch(
            [pa.array(columns[f.name.removeprefix("v:")], f.type) for f in schema], schema=schema
        )
        at = self.offsets[routed]
        header = FrameHeader(
            epoch=0,
            offsets=records_of([(partition, at, at) for partition in marks], OFFSETS),
            marks=records_of([(partition, mark, at + 1) for partition, mark in marks.items()], MARKS),
            arrival_time=came,
            session=SESSION,
            batch=batch,
            split=split,
            shared_by=1 if segments is None else len(segments),
            **LAYOUT,
        )
        number = self.numbers[routed]
        shares = None if segments is None else np.array(segments)
        self.frames[routed].append((at, encode_frame(tuples, header, sequence=number, segments=shares)))
        self.numbers[routed] += 1
        self.offsets[routed] += 2  # transaction markers leave gaps

    def combine(self) -> list[list[bytes]]:
        """Blobs per bucket of the frames written since."""
        blobs = self.clusters()
        return blobs if self.reduce_tasks is None else self.merge(blobs)

    def clusters(self) -> list[list[bytes]]:
        """Blobs per receiver of the combiner, of the frames written since."""
        blobs: list[list[bytes]] = [[] for _ in range(self.layout.receivers)]
        for task in self.tasks:
            for blob in combine_task(self.plan, self.layout, [(r, self.frames[r]) for r in task]):
                blobs[blob.bucket].append(blob.data)
        self.frames = [[] for _ in range(ROUTED)]
        return blobs

    def merge(self, clusters: list[list[bytes]]) -> list[list[bytes]]:
        """Pieces per bucket, of the clusters of each reduce task."""
        pieces: list[list[bytes]] = [[] for _ in range(self.buckets)]
        for task, blobs in enumerate(clusters):
            for blob in reduce_task(self.plan, self.layout, task, blobs):
                pieces[blob.bucket].append(blob.data)
        return pieces

    @property
    def layout(self) -> Layout:
        """Of the topic "t"."""
        return Layout(
            topic_id="t",
            buckets=self.buckets,
            max_bytes=self.max_bytes,
            reduce_tasks=self.reduce_tasks,
            forwarding_seed=self.forwarding_seed,
            **LAYOUT,
        )

    def reduce(self, blobs: list[list[bytes]]) -> None:
        for bucket, data in enumerate(blobs):
            result = reduce(self.plan, self.layout, self.states[bucket], data)
            self.history[bucket] += data
            of = self.layout.bucket_of(hash_keys(result["key"]))
            assert (of == bucket).all()
            self.found += result.to_pylist()

    def step(self) -> None:
        self.reduce(self.combine())

    def end(self) -> None:
        for routed in range(ROUTED):
            self.write(routed, [], dict.fromkeys(range(INPUTS), END_MARK))
        self.step()

    def results(self) -> dict[tuple[int, bytes], dict[str, Any]]:
        """Every emitted row by (window start, key); emitted once each."""
        rows = {}
        for row in self.found:
            at = (row["window_start"], row["key"])
            assert at not in rows, f"{at} was emitted twice"
            assert row["window_end"] - row["window_start"] == self.plan.window
            rows[at] = {name: row[name] for name in self.plan.output_schema.names}
        return rows


def direct(plan: AggregatePlan, rows: list[Row]) -> dict[tuple[int, bytes], dict[str, Any]]:
    """The same windows from plain dicts."""
    windows: dict[tuple[int, bytes], list[Row]] = defaultdict(list)
    for row in rows:
        for last in range(row[0], row[0] + plan.panes_per_window):
            start = (last + 1) * SLIDE - plan.window
            if plan.emit_from is None or start >= plan.emit_from:
                windows[start, row[1]].append(row)
    how = {
        "sum": lambda values: _fitting(sum(values)),
        "min": min,
        "max": max,
        "mean": lambda values: float(sum(values)) / len(values),
    }
    results: dict[tuple[int, bytes], dict[str, Any]] = {}
    for at, members in windows.items():
        results[at] = {}
        for label, function, call in plan.outputs:
            values = [row[2] if call.column == "i" else row[3] for row in members]
            present = [value for value in values if value is not None]
            if function.name == "count":
                results[at][label] = len(members)
            else:
                results[at][label] = how[function.name](present) if present else None
    return results


def _fitting(value: Any) -> Any:
    """A sum of int64 values beyond int64 is null."""
    return value if isinstance(value, float) or -(2**63) <= value < 2**63 else None


KEYS = st.sampled_from([b"", b"a", b"b", b"c", b"\xff\x00", b"k" * 70])
VALUES = st.tuples(
    st.one_of(st.none(), st.integers(-(2**40), 2**40), st.sampled_from([-(2**63), 1 - 2**63, 2**63 - 1])),
    st.one_of(st.none(), st.integers(-(2**20), 2**20).map(lambda n: n / 8)),
)


@st.composite
def streams(draw: st.DrawFn, ahead: int = 4) -> list[list[tuple[int, list[Row], int]]]:
    """Micro-batches of (routed partition, rows, mark of the frame): time moves on, no row is late.

    ahead: by how many panes a row is ahead of the mark at most.
    """
    batches = []
    mark = draw(st.sampled_from([-1000, 0]))
    for _ in range(draw(st.integers(1, 6))):
        batch = []
        for _ in range(draw(st.integers(0, 4))):
            drawn = draw(st.lists(st.tuples(st.integers(0, ahead), KEYS, VALUES), max_size=6))
            rows = [(mark // SLIDE + after, key, i, f) for after, key, (i, f) in drawn]
            batch.append((draw(st.integers(0, ROUTED - 1)), rows, mark))
            mark += draw(st.sampled_from([0, 1, SLIDE, 3 * SLIDE, 50 * SLIDE]))
        batches.append(batch)
    return batches


def feed(pipe: Pipe, batch: list[tuple[int, list[Row], int]], *, came: int | None = None) -> list[Row]:
    """Write one micro-batch: every mark goes to every routed partition, as the partitioner does it."""
    sent = []
    for routed, rows, mark in batch:
        for other in range(ROUTED):
            mine = rows if other == routed else []
            pipe.write(other, mine, dict.fromkeys(range(INPUTS), mark), came=came)
        sent += rows
    return sent
