"""Frames that are gone between partitioner and reducer, on a real broker and in real Spark (rule "a gap is
noticed").
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message

from evenflow.errors import DataLossError
from evenflow.settings import KafkaSettings, Settings
from evenflow.twostep import combine_task, reduce
from partitioner_service.kafka.committed_state import all_states
from partitioner_service.plane.data_plane import DataPlane
from spark_consumers.application import run as run_spark
from spark_consumers.layout import Layout
from tests.pipeline import spark_stream
from tests.pipeline.planes import run, some_rows, start_thread, total, wait_until
from tests.pipeline.routed import (
    create_topics,
    expected_counts,
    make_settings,
    read_routed,
    records,
    write,
    write_end,
)

pytestmark = pytest.mark.pipeline


class State(dict[str, bytes]):
    """A bucket's state."""

    def put(self, name: str, value: bytes) -> None:
        self[name] = value

    def delete(self, name: str) -> None:
        del self[name]


def results(settings: Settings, frames: list[Message]) -> list[dict[str, Any]]:
    """What combiner and reducer make of these records of the routed topic, in one micro-batch and one
    bucket.
    """
    layout = Layout.from_settings(settings, "t")
    stretches = [
        (worker, [(m.offset(), m.value()) for m in frames if m.partition() == worker])
        for worker in range(settings.routed_partitions)
    ]
    blobs = combine_task(layout.plan, layout, stretches)
    rows: list[dict[str, Any]] = reduce(
        layout.plan, layout, State(), [blob.data for blob in blobs]
    ).to_pylist()
    return rows


@pytest.mark.parametrize("wiring", ["fused", "split"])
def test_a_frame_that_is_gone_stops_the_application_and_nothing_that_lacks_it_comes_out(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path, wiring: str
) -> None:
    settings = spark_stream.make_settings(kafka_settings, query_name, tmp_path, spark={"wiring": wiring})
    stream = spark_stream.Stream(settings)
    stream.write(3)
    stream.lose_a_block(1)
    stream.write(3)
    stream.end()
    with pytest.raises(DataLossError, match=r"routed partition 1, offset.* so 1 frame is gone"):
        run_spark(settings, until_ended=True)
    assert spark_stream.results(settings) == ({}, 0)


def test_a_lost_tail_is_noticed_when_the_next_instance_takes_over(
    kafka_settings: KafkaSettings, query_name: str
) -> None:
    parts = {"spark": {"buckets": 1}, "query": {"window": "1s"}}
    settings = make_settings(kafka_settings, query_name, **parts)
    create_topics(settings)
    rows = some_rows(2_000)
    write(settings, rows[:1_000], end=False)
    plane = DataPlane(settings)
    thread, errors = start_thread(plane)
    wait_until(lambda: total(all_states(settings))[0] == 1_000 or errors)
    plane.stop()
    thread.join(60)
    assert not errors
    until = {m.partition(): m.offset() for m in records(settings, "routed")}
    write(settings, rows[1_000:], end=False)
    write_end(settings, Counter(p for p, _ in rows))
    run(settings)
    assert read_routed(settings).counts == expected_counts(settings, rows)
    frames = records(settings, "routed")
    counted = {(row["window_start"] // 1_000, row["key"]): row["n"] for row in results(settings, frames)}
    assert counted == expected_counts(settings, rows)
    # The last frame that the first instance wrote to worker 1. No later frame of its session shows the gap.
    lost = [m for m in frames if (m.partition(), m.offset()) != (1, until[1])]
    assert len(lost) == len(frames) - 1
    with pytest.raises(DataLossError, match=r"had written \d+ frames when another one took over, but only"):
        results(settings, lost)
