"""Reduce tasks of a fused query (`spark.reduce = "prompt"`):
the combiner's clusters -> a piece for each bucket. Stateless.

`evenflow/twostep/reduce_task.py` says what a reduce task does. Here Spark brings all blobs of a reduce task
to one of its tasks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

import pyarrow as pa
from pyspark.sql import DataFrame

from evenflow.twostep import reduce_task
from spark_consumers.combiner import BLOBS, blob_batch
from spark_consumers.layout import Layout
from spark_consumers.tasks import OnTally, Stopwatch

Batches = Iterable[pa.RecordBatch]


def pieces(clusters: DataFrame, layout: Layout, *, on_tally: OnTally | None) -> DataFrame:
    """Pieces (columns BLOBS) of a stream of the combiner's blobs (columns BLOBS).

    on_tally: each task hands it its time, None if nobody listens.
    """
    assert layout.reduce_tasks is not None
    return clusters.repartition(layout.reduce_tasks, "label").mapInArrow(
        reduce_stream(layout, on_tally), BLOBS
    )


def reduce_stream(layout: Layout, on_tally: OnTally | None) -> Callable[[Batches], Batches]:
    """The function that one Spark task applies to its record batches (columns BLOBS)."""

    def task(batches: Batches) -> Batches:
        watch = Stopwatch()
        blobs: dict[int, list[pa.Buffer]] = defaultdict(list)
        for batch in batches:
            for number, blob in zip(batch.column("bucket").to_pylist(), batch.column("blob"), strict=True):
                blobs[number].append(blob.as_buffer())
        for number, mine in sorted(blobs.items()):
            reduced_blobs = reduce_task(layout.plan, layout, number, mine, on_tally=watch.telling(on_tally))
            yield blob_batch(reduced_blobs, layout.buckets)

    return task
