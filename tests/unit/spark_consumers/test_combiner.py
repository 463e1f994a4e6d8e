"""The combiner's task as Spark runs it, without Spark."""

from __future__ import annotations

import dataclasses

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
