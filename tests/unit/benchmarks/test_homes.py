"""The stages of the scenario `spark-forwarding` without Spark: behind a home come the rows of the bucket."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from benchmarks.cores.growth import Memory, Pipeline
from benchmarks.spark.homes import BucketOfHome, Home
from spark_consumers.labels import bucket_labels
from spark_consumers.reducer import ReduceBucket


def test_a_bucket_behind_its_home_returns_the_rows_of_a_bucket_that_has_the_state_itself() -> None:
    pipeline = Pipeline(panes=3, buckets=2)
    layout: Any = SimpleNamespace(plan=pipeline.plan, **vars(pipeline.layout))
    today, home, behind = (
        ReduceBucket(layout, lambda tables, bucket: iter(tables), None),
        Home(layout, None),
        BucketOfHome(layout, lambda tables, bucket: iter(tables), None),
    )
    states: list[list[Any]] = [[Memory() for _ in range(pipeline.buckets)] for _ in range(3)]
    counts = []
    for _ in range(5):
        blobs, _ = pipeline.combine(pipeline.frames(tuples=400, keys=30))
        for bucket, mine in enumerate(blobs):
            own, at_home, behind_it = (state[bucket] for state in states)
            sent = pa.concat_tables(home._tables(bucket, mine, at_home, None))
            assert set(sent["label"].to_pylist()) == {bucket_labels(pipeline.buckets)[bucket]}
            rows = list(behind._tables(bucket, sent["blob"].to_pylist(), behind_it, None))
            assert rows == list(today._tables(bucket, mine, own, None))
            counts.append(sum(table.num_rows for table in rows))
    assert all(counts), "every micro-batch closes a pane"
    assert [dict(state) for state in states[0]] == [dict(state) for state in states[1]]
