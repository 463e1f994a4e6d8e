"""Unit costs of frames, blobs and lanes, in memory, with the pipeline of the growth scenarios."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

import numpy as np
import pyarrow as pa

from benchmarks.growth import SLIDE, Pipeline
from benchmarks.scale.timing import cpu, fitted
from evenflow.arrays import Int64s, no_rows
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
    """The same rows in many frames and in a tenth as many; with one header, and with more than are remembered."""

    def seconds(count: int, headers: int) -> float:
        made = list(_frames(pipeline, count, headers, rows=frames * _FEW // count))
        return cpu(lambda: combine_task(pipeline.plan, pipeline.layout, [(0, made)]), repetitions=repetitions)

    few, many, strange = seconds(frames // 10, 1), seconds(frames, 1), seconds(frames, frames)
    large = list(_frames(pipeline, 8, 1, rows=100 if smoke_sized(frames) else 25_000))
    tuples = sum(100 if smoke_sized(frames) else 25_000 for _ in large)
    whole = cpu(lambda: combine_task(pipeline.plan, pipeline.layout, [(0, large)]), repetitions=repetitions)
    return {
        "frame_decoded": max(0.0, (many - few) / (frames - frames // 10)),
        "header_decoded": max(0.0, (strange - many) / frames),
        "tuple_combined": whole / tuples,
    }


def smoke_sized(frames: int) -> bool:
    """Whether so few frames are looked at that nothing is to be learned."""
    return frames < _RUN


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

_BLOBS = (
    (1, 1, 4, 0),
    (1, 1, 100, 0),
    (16, 1, 100, 0),
    (16, 16, 100, 0),
    (125, 125, 100, 0),
    (125, 1, 100, 1_600),
    (1, 1, 100, 10_000),
)
"""Segments, lines of marks, input partitions and lanes of the blobs that the fit is made of."""
_BUCKETS = ((8, 4), (200, 4), (200, 100), (1_000, 100))
"""Routed and input partitions of the pipelines whose buckets are measured."""


def blob_costs(*, smoke: bool) -> dict[str, float]:
    """blob, segment, mark, lane: of packing a blob and reading it again; bucket, lane_state: of a bucket's micro-batch."""
    repetitions = 3 if smoke else 9
    pipeline = Pipeline(routed=1_000, inputs=100, buckets=8)
    counts, seconds = [], []
    for segments, lines, inputs, lanes in _BLOBS:
        header = _header(pipeline, segments, lines, inputs, lanes)
        rows = no_rows(pipeline.plan.partial_schema)
        seconds.append(cpu(lambda: _there_and_back(rows, header), calls=5, repetitions=repetitions))  # noqa: B023
        counts.append((1, segments, lines * inputs, lanes))
    blob, segment, mark, lane = fitted(counts, seconds)
    bucket, taken, state = _bucket_costs(repetitions)
    return {
        "blob": blob,
        "segment": segment + taken,
        "mark": mark,
        "lane": lane,
        "bucket": bucket,
        "lane_state": state,
    }


def _there_and_back(rows: pa.RecordBatch, header: BlobHeader) -> None:
    decode_blob(encode_blob(rows, header), fingerprint="f")


def _header(pipeline: Pipeline, segments: int, lines: int, inputs: int, lanes: int) -> BlobHeader:
    random = np.random.default_rng(1)
    marks = 1_000_000 + random.integers(0, 500, (lines, inputs))
    numbers = np.arange(lanes)
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
        lanes=np.stack([numbers // inputs, numbers % inputs, numbers * 7, numbers * 7 + 50], axis=1).astype(
            np.int64
        ),
    )


def _bucket_costs(repetitions: int) -> tuple[float, float, float]:
    """Of a bucket in a micro-batch without tuples: what is fixed, what a segment and what a lane costs; reading apart."""
    counts, seconds = [], []
    for routed, inputs in _BUCKETS:
        pipeline = Pipeline(routed=routed, inputs=inputs, buckets=8)
        batches: list[list[list[bytes]]] = []
        for _ in range(repetitions + 1):
            batches.append(pipeline.combine(pipeline.frames(tuples=0, keys=1))[0])
        upcoming = iter(batches)

        def merge(pipeline: Pipeline = pipeline, upcoming: Iterator[list[list[bytes]]] = upcoming) -> None:
            for state, blobs in zip(pipeline.states, next(upcoming), strict=True):
                for _ in reduce_windows(pipeline.plan, pipeline.layout, state, blobs):
                    pass

        whole = cpu(merge, repetitions=repetitions)
        read = cpu(lambda: _read(batches[0]), repetitions=repetitions)  # noqa: B023
        seconds.append(max(1e-9, whole - read) / pipeline.buckets)
        counts.append((1, routed, routed * inputs))
    bucket, segment, lane = fitted(counts, seconds)
    return bucket, segment, lane


def _read(batch: list[list[bytes]]) -> None:
    for blobs in batch:
        for data in blobs:
            decode_blob(data, fingerprint="f")


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


def lanes_bytes(routed: int, inputs: int, buckets: int) -> Int64s:
    """Bytes of the lanes that one bucket keeps, that all keep, and that all combiners together do."""
    one = 8 * (routed + routed * inputs + -(-routed // buckets) * inputs)
    return np.array([one, one * buckets, 3 * 8 * inputs * routed], np.int64)
