"""A reduce task as Spark runs it, without Spark."""

from __future__ import annotations

import dataclasses

import pyarrow as pa

from evenflow.settings import Query
from evenflow.twostep import BlobPart, Tally
from spark_consumers.combiner import blob_batch
from spark_consumers.labels import bucket_labels
from spark_consumers.layout import Layout
from spark_consumers.reduce_tasks import reduce_stream
from tests.unit.twostep.pipe import INVERTIBLE, SLIDE, Pipe, plan_of


def test_a_task_of_spark_does_the_work_of_each_reduce_task_whose_rows_it_gets_and_tells_its_time() -> None:
    pipe = Pipe(plan_of(INVERTIBLE, 1), reduce_tasks=3)
    pipe.write(1, [(0, b"%d" % number, 1, 1.0) for number in range(9)], {0: 5, 1: 5})
    clusters = pipe.clusters()
    query = Query(window=SLIDE, slide=SLIDE, aggregates=INVERTIBLE, types={"i": "int64"})
    layout = Layout(**{**dataclasses.asdict(pipe.layout), "query": query.model_dump_json()})
    rows = [blob_batch([BlobPart(at, data, 0, 1) for data in clusters[at]], 3) for at in (2, 0)]
    told: list[Tally] = []
    made = pa.Table.from_batches(reduce_stream(layout, told.append)(iter(rows)))
    assert made["bucket"].to_pylist() == [0, 1, 0, 1], "a piece of each reduce task for each bucket"
    assert made["label"].to_pylist() == [*bucket_labels(2)] * 2
    pieces = pipe.merge([clusters[0], [], clusters[2]])
    assert made["blob"].to_pylist() == [pieces[at][task] for task in (0, 1) for at in (0, 1)]
    assert [(tally.work["reduce", 0].tasks, tally.work["reduce", 0].rows) for tally in told] == [(1, 0)] * 2
    assert list(reduce_stream(layout, told.append)(iter([]))) == []
