"""Unit costs of frames, blobs and lanes, measured in memory with the pipeline of the growth scenarios."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from statistics import median

import numpy as np
import pyarrow as pa

from benchmarks.cores.growth import SLIDE, TASKS, Pipeline
from benchmarks.scale.timing import cpu, fitted
from evenflow.numeric.arrays import no_rows, records
from evenflow.twostep import combine_task, reduce_windows
from evenflow.wire import (
    LANE,
    MARKS,
    OFFSETS,
    BlobHeader,
    FrameHeader,
    FramePacker,
    Segment,
    decode_blob,
    encode_blob,
    records_of,
)

_RUN = 100
_FEW, _MANY = 5, 50


def frame_costs(*, smoke: bool) -> dict[str, float]:
    """The units header_packed, frame_packed, frame_bytes, frame_decoded, header_decoded and
    tuple_combined.
    """
    pipeline = Pipeline(routed=1_000, inputs=100, buckets=8)
    repetitions = 3 if smoke else 9
    few, many = (_rows(pipeline, rows) for rows in (_FEW, _MANY))
    packer = _packer(pipeline, 0)
    sizes = [len(packer.pack(batch, sequence=0)) for batch in (few, many)]
    row_bytes = (sizes[1] - sizes[0]) / (_MANY - _FEW)
    return {
        "header_packed": cpu(lambda: _packer(pipeline, 0), calls=_RUN, repetitions=repetitions),
        "frame_packed": cpu(lambda: packer.pack(few, sequence=0), calls=_RUN, repetitions=repetitions),
        "frame_bytes": sizes[0] - _FEW * row_bytes,
        **_combining(pipeline, 40 if smoke else 400, repetitions),
    }


def row_bytes() -> int:
    """Bytes of a row in a frame. The row has a key (8 bytes), a pane and one whole number."""
    pipeline = Pipeline()
    packer = _packer(pipeline, 0)
    few, many = (len(packer.pack(_rows(pipeline, rows), sequence=0)) for rows in (_FEW * 100, _MANY * 100))
    return round((many - few) / (100 * (_MANY - _FEW)))


def _combining(pipeline: Pipeline, frames: int, repetitions: int) -> dict[str, float]:
    """Units of the combiner, as differences.

    The same rows come in many frames and in a tenth as many, which gives the cost of a frame. They come with
    one header and with more headers than are remembered, which gives the cost of a header.
    """

    def seconds(count: int, headers: int) -> float:
        frame_list = list(_frames(pipeline, count, headers, rows=frames * _FEW // count))
        return cpu(
            lambda: combine_task(pipeline.plan, pipeline.layout, [(0, frame_list)]), repetitions=repetitions
        )

    # Few and many frames with one header, then many frames with as many headers.
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
    """Pairs (offset, frame). With several headers each block follows the one before it."""
    batch = _rows(pipeline, rows)
    packers = cycle([_packer(pipeline, block) for block in range(headers)])
    for offset in range(count):
        packer = next(packers) if headers > 1 else _packer(pipeline, offset, same=True)
        yield offset, packer.pack(batch, sequence=offset)


def _packer(pipeline: Pipeline, block: int, *, same: bool = False) -> FramePacker:
    """Packs the frames of block number `block` of input partition 0. `same`: the header only tells, and
    never changes.
    """
    offsets = records_of([(0, 1_000 * block, 1_000 * block + 999)], OFFSETS)
    marks = records(0, MARKS)
    if same:
        offsets, marks = records(0, OFFSETS), records_of([(0, SLIDE, 1_000)], MARKS)
    header = FrameHeader(
        fingerprint="f",
        epoch=1,
        input_partitions=pipeline.inputs,
        routed_partitions=pipeline.routed,
        session=1,
        offsets=offsets,
        marks=marks,
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
"""The blobs that a mark's cost is fitted to: segments, lines of marks, and input partitions of each."""
_PIPELINES = (
    (8, 4, 8),
    (100, 4, 8),
    (100, 100, 8),
    (400, 100, 8),
    (400, 20, 32),
    (400, 100, 32),
    (800, 50, 16),
)
"""The micro-batches that the other costs are fitted to: routed partitions, input partitions and buckets of
each.
"""


def blob_costs(*, smoke: bool) -> dict[str, float]:
    """The units blob, range, segment, lane, bucket, lane_state and mark, from micro-batches without
    tuples.
    """
    repetitions = 3 if smoke else 9
    packed, read = _small_blobs(16 if smoke else 500, repetitions)
    counts, combining, reducing = [], [], []
    for routed, inputs, buckets in _PIPELINES[:3] if smoke else _PIPELINES:
        combine, reduce = _empty_batches(routed, inputs, buckets, repetitions)
        # The cost of blobs is known already. The fit divides by what remains, so that must be above 0.
        combining.append(max(combine - TASKS * buckets * packed, 1e-9))
        reducing.append(max(reduce - TASKS * buckets * read, 1e-9))
        counts.append((routed, inputs, buckets))
    range_, segment_combine, lane = fitted([(r, b * r, r * i) for r, i, b in counts], combining)
    bucket, segment_reduce, state = fitted([(b, b * r, b * r * i) for r, i, b in counts], reducing)
    return {
        "range": range_,
        "blob": packed + read,
        "segment": segment_combine + segment_reduce,
        "mark": _mark_cost(repetitions),
        "lane": lane,
        "bucket": bucket,
        "lane_state": state,
    }


def _small_blobs(tasks: int, repetitions: int) -> tuple[float, float]:
    """CPU seconds to pack a blob of one segment, and to read and merge such a blob. `tasks` blobs are
    merged at once.
    """
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
    """CPU seconds of combine and of reduce. Each routed partition has one frame, which only tells."""
    pipeline = Pipeline(routed=routed, inputs=inputs, buckets=buckets)
    # The first micro-batch meets empty state.
    batches = list(pipeline.batches(repetitions + 1, tuples=0, keys=1))[1:]
    return median(combining for combining, _, _ in batches), median(reducing for _, reducing, _ in batches)


def _mark_cost(repetitions: int) -> float:
    pipeline = Pipeline(routed=1_000, inputs=100, buckets=8)
    rows = no_rows(pipeline.plan.partial_schema)
    counts, seconds = [], []
    for segments, lines, inputs in _BLOBS:
        header = _header(pipeline, segments, lines, inputs)
        seconds.append(cpu(lambda: _there_and_back(rows, header), calls=5, repetitions=repetitions))  # noqa: B023 - `cpu` calls it at once
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
        lanes=records(0, LANE),
    )


def merge_cost(*, smoke: bool) -> dict[str, float]:
    """The unit partial_merged: one more partial in an open pane, including its share of reading the blob."""
    samples = []
    for tuples in (1_000, 3_000) if smoke else (20_000, 200_000):
        pipeline = Pipeline(buckets=2)
        batches = [pipeline.combine(pipeline.frames(tuples=tuples, keys=10**7, close=0))[0] for _ in range(8)]
        rows = _rows_in(batches[1])
        upcoming = iter(batches)
        samples.append((rows, cpu(lambda: pipeline.reduce(next(upcoming)), repetitions=6)))  # noqa: B023 - `cpu` calls it at once
    (few, fast), (many, slow) = samples
    return {"partial_merged": max(0.0, (slow - fast) / (many - few))}


def _rows_in(batch: list[list[bytes]]) -> int:
    return sum(decode_blob(data, fingerprint="f").batch.num_rows for blobs in batch for data in blobs)
