"""A producer writes an offset into a record that its log does not have. The broker takes the batch, and its
partition alone stands still until an order goes past it.
"""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import TopicPartition

from evenflow.errors import DataLossError
from evenflow.settings import KafkaSettings, Settings
from partitioner_service.begin.prepare import prepare
from partitioner_service.kafka.committed_state import all_states
from partitioner_service.plane.data_plane import DataPlane
from tests.forged_batches import batch, produce, record
from tests.pipeline.partitioner.test_skip import PARTS, row, running, stuck
from tests.pipeline.planes import total, wait_until
from tests.pipeline.routed import create_topics, make_settings, read_routed, write, write_end
from topics import admin, clients
from workbench.lifetime.skipping import skip

pytestmark = [pytest.mark.family, pytest.mark.usefixtures("either_reading")]

FORGED = b'{"k": "forger", "t": 1, "v": 1}'


def rows(settings: Settings, first: int, stop: int) -> None:
    write(settings, [(at % 2, row(at)) for at in range(first, stop)], end=False)


@pytest.mark.more
@pytest.mark.parametrize("delta", [5, 1 << 30])
def test_an_offset_behind_the_end_of_the_log_stops_its_partition_alone_and_an_order_goes_past_it(
    kafka_settings: KafkaSettings, query_name: str, caplog: pytest.LogCaptureFixture, delta: int
) -> None:
    settings = make_settings(kafka_settings, query_name, **PARTS)
    create_topics(settings)
    rows(settings, 0, 100)
    assert produce(settings.kafka, settings.topic("input"), 0, batch([record(delta, FORGED)])) == 50
    for _ in range(2):  # a restart changes nothing
        with running(settings) as plane:
            wait_until(lambda plane=plane: stuck(plane))  # type: ignore[misc]
            (seen,) = stuck(plane)
            assert (seen["partition"], seen["offset"]) == (0, 50)
            assert "an offset is out of its order or range" in seen["reason"]
            wait_until(lambda: total(all_states(settings))[0] == 100)
    assert "came out of order, or from behind the end of its log" in caplog.text
    with running(settings) as plane:
        wait_until(lambda: stuck(plane))
        rows(settings, 100, 200)
        outcome = skip(settings, 0, 50, because="a forged offset")
        assert outcome.done, outcome.words
        write_end(settings, {0: 101, 1: 100})  # type: ignore[arg-type]
        wait_until(lambda: plane.status()["state"] == "stopped")
    assert total(all_states(settings)) == (201, 200, 1)
    assert sum(read_routed(settings).counts.values()) == 200


@pytest.mark.more
def test_a_forged_offset_beside_others_in_a_log_that_grows_meanwhile_loses_no_record(
    kafka_settings: KafkaSettings, query_name: str
) -> None:
    """However long the log has become as the batch is read: far enough behind, the offset is beyond it."""
    settings = make_settings(kafka_settings, query_name, **PARTS)
    create_topics(settings)
    with running(settings) as plane:
        for first in range(0, 100, 20):
            rows(settings, first, first + 20)
            if first == 40:
                produce(settings.kafka, settings.topic("input"), 0, batch([record(1_000, FORGED)]))
        wait_until(lambda: stuck(plane))
        (seen,) = stuck(plane)
        assert seen["offset"] == 30
        outcome = skip(settings, 0, 30, because="a forged offset")
        assert outcome.done, outcome.words
        write_end(settings, {0: 51, 1: 50})  # type: ignore[arg-type]
        wait_until(lambda: plane.status()["state"] == "stopped")
    assert total(all_states(settings)) == (101, 100, 1)


@pytest.mark.more
def test_a_log_whose_next_records_were_deleted_is_an_error_as_ever(
    kafka_settings: KafkaSettings, query_name: str
) -> None:
    settings = make_settings(kafka_settings, query_name, **PARTS)
    create_topics(settings)
    rows(settings, 0, 40)
    with running(settings):
        wait_until(lambda: total(all_states(settings))[0] == 40)
    rows(settings, 40, 80)
    topic = settings.topic("input")
    _delete_before(settings, topic, 0, 30)
    with pytest.raises(DataLossError, match=r"begins at offset 30, but the next to read is 20"):
        DataPlane(prepare(settings), until_ended=True).run()


def _delete_before(settings: Settings, topic: str, partition: int, offset: int) -> None:
    futures: dict[Any, Any] = clients.admin(settings.kafka).delete_records(
        [TopicPartition(topic, partition, offset)]
    )
    for future in futures.values():
        future.result(30)
    assert admin.describe(settings.kafka, [topic])[topic].begin[partition] == offset
