"""Input partitions that are added while a query lives, on a real broker and through real Spark."""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from confluent_kafka.admin import NewPartitions

from evenflow.errors import IncompatibleStateError
from evenflow.progress import PartitionState
from evenflow.settings import KafkaSettings, Settings
from partitioner_service.begin.prepare import prepare
from partitioner_service.begin.rebuild import continue_from_routed
from partitioner_service.kafka.committed_state import all_states
from partitioner_service.plane.data_plane import DataPlane
from partitioner_service.plane.loop import Loop
from spark_consumers.application import run as run_spark
from tests.pipeline.partitioner.test_from_routed import awake, forget
from tests.pipeline.planes import run, start_thread, total, wait_until
from tests.pipeline.routed import (
    create_topics,
    every_lane_ended,
    expected_counts,
    make_settings,
    read_routed,
    records,
    rejections,
    write,
    write_end,
)
from topics import clients
from topics.query.input_topic import admitted
from topics.query.record import read_beginning, recorded_partitions
from workbench.assist.status.judging import wrong
from workbench.assist.status.read import read as read_status
from workbench.lifetime.rename import carry_out, examine
from workbench.verify.shell import read_committed, verify

pytestmark = [pytest.mark.pipeline, pytest.mark.family, pytest.mark.usefixtures("either_reading")]

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


def grow(settings: Settings, partitions: int = 3) -> Settings:
    """Add input partitions until there are so many. The settings with that number."""
    client = clients.admin(settings.kafka)
    for future in client.create_partitions([NewPartitions(settings.topic("input"), partitions)]).values():
        future.result()
    return settings.with_input_partitions(partitions)


def rows(partitions: range, times: range) -> Rows:
    """One row a time, in turn for these partitions."""
    return [
        (partitions[at % len(partitions)], {"k": f"key{at % 7}", "t": time, "v": at % 5})
        for at, time in enumerate(times)
    ]


def old_and_new() -> tuple[Rows, Rows, Rows]:
    """What the old partitions hold first, tuples of the new one that are too old, and what all three hold
    then.
    """
    before = rows(range(2), range(0, 20_000, 20))
    too_old = rows(range(2, 3), range(3_000, 9_000, 100))
    return before, too_old, rows(range(3), range(20_000, 40_000, 20))


class Instances:
    """Instances that run in threads. loop: makes their loops."""

    def __init__(self, *settings: Settings, loop: Any = Loop) -> None:
        self.settings = settings[0]
        planes = [DataPlane(prepare(one), loop=loop) for one in settings]
        self.running = [(plane, *start_thread(plane)) for plane in planes]

    @property
    def errors(self) -> list[BaseException]:
        """What has ended instances."""
        return [error for _, _, errors in self.running for error in errors]

    def until(self, condition: Callable[[dict[int, PartitionState]], bool]) -> None:
        """Wait until this is true of the committed states, as far as a service sees them that starts now."""
        wait_until(lambda: self.errors or condition(all_states(admitted(unpinned(self.settings)))))
        assert not self.errors, self.errors

    def stop(self) -> None:
        for plane, thread, _ in self.running:
            plane.stop()
            thread.join(60)
        assert not self.errors, self.errors


def check(settings: Settings, counted: Rows, too_old: Rows) -> None:
    """Every row was routed once or rejected once, and every lane has ended."""
    routed = read_routed(settings)
    assert routed.counts == expected_counts(settings, counted)
    assert every_lane_ended(settings, routed)
    result = rejections(settings)
    assert [reason for reason, _, _ in result] == ["idle"] * len(too_old)
    assert total(all_states(settings)) == (len(counted) + len(too_old), len(counted), len(too_old))
    assert recorded_partitions(settings) == settings.input_partitions


def exact(settings: Settings) -> None:
    """Real Spark goes on until it has ended, and the results are those of a direct aggregation."""
    run_spark(unpinned(settings), until_ended=True)
    report = verify(unpinned(settings))
    assert report.exact, report


def reading(before: Rows, *settings: Settings, loop: Any = Loop) -> Instances:
    """Instances with these settings that have read these rows of the two old partitions, and go on."""
    create_topics(settings[0])
    write(settings[0], before, end=False)
    instances = Instances(*map(unpinned, settings), loop=loop)
    instances.until(lambda states: total(states)[0] == len(before))
    return instances


def write_last(settings: Settings, before: Rows, last: Rows) -> None:
    """The last rows, and the end of each partition. before: the rows that are there already."""
    write(settings, last, end=False)
    write_end(settings, counts_of([*before, *last]))


def counts_of(rows: Rows) -> Counter[int]:
    return Counter(p for p, _ in rows)


def of(settings: Settings, number: int) -> Settings:
    """The settings of one of several instances."""
    change = {"instance": f"i{number}", "instances": 2}
    return settings.model_copy(update={"partitioner": settings.partitioner.model_copy(update=change)})


@pytest.mark.parametrize("number", [1, 2])
def test_a_partition_that_is_added_while_instances_run_is_taken_in(
    kafka_settings: KafkaSettings, query_name: str, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "partitioner_service.begin.added_partitions")
    settings = settings_of(kafka_settings, query_name)
    before, too_old, after = old_and_new()
    instances = reading(before, *(of(settings, each) for each in range(number)))
    grown = grow(settings)
    instances.until(lambda states: len(states) == 3)
    write_last(grown, before, [*too_old, *after])
    instances.until(lambda states: [s.ended for s in states.values()] == [True] * 3)
    instances.stop()
    check(grown, [*before, *after], too_old)
    said = [record.getMessage() for record in caplog.records if record.name.endswith(".added_partitions")]
    assert len(said) == 1, said
    assert f"{settings.topic('input')} has got partition 2: taken in from the first record on" in said[0]


@pytest.mark.long
def test_a_topic_that_grew_twice_while_nobody_ran_is_taken_in_between_two_runs_of_spark(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    spark = {"checkpoint": str(tmp_path / "checkpoint"), "batch_interval": 100}
    settings = settings_of(kafka_settings, query_name, spark=spark)
    before, too_old, after = old_and_new()
    instances = reading(before, settings)
    instances.stop()
    run_spark_for_a_while(settings)
    grown = grow(grow(settings), 4)
    after = [*after, *rows(range(3, 4), range(20_000, 25_000, 50))]
    write_last(grown, before, [*too_old, *after])
    run_spark_for_a_while(settings)
    run(unpinned(grown))
    check(grown, [*before, *after], too_old)
    exact(grown)


def run_spark_for_a_while(settings: Settings) -> None:
    """Until it has written results. What it has merged by then is of the partitions that the query has
    taken in.
    """
    stop, errors = Event(), list[BaseException]()

    def body() -> None:
        try:
            run_spark(unpinned(settings), stop_event=stop)
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=body)
    thread.start()
    wait_until(lambda: errors or records(settings, "results"), timeout=120)
    stop.set()
    thread.join(120)
    assert not errors


class Killed(Exception):
    """The process ends here."""


class KilledLoop(Loop):
    """Dies when the frames are written that take partitions in, before they are committed. Nobody aborts."""

    dead = False

    def commit(self, added: Mapping[int, PartitionState] | None = None) -> None:
        if added:
            self.dead = True
            raise Killed
        super().commit(added)

    def settle(self, may_commit: bool) -> None:
        if not self.dead:
            super().settle(may_commit)

    def abandon(self) -> None:
        """A killed process says nothing."""


@pytest.mark.more
def test_an_instance_that_is_killed_while_it_takes_a_partition_in_leaves_it_to_the_next(
    kafka_settings: KafkaSettings, query_name: str
) -> None:
    # Longer than the first transaction takes on a busy machine. The next start waits for the end of the one
    # left open.
    settings = settings_of(kafka_settings, query_name, partitioner={"transaction_timeout": "15s"})
    before, too_old, after = old_and_new()
    killed = reading(before, settings, loop=KilledLoop)
    grown = grow(settings)
    wait_until(lambda: killed.errors)
    assert [type(error) for error in killed.errors] == [Killed], killed.errors
    assert recorded_partitions(settings) == 2
    write_last(grown, before, [*too_old, *after])
    run(unpinned(grown))
    check(grown, [*before, *after], too_old)


@pytest.mark.more
def test_a_partition_without_a_record_follows_the_others_after_the_idle_timeout(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    spark = {"checkpoint": str(tmp_path / "checkpoint"), "batch_interval": 100}
    settings = settings_of(
        kafka_settings, query_name, partitioner={"idle_timeout": "5s", "max_skew": "1h"}, spark=spark
    )
    before, _, after = old_and_new()
    instances = reading(before, settings)
    grown = grow(settings)
    instances.until(lambda states: len(states) == 3)
    told, client = 20_000, clients.producer(settings.kafka)

    def goes_on(states: dict[int, PartitionState]) -> bool:
        nonlocal told
        told += 20
        for _, row in (added := rows(range(2), range(told, told + 2))):
            client.produce(settings.topic("input"), value=json.dumps(row).encode(), partition=row["t"] % 2)
        before.extend((row["t"] % 2, row) for _, row in added)
        client.flush()
        return (states[2].idle_mark or 0) > 20_100

    instances.until(goes_on)
    after = [(p, row | {"t": row["t"] + told}) for p, row in after]
    write_last(grown, before, after)
    instances.until(lambda states: [s.ended for s in states.values()] == [True] * 3)
    instances.stop()
    check(grown, [*before, *after], [])
    exact(grown)


def test_offsets_that_are_gone_are_found_again_for_partitions_that_were_added(
    kafka_settings: KafkaSettings, query_name: str
) -> None:
    settings = settings_of(kafka_settings, query_name)
    before, too_old, after = old_and_new()
    instances = reading(before, settings)
    grown = grow(settings)
    instances.until(lambda states: len(states) == 3)
    write(grown, [*too_old, *after], end=False)
    instances.until(lambda states: total(states)[0] == len(before) + len(too_old) + len(after))
    instances.stop()
    states = all_states(grown)
    forget(grown)
    assert continue_from_routed(prepare(unpinned(grown))) == awake(states)
    write_end(grown, counts_of([*before, *too_old, *after]))
    run(unpinned(grown))
    check(grown, [*before, *after], too_old)


def test_a_query_that_has_not_taken_a_partition_in_yet_is_looked_at_and_renamed_without_it(
    kafka_settings: KafkaSettings, query_name: str
) -> None:
    settings = settings_of(kafka_settings, query_name)
    before, too_old, after = old_and_new()
    instances = reading(before, settings)
    instances.stop()
    grown = grow(settings)
    # A broker may answer for a moment as if the topic had not grown.
    wait_until(lambda: read_status(unpinned(grown)).added == 1)
    seen = read_status(unpinned(grown))
    assert (len(seen.partitions), seen.added, seen.changed, seen.troubles) == (2, 1, (), ())
    assert [line for line in wrong(seen) if "the topic has got 1 partition" in line]
    begun = read_beginning(settings)
    assert len(read_committed(grown, begun)) == 2
    new = settings.query.model_copy(update={"name": f"{query_name}-new"})
    at = grown.input.model_copy(update={"topic": settings.topic("input")})
    renamed = grown.model_copy(update={"query": new, "input": at})
    carry_out(
        examine(unpinned(grown), unpinned(renamed), now=lambda: time.time() + 60),
        progress=lambda records: None,
    )
    write_last(grown, before, [*too_old, *after])
    run(unpinned(renamed))
    check(renamed, [*before, *after], too_old)


def test_a_partition_that_is_added_after_all_others_have_ended_is_refused_with_the_cause(
    kafka_settings: KafkaSettings, query_name: str
) -> None:
    settings = settings_of(kafka_settings, query_name)
    create_topics(settings)
    write(settings, rows(range(2), range(0, 5_000, 50)))
    run(settings)
    grown = grow(settings)
    with pytest.raises(IncompatibleStateError, match="got the partitions 2, and all others had ended"):
        run(unpinned(grown))
