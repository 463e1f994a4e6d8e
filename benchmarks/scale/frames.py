"""Unit costs of frames, blobs and lanes, in memory, with the pipeline of the growth scenarios."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from statistics import median

import numpy as np
import pyarrow as pa

from benchmarks.growth import SLIDE, TASKS, Pipeline
from benchmarks.scale.timing import cpu, fitted
from evenflow.arrays import no_rows
from evenflow.twostep import combine_task, reduce_windows
from evenflow.wire import BlobHeader, FrameHeader, FramePacker, Segment, decode_blob, encode_blob

_RUN = 100
_FEW, _MANY = 5, 50


def frame_costs(*, smoke: bool) -> dict[str, float]:
    """header_packed, frame_packed, frame_bytes, frame_decoded, header_decoded, tuple_combined."""
    pipeline = Pipeline(routed=1_000, inputs=100, buckets=8)
    repetitions = 3 if smoke else 9
    few, many = (_rows(pipeline, rows) for rows in (_FEW, _MANY))
    packer = _packer(pipeline, 0)
    sizes = [len(packer.pack(batch)) for batch in (few, many)]
    row_bytes = (sizes[1] - sizes[0]) / (_MANY - _FEW)
    return {
        "header_packed": cpu(lambda: _packer(pipeline, 0), calls=_RUN, repetitions=repetitions),
        "frame_packed": cpu(lambda: packer.pack(few), calls=_RUN, repetitions=repetitions),
        "frame_bytes": sizes[0] - _FEW * row_bytes,
        **_combining(pipeline, 40 if smoke else 400, repetitions),
    }


def row_bytes() -> int:
    """Bytes of a row in a frame of key (8 bytes), pane and one whole number."""
    pipeline = Pipeline()
    packer = _packer(pipeline, 0)
    few, many = (len(packer.pack(_rows(pipeline, rows))) for rows in (_FEW * 100, _MANY * 100))
    return round((many - few) / (100 * (_MANY - _FEW)))


def _combining(pipeline: Pipeline, frames: int, repetitions: int) -> dict[str, float]:
    """The same rows in many frames and in a tenth as many. With one header, and with more than are remembered."""

    def seconds(count: int, headers: int) -> float:
        made = list(_frames(pipeline, count, headers, rows=frames * _FEW // count))
        return cpu(lambda: combine_task(pipeline.plan, pipeline.layout, [(0, made)]), repetitions=repetitions)

    few, many, strange = seconds(frames // 10, 1), seconds(frames, 1), seconds(frames, frames)
    rows = 60 * frames
    large = list(_frames(pipeline, 8, 1, rows=rows))
    whole = cpu(lambda: combine_task(pipeline.plan, pipeline.layout, [(0, large)]), repetitions=repetitions)
    return {
        "frame_decoded": max(0.0, (many - few) / (frames - frames // 10)),
        "header_decoded": max(0.0, (strange - many) / frames),
        "tuple_combined": whole / (8 * rows),
    }


def _frames(pipeline: Pipeline, count: int, headers: int, *, rows: int) -> Iterator[tuple[int, bytes]]:
    """(offset, frame): each of the headers' blocks follows the one before it."""
    batch = _rows(pipeline, rows)
    packers = cycle([_packer(pipeline, block) for block in range(headers)])
    for offset in range(count):
        packer = next(packers) if headers > 1 else _packer(pipeline, offset, same=True)
        yield offset, packer.pack(batch)


def _packer(pipeline: Pipeline, block: int, *, same: bool = False) -> FramePacker:
    """A block of one input partition, after those before it. `same`: one that only tells where the reader is."""
    offsets = np.array([(0, 1_000 * block, 1_000 * block + 999)], np.int64)
    told = np.empty((0, 3), np.int64)
    if same:
        offsets, told = told, np.array([(0, SLIDE, 1_000)], np.int64)
    header = FrameHeader(
        fingerprint="f",
        epoch=1,
        input_partitions=pipeline.inputs,
        routed_partitions=pipeline.routed,
        offsets=offsets,
        told=told,
    )
    return FramePacker(header, pipeline.plan.frame_schema)


def _rows(pipeline: Pipeline, rows: int) -> pa.RecordBatch:
    keys = np.random.default_rng(1).integers(0, 100_000, rows)
    columns = [
        np.full(rows, pipeline.pane),
        pa.array([b"%08d" % key for key in keys.tolist()], pa.binary()),
        np.ones(rows, np.int64),
    ]
    return pa.record_batch(columns, schema=pipeline.plan.frame_schema)


# ---- blobs and buckets

_BLOBS = ((16, 1, 100), (16, 16, 100), (125, 125, 100), (125, 1, 100))
"""Segments, lines of marks and input partitions of the blobs that a mark's cost is fitted to."""
_PIPELINES = (
    (8, 4, 8),
    (100, 4, 8),
    (100, 100, 8),
    (400, 100, 8),
    (400, 20, 32),
    (400, 100, 32),
    (800, 50, 16),
)
"""Routed and input partitions and buckets of the micro-batches that the others are fitted to."""


def blob_costs(*, smoke: bool) -> dict[str, float]:
    """Of micro-batches without tuples: blob, range, segment, lane, bucket, lane_state, and mark."""
    repetitions = 3 if smoke else 9
    packed, read = _small_blobs(16 if smoke else 500, repetitions)
    counts, combining, reducing = [], [], []
    for routed, inputs, buckets in _PIPELINES[:3] if smoke else _PIPELINES:
        combine, reduce = _empty_batches(routed, inputs, buckets, repetitions)
        combining.append(max(combine - TASKS * buckets * packed, 1e-9))
        reducing.append(max(reduce - TASKS * buckets * read, 1e-9))
        counts.append((routed, inputs, buckets))
    range_, made, lane = fitted([(r, b * r, r * i) for r, i, b in counts], combining)
    bucket, taken, state = fitted([(b, b * r, b * r * i) for r, i, b in counts], reducing)
    return {
        "range": range_,
        "blob": packed + read,
        "segment": made + taken,
        "mark": _mark_cost(repetitions),
        "lane": lane,
        "bucket": bucket,
        "lane_state": state,
    }


def _small_blobs(tasks: int, repetitions: int) -> tuple[float, float]:
    """CPU seconds to pack a blob of one segment, and to read and merge one of as many as there are tasks."""
    pipeline = Pipeline(routed=tasks, inputs=100, buckets=64)

    def packed(frames: list[tuple[int, bytes]], routed: int) -> list[bytes]:
        return [part.data for part in combine_task(pipeline.plan, pipeline.layout, [(routed, frames)])]

    batches = [
        [packed(frames, routed)[0] for routed, frames in enumerate(pipeline.frames(tuples=0, keys=1))]
        for _ in range(4)
    ]
    upcoming = iter(batches)

    def merge() -> None:
        for _ in reduce_windows(pipeline.plan, pipeline.layout, pipeline.states[0], next(upcoming)):
            pass

    frames = pipeline.frames(tuples=0, keys=1)[0]
    making = cpu(lambda: packed(frames, 0), repetitions=repetitions)
    return making / pipeline.buckets, cpu(merge, repetitions=3) / tasks


def _empty_batches(routed: int, inputs: int, buckets: int, repetitions: int) -> tuple[float, float]:
    """CPU seconds of combine and of reduce for a frame to each routed partition that only tells."""
    pipeline = Pipeline(routed=routed, inputs=inputs, buckets=buckets)
    found = list(pipeline.batches(repetitions + 1, tuples=0, keys=1))[1:]
    return median(combining for combining, _, _ in found), median(reducing for _, reducing, _ in found)


def _mark_cost(repetitions: int) -> float:
    pipeline = Pipeline(routed=1_000, inputs=100, buckets=8)
    rows = no_rows(pipeline.plan.partial_schema)
    counts, seconds = [], []
    for segments, lines, inputs in _BLOBS:
        header = _header(pipeline, segments, lines, inputs)
        seconds.append(cpu(lambda: _there_and_back(rows, header), calls=5, repetitions=repetitions))  # noqa: B023
        counts.append((1, segments, lines * inputs))
    return fitted(counts, seconds)[2]


def _there_and_back(rows: pa.RecordBatch, header: BlobHeader) -> None:
    decode_blob(encode_blob(rows, header), fingerprint="f")


def _header(pipeline: Pipeline, segments: int, lines: int, inputs: int) -> BlobHeader:
    marks = 1_000_000 + np.random.default_rng(1).integers(0, 500, (lines, inputs))
    return BlobHeader(
        fingerprint="f",
        topic_id="t",
        bucket=0,
        buckets=pipeline.buckets,
        input_partitions=inputs,
        routed_partitions=pipeline.routed,
        segments=tuple(
            Segment(number, 5_000 + number, 5_100 + number, 0, 0, 0, number % lines)
            for number in range(segments)
        ),
        marks=marks.astype(np.int64),
        lanes=np.empty((0, 4), np.int64),
    )


def merge_cost(*, smoke: bool) -> dict[str, float]:
    """partial_merged: a partial more in an open pane, blobs packed and read."""
    found = []
    for tuples in (1_000, 3_000) if smoke else (20_000, 200_000):
        pipeline = Pipeline(buckets=2)
        batches = [pipeline.combine(pipeline.frames(tuples=tuples, keys=10**7, close=0))[0] for _ in range(8)]
        rows = _rows_in(batches[1])
        upcoming = iter(batches)
        found.append((rows, cpu(lambda: pipeline.reduce(next(upcoming)), repetitions=6)))  # noqa: B023
    (few, fast), (many, slow) = found
    return {"partial_merged": max(0.0, (slow - fast) / (many - few))}


def _rows_in(batch: list[list[bytes]]) -> int:
    return sum(decode_blob(data, fingerprint="f").batch.num_rows for blobs in batch for data in blobs)
