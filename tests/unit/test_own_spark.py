"""The rows that a user's own Spark job gets of frames, without Spark and a broker."""

import pyarrow as pa

from evenflow import spark
from tests.unit.wire.examples import a_frame, a_shared_frame


def test_each_row_has_its_worker_also_where_workers_share_a_partition() -> None:
    schema = pa.schema(
        [("worker", pa.int32()), ("pane_start", spark._TIME), ("key", pa.binary()), ("x", pa.float64())]
    )
    read = spark._frames_of("f", 1_000, pa.binary(), schema)
    records = {"partition": [1, 2], "offset": [0, 0], "value": [a_shared_frame(), a_frame()]}
    shared, alone = read([pa.record_batch(records)])
    assert shared["worker"].to_pylist() == [1, 1, 7, 7, 7]
    assert alone["worker"].to_pylist() == [2] * 5
