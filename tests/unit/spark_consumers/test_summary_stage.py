"""The tasks of a summary as Spark runs them, without Spark: combiners, buckets of all parts, the task that
merges.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import Any

import pandas as pd
import pyarrow as pa

from evenflow.settings.views import view
from evenflow.twostep import Tally
from evenflow.windows import END_MARK
from spark_consumers.combiner import combine_stream
from spark_consumers.labels import bucket_labels
from spark_consumers.layout import Layout
from spark_consumers.reducer import MergeParts, PartBuckets
from spark_consumers.sinks import sink_of
from tests.unit.spark_consumers.test_state_pieces import Map
from tests.unit.twostep.pipe import INPUTS, ROUTED, Pipe
from tests.unit.twostep.reducing.test_summary import BUCKETS, settings_of

SETTINGS = settings_of(spark={"buckets": BUCKETS}, partitioner={"workers": ROUTED})


def stage() -> Layout:
    """As it arrives in a Python worker, for frames of `Pipe`."""
    sent = Layout.from_settings(view(SETTINGS, "s"), "t")
    sent = replace(sent, frames_of="f", parts=tuple(replace(part, frames_of="f") for part in sent.parts))
    arrived: Layout = pickle.loads(pickle.dumps(sent))
    return arrived


def run(processor: Any, state: Map, label: int, blobs: list[bytes]) -> list[pd.DataFrame]:
    processor._state = state
    return list(processor.handleInputRows((label,), iter([pd.DataFrame({"blob": blobs})]), None))


def test_each_bucket_keeps_its_parts_apart_and_the_rows_are_those_of_the_summary() -> None:
    layout, told = stage(), list[Tally]()
    pipe = Pipe(layout.parts[0].plan)
    pipe.write(0, [(0, b"a", 1, 2.0), (0, b"b", 1, 4.0)], dict.fromkeys(range(INPUTS), 0))
    pipe.write(1, [(0, b"c", 2, 3.0)], dict.fromkeys(range(INPUTS), 0))
    for routed in range(ROUTED):
        pipe.write(routed, [], dict.fromkeys(range(INPUTS), END_MARK))
    rows = [(routed, at, frame) for routed in range(ROUTED) for at, frame in pipe.frames[routed]]
    types = (("partition", pa.int32()), ("offset", pa.int64()), ("value", pa.binary()))
    arrays = [
        pa.array(column, type_) for column, (_, type_) in zip(zip(*rows, strict=True), types, strict=True)
    ]
    batch = pa.record_batch(arrays, names=[name for name, _ in types])
    (blobs,) = combine_stream(layout, told.append)(iter([batch]))
    assert [tally.tuples for tally in told] == [3], "each tuple counts once, whatever the number of parts"
    states = {label: Map() for label in bucket_labels(BUCKETS)}
    sent: list[bytes] = []
    for label, state in states.items():
        mine = [row["blob"] for row in blobs.to_pylist() if row["label"] == label]
        for frame in run(PartBuckets(layout, told.append), state, label, mine):
            assert set(frame["label"]) == {bucket_labels(BUCKETS)[0]}
            sent += list(frame["blob"])
        assert {name.partition("/")[0] for name in state.content} == {"0", "1"}
    assert sorted(number for tally in told[1:] for number in tally.bucket_stands) == [0, 1, 2, 3]
    assert [tally.work["reduce", 0].tasks for tally in told[1:]] == [1, 1]
    shape = sink_of(view(SETTINGS, "s")).shaper(view(SETTINGS, "s"))
    merged = run(MergeParts(layout, shape, told.append), Map(), bucket_labels(BUCKETS)[0], sent)
    result = [json.loads(value) for frame in merged for value in frame["value"]]
    first = [row for row in result if row["window_end"] == 10]
    columns = ("key", "keys", "hi", "r", "_tuples")
    assert sorted(tuple(row[name] for name in columns) for row in first) == [
        (1, 2, 4.0, 2.0, 4),
        (2, 1, 3.0, 3.0, 2),
    ]
    assert told[-1].rows == len(result) == 6
