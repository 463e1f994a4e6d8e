"""The combiner's task as Spark runs it, without Spark."""

from __future__ import annotations

import dataclasses
from typing import Any

import pyarrow as pa
import pytest

from evenflow.settings import Query
from evenflow.twostep import Tally
from spark_consumers import combiner
from spark_consumers.combiner import combine_stream
from spark_consumers.layout import Layout
from tests.unit.twostep.pipe import INVERTIBLE, SLIDE, Pipe, plan_of


def test_a_task_waits_for_each_tuple_where_an_experiment_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = Pipe(plan_of(INVERTIBLE, 1))
    pipe.write(1, [(0, b"a", 1, 1.0), (0, b"b", 1, 1.0), (1, b"b", 1, 1.0)], {0: 5, 1: 5})
    offset, frame = pipe.frames[1][0]
    columns = [pa.array([1], pa.int32()), pa.array([offset]), pa.array([frame], pa.binary())]
    rows = pa.record_batch(columns, names=["partition", "offset", "value"])
    query = Query(window=SLIDE, slide=SLIDE, aggregates=INVERTIBLE, types={"i": "int64"})
    layout = Layout(**{**dataclasses.asdict(pipe.layout), "query": query.model_dump_json()})
    waited: list[float] = []
    # Its own name alone: threads that other tests have left behind sleep too.
    monkeypatch.setattr(combiner, "sleep", waited.append)
    for wait_us in (0, 250):
        told: list[Tally] = []
        (blobs,) = combine_stream(layout, told.append, wait_us)(iter([rows]))
        assert blobs.num_rows == 2, "one for each bucket"
        assert (told[0].tuples, told[0].work["combine", 0].tasks) == (3, 1)
    assert waited == [pytest.approx(3 * 250e-6)]


def test_an_experiment_may_slow_one_worker_and_the_tally_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = Pipe(plan_of(INVERTIBLE, 1))
    columns: list[list[Any]] = [[], [], []]
    for partition in (0, 1, 2):
        pipe.write(partition, [(0, b"a", 1, 1.0), (0, b"b", 1, 1.0)], {0: 5, 1: 5})
        offset, frame = pipe.frames[partition][0]
        for column, value in zip(columns, (partition, offset, frame), strict=True):
            column.append(value)
    types = (pa.int32(), pa.int64(), pa.binary())
    rows = pa.record_batch(
        [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)],
        names=["partition", "offset", "value"],
    )
    query = Query(window=SLIDE, slide=SLIDE, aggregates=INVERTIBLE, types={"i": "int64"})
    layout = Layout(**{**dataclasses.asdict(pipe.layout), "query": query.model_dump_json()})
    waited: list[float] = []
    monkeypatch.setattr(combiner, "sleep", waited.append)
    monkeypatch.setattr(combiner, "perf_counter", lambda: 0.0)
    told: list[Tally] = []
    list(combine_stream(layout, told.append, (1_000, 5_000))(iter([rows])))
    assert waited == [pytest.approx(2 * 0.001 + 2 * 0.005)]
    assert told[0].work["combine", 0].by_worker == {0: (2, 2.0), 1: (2, 10.0), 2: (2, 0.0)}
