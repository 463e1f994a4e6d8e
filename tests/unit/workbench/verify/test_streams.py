"""Large topics and large results pass through verify in pieces; typed results are as good as JSON rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evenflow.errors import IncompatibleStateError
from evenflow.settings import Settings
from evenflow.twostep import readable_schema
from tests.unit.workbench.verify.pipeline_model import end, record, run
from workbench.verify import INPUT_SCHEMA, REJECTED_SCHEMA, CommittedInput, check

SETTINGS = Settings(
    query={
        "window": 10, "key": "@key", "time": "@timestamp",
        "aggregates": {"value": "count", "offset": "count"},
    },
    input={"partitions": 1},
)  # fmt: skip
_CHUNK = 5_000


class Pieces:
    """Batches that are made when they are asked for; counts how many that were."""

    def __init__(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        self.asked = 0
        self.reader = pa.RecordBatchReader.from_batches(schema, self._counted(batches))

    def _counted(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.asked += 1
            yield batch


def _inputs(chunks: int) -> Iterator[pa.RecordBatch]:
    for chunk in range(chunks):
        offsets = np.arange(chunk * _CHUNK, (chunk + 1) * _CHUNK)
        keys = pa.array([b"%d" % (offset % 1000) for offset in offsets], pa.binary())
        columns = {
            "partition": pa.array(np.zeros(_CHUNK, np.int32)),
            "offset": offsets,
            "timestamp": offsets // 100,
            "key": keys,
        }
        empty = {f.name: pa.nulls(_CHUNK, f.type) for f in INPUT_SCHEMA if f.name not in columns}
        table = pa.table({name: (columns | empty)[name] for name in INPUT_SCHEMA.names}, INPUT_SCHEMA)
        yield from table.to_batches()


def _results(chunks: int) -> Iterator[pa.RecordBatch]:
    """10 ms hold 1,000 tuples, one of each key."""
    schema = readable_schema(SETTINGS.query)
    keys = pa.array([b"%d" % key for key in range(1000)], pa.binary())
    for window in range(chunks * _CHUNK // 1000):
        times = [
            pa.array(np.full(1000, time)).cast(schema.types[0]) for time in (window * 10, window * 10 + 10)
        ]
        counts = pa.array(np.ones(1000, np.int64))
        yield pa.RecordBatch.from_arrays([*times, keys, counts, counts], schema=schema)


def test_typed_results_in_a_reader_are_streamed_and_compared_exactly(tmp_path: Path) -> None:
    chunks = 40
    inputs = Pieces(INPUT_SCHEMA, _inputs(chunks))
    results = Pieces(readable_schema(SETTINGS.query), _results(chunks))
    tuples = chunks * _CHUNK
    state = CommittedInput(
        partition=0, offset=tuples, max_time=tuples // 100 - 1, mark=tuples // 100 - 1, idle_mark=None,
        ended=False,
        read=tuples, routed=tuples, rejected=0,
    )  # fmt: skip
    report = check(
        SETTINGS, inputs.reader, REJECTED_SCHEMA.empty_table(), results.reader, [state], now=tuples // 100,
        scratch=tmp_path, memory="100MB",
    )  # fmt: skip
    assert report.first == ()
    assert report.rows == tuples - 1000  # the last window is not due yet
    assert (inputs.asked, results.asked) == (chunks, tuples // 1000)


def test_rejected_records_far_beyond_the_memory_limit_are_checked(tmp_path: Path) -> None:
    """200 MB of rejected records."""
    count, size, chunk = 10_000, 20_000, 500
    value = b"{" + b"x" * size

    row = {
        "partition": 0,
        "key": b"k",
        "value": value,
        "timestamp": -1,
        "reason": "unreadable",
        "omitted": False,
    }

    def records(schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for first in range(0, count, chunk):
            rows = [row | {"offset": offset} for offset in range(first, first + chunk)]
            yield from pa.Table.from_pylist(rows, schema).to_batches()

    pieces = Pieces(REJECTED_SCHEMA, records(REJECTED_SCHEMA))
    state = CommittedInput(
        partition=0, offset=count, max_time=None, mark=-(2**62), idle_mark=None, ended=False,
        read=count, routed=0, rejected=count,
    )  # fmt: skip
    report = check(
        SETTINGS, Pieces(INPUT_SCHEMA, records(INPUT_SCHEMA)).reader, pieces.reader, pa.table({}), [state],
        scratch=tmp_path, memory="100MB",
    )  # fmt: skip
    assert report.first == ()
    assert (report.rejected, pieces.asked) == (count, count // chunk)


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("key", pa.array([7], pa.int64())),
        ("value", pa.array([1.5], pa.float64())),
        ("window_end", pa.array(["10"], pa.string())),
        ("offset", None),
    ],
)
def test_typed_results_with_other_columns_than_the_querys_are_refused(name: str, column: Any) -> None:
    topics = run(Settings(query=SETTINGS.query, input={"partitions": 1}), [[end(0)]])
    time = pa.array([0], pa.timestamp("ms", "UTC"))
    row = {"window_start": time, "window_end": time, "key": [b"a"], "value": [1], "offset": [1]}
    columns = {**row, name: column}
    results = pa.table({field: data for field, data in columns.items() if data is not None})
    with pytest.raises(IncompatibleStateError, match=f"in which {name} is no column"):
        check(
            topics.settings, pa.Table.from_pylist(topics.inputs, INPUT_SCHEMA), REJECTED_SCHEMA.empty_table(),
            results,
            topics.committed,
        )  # fmt: skip


def test_typed_rows_without_a_window_or_key_are_malformed() -> None:
    settings = Settings(query={"window": 10, "aggregates": {"n": "count"}}, input={"partitions": 1})
    topics = run(settings, [[record("a", 5), end(1)]])
    broken = pa.table(
        {
            "window_start": [0, None, 0],
            "window_end": [None, 10, 10],
            "key": ["a", "a", None],
            "n": [1, 1, 1],
        }
    )
    results = pa.concat_tables([topics.typed_results(), broken.cast(topics.typed_results().schema)])
    report = check(
        settings, pa.Table.from_pylist(topics.inputs, INPUT_SCHEMA), REJECTED_SCHEMA.empty_table(), results,
        topics.committed
    )  # fmt: skip
    assert report.kinds == {"malformed": 3}
