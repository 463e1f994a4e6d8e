"""Input partitions that are added while a query lives, on a real broker and through real Spark (pipeline rule 26)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import NewPartitions

from evenflow.errors import IncompatibleStateError
from evenflow.settings import KafkaSettings, Settings
from partitioner_service.committed import all_states
from partitioner_service.plane import DataPlane
from spark_consumers.application import run as run_spark
from tests.pipeline.planes import run, start_thread, total, wait_until
from tests.pipeline.routed import (
    create_topics,
    every_lane_ended,
    expected_counts,
    make_settings,
    read_routed,
    rejections,
    write,
    write_end,
)
from topics import clients
from topics.query_record import recorded_partitions
from workbench.verify.shell import verify

pytestmark = pytest.mark.pipeline

Rows = list[tuple[int, dict[str, Any]]]


def settings_of(kafka: KafkaSettings, name: str, **parts: Any) -> Settings:
    """A query over two input partitions that notices a third within a second."""
    soon = kafka.model_copy(
        update={
            "extras": kafka.extras.model_copy(
                update={"librdkafka": {"topic.metadata.refresh.interval.ms": 1_000}}
            )
        }
    )
    return make_settings(soon, name, input={"partitions": 2}, **parts)


def unpinned(settings: Settings) -> Settings:
    """The settings of a user who does not say how many input partitions there are."""
    return settings.model_copy(update={"input": settings.input.model_copy(update={"partitions": None})})


def add_partition(settings: Settings) -> Settings:
    """Add a third input partition. The settings as a service sees them that starts now."""
    client = clients.admin(settings.kafka)
    for future in client.create_partitions([NewPartitions(settings.topic("input"), 3)]).values():
        future.result()
    return settings.with_input_partitions(3)


def rows(partitions: range, times: range) -> Rows:
    """One row a time, in turn for these partitions."""
    return [
        (partitions[at % len(partitions)], {"k": f"key{at % 7}", "t": time, "v": at % 5})
        for at, time in enumerate(times)
    ]


def old_and_new() -> tuple[Rows, Rows, Rows]:
    """What the old partitions hold first, tuples of the new one that are too old, and what all three hold then."""
    before = rows(range(2), range(0, 20_000, 20))
    too_old = rows(range(2, 3), range(3_000, 9_000, 100))
    return before, too_old, rows(range(3), range(20_000, 40_000, 20))


def ended(settings: Settings, instances: list[tuple[DataPlane, Any, list[BaseException]]]) -> None:
    """Wait until three partitions have ended, and stop the instances."""
    errors = [errors for _, _, errors in instances]
    wait_until(lambda: any(errors) or ([s.ended for s in all_states(settings).values()] == [True] * 3))
    for plane, thread, _ in instances:
        plane.stop()
        thread.join(60)
    assert not any(errors), errors


def check(settings: Settings, counted: Rows, too_old: Rows) -> None:
    """Every row was routed once or rejected once, and every lane has ended."""
    routed = read_routed(settings)
    assert routed.counts == expected_counts(settings, counted)
    assert every_lane_ended(settings, routed)
    found = rejections(settings)
    assert {reason for reason, _, _ in found} == {"idle"}
    assert len(found) == len(too_old)
    assert total(all_states(settings)) == (len(counted) + len(too_old), len(counted), len(too_old))
    assert recorded_partitions(settings) == 3


@pytest.mark.parametrize("instances", [1, 2])
def test_a_partition_that_is_added_while_instances_run_is_taken_in(
    kafka_settings: KafkaSettings, query_name: str, instances: int
) -> None:
    settings = [
        settings_of(kafka_settings, query_name, partitioner={"instance": f"i{number}"})
        for number in range(instances)
    ]
    create_topics(settings[0])
    before, too_old, after = old_and_new()
    write(settings[0], before, end=False)
    planes = [DataPlane(one) for one in settings]
    running = [(plane, *start_thread(plane)) for plane in planes]
    wait_until(lambda: total(all_states(settings[0]))[0] == len(before) or any(e for _, _, e in running))
    grown = add_partition(settings[0])
    wait_until(lambda: len(all_states(grown)) == 3 or any(e for _, _, e in running))
    write(grown, [*too_old, *after], end=False)
    write_end(grown, Counter(p for p, _ in [*before, *too_old, *after]))
    ended(grown, running)
    check(grown, [*before, *after], too_old)


def test_a_partition_that_was_added_in_between_is_taken_in_and_results_are_exact(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    spark = {"checkpoint": str(tmp_path / "checkpoint"), "batch_interval": 100}
    settings = settings_of(kafka_settings, query_name, spark=spark)
    create_topics(settings)
    before, too_old, after = old_and_new()
    write(settings, before, end=False)
    plane = DataPlane(settings)
    running = (plane, *start_thread(plane))
    wait_until(lambda: total(all_states(settings))[0] == len(before) or running[2])
    plane.stop()
    running[1].join(60)
    grown = add_partition(settings)
    write(grown, [*too_old, *after], end=False)
    write_end(grown, Counter(p for p, _ in [*before, *too_old, *after]))
    run(unpinned(grown))
    check(grown, [*before, *after], too_old)
    run_spark(unpinned(grown), until_ended=True)
    report = verify(unpinned(grown))
    assert report.exact, report


def test_a_partition_that_is_added_after_all_others_have_ended_is_refused_with_the_cause(
    kafka_settings: KafkaSettings, query_name: str
) -> None:
    settings = settings_of(kafka_settings, query_name)
    create_topics(settings)
    write(settings, rows(range(2), range(0, 5_000, 50)))
    run(settings)
    grown = add_partition(settings)
    with pytest.raises(IncompatibleStateError, match="got the partitions 2 after all others had ended"):
        run(unpinned(grown))
