"""Loads at the edge, through the real services: one key that is nearly everything, records of a megabyte, a
thousand input partitions, a reducer that stands still. Results are always exact.
"""

from __future__ import annotations

import signal
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from confluent_kafka.admin import NewPartitions

from partitioner_service.plans_by_hand import publish
from tests.pipeline.end_to_end import (
    Pipeline,
    Stream,
    assert_exact,
    batches_done,
    committed,
    make_settings,
)
from tests.pipeline.routed import holders_of_the_hottest, read_routed
from tests.pipeline.spark_stream import told
from topics import clients

pytestmark = [pytest.mark.pipeline, pytest.mark.more, pytest.mark.timeout(400)]
HOT, SHARE = b"hot", 0.9
MEGABYTE, MANY = 1_000_000, 1_000
STAGES = {"fused": "fused", "split": "reduce"}
"""Stage that reduces, by wiring."""


class OneKey(Stream):
    """Nine of ten tuples have the same key."""

    def _send(self, partition: int, key: bytes | None, value: bytes | None, row: Any) -> None:
        if key is not None and self._random.random() < SHARE:
            key = HOT
        super()._send(partition, key, value, row)


class LargeRecords(Stream):
    """Each record has a text of almost a megabyte, which an aggregate reads."""

    def encoded(self, row: dict[str, Any]) -> bytes:
        row["text"] = f"{self._random.randrange(1_000):03d}" + "x" * (MEGABYTE - 1_000)
        return super().encoded(row)


def test_one_key_with_nine_tenths_of_all_tuples_is_split_and_no_worker_has_much_more_than_another(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(kafka_settings, query_name, tmp_path, partitioner={"workers": 4})
    stream = OneKey(settings)
    stream.write(6_000)
    stream.end()
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.run_to_the_end()
    report = assert_exact(stream)
    assert sum(record.key == HOT for record in stream.records) > 0.85 * len(stream.records)
    routed = read_routed(settings)
    assert median(holders_of_the_hottest(routed, settings.query.panes_per_window)) == 4
    assert max(routed.per_worker.values()) < 1.1 * report.routed / 4


@pytest.mark.parametrize("forwarding", ["off", "on"])
def test_workers_that_share_two_partitions_are_level_and_exact_while_a_plan_changes_how_many_there_are(
    kafka_settings: Any, query_name: str, tmp_path: Path, forwarding: str
) -> None:
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        partitioner={"workers": 7, "routed_partitions": 2, "forwarding": forwarding},
        spark={"buckets": 4},
    )
    stream = OneKey(settings)
    stream.write(4_000)
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.start("partition", "--until-ended")
        pipeline.wait_until(lambda: committed(settings) >= 4_000)
        before = read_routed(settings).per_worker
        assert (len(before), max(before.values()) < 1.2 * sum(before.values()) / 7) == (7, True)
        publish(settings, workers=3)
        stream.write(4_000)
        stream.end()
        pipeline.start("aggregate", "--until-ended")
        pipeline.finish()
    assert_exact(stream)
    after = read_routed(settings).per_worker - before
    assert after[1] > after[5], "a plan for three workers is in force"


def test_records_of_a_megabyte_are_aggregated_like_small_ones(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        query={
            "aggregates": {"n": "count", "i_sum": "sum(i)", "last": "max(text)"},
            "types": {"i": "int64", "text": "string"},
        },
    )
    stream = LargeRecords(settings)
    stream.write(80)
    stream.end()
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.run_to_the_end()
    assert_exact(stream)


@pytest.mark.long
def test_a_thousand_input_partitions_of_which_most_have_few_tuples_are_all_read_to_their_end(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    """evenflow itself makes at most 256. A user's topic may have more."""
    made = make_settings(kafka_settings, query_name, tmp_path, partitioner={"block_tuples": 2_000})
    topic = made.topic("input")
    clients.admin(kafka_settings).create_partitions([NewPartitions(topic, MANY)])[topic].result()
    stream = Stream(made.with_input_partitions(MANY))
    stream.write(5_000)
    stream.end()
    counted = made.model_copy(update={"input": made.input.model_copy(update={"partitions": None})})
    with Pipeline(counted, tmp_path) as pipeline:
        pipeline.run_to_the_end(until=300.0)
    assert_exact(stream)


@pytest.mark.parametrize("wiring", ["fused", pytest.param("split", marks=pytest.mark.long)])
def test_what_piles_up_before_a_reducer_that_stands_still_is_read_later_bit_by_bit_and_nothing_is_dropped(
    kafka_settings: Any, query_name: str, tmp_path: Path, wiring: str
) -> None:
    """Whoever reduces reads no further while it stands still. What the parts before it do waits in Kafka."""
    most = 20
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        partitioner={"block_tuples": 100},
        spark={"wiring": wiring, "max_frames_per_batch": most},
    )
    stage = STAGES[wiring]
    stream = Stream(settings)
    stream.write(1_000)
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.start("partition", "--until-ended")
        for command in ("aggregate",) if wiring == "fused" else ("combine", "reduce"):
            pipeline.start(command, "--until-ended")
        reducer = pipeline.running["aggregate" if wiring == "fused" else "reduce"]
        pipeline.wait_until(lambda: batches_done(settings, stage) > 0)
        reducer.signal(signal.SIGSTOP)
        done = batches_done(settings, stage)
        stream.write(4_000)
        stream.end()
        pipeline.wait_until(lambda: committed(settings) == 5_000)
        assert batches_done(settings, stage) == done, "it has read on"
        reducer.signal(signal.SIGCONT)
        pipeline.finish()
    assert_exact(stream)
    assert batches_done(settings, stage) > done + 1
    assert max(record.rows for record in told(settings) if record.stage == stage) <= most
