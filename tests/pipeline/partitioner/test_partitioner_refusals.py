"""What the partitioner refuses to go on with on a real broker: topics, offsets or a query that changed
under it.
"""

from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition

from evenflow.errors import DataLossError, IncompatibleStateError
from partitioner_service.kafka.committed_state import all_states, data_plane_group
from partitioner_service.plane.data_plane import DataPlane
from tests.pipeline.planes import began, run, some_rows, start_thread, total, wait_until
from tests.pipeline.routed import create_topics, make_settings, write
from topics import admin, clients

pytestmark = [pytest.mark.pipeline, pytest.mark.family, pytest.mark.usefixtures("either_reading")]


def test_a_changed_query_on_old_topics_is_refused_with_an_explanation(kafka_settings, query_name):
    began(kafka_settings, query_name)
    changed = make_settings(kafka_settings, query_name, query={"window": "8s"})
    with pytest.raises(IncompatibleStateError, match=r'query\.window: "4s" -> "8s"'):
        run(changed)


def test_an_input_topic_that_was_recreated_is_refused(kafka_settings, query_name):
    settings = began(kafka_settings, query_name)
    admin.delete_topics(settings.kafka, [settings.topic("input")])
    create_topics(settings)
    write(settings, some_rows(300))
    with pytest.raises((DataLossError, IncompatibleStateError), match=r"created again|committed offset"):
        run(settings)


@pytest.mark.parametrize("linger", ["100ms", "1ms"])
def test_a_routed_topic_that_was_recreated_is_refused(kafka_settings, query_name, linger):
    """Also when the first read returns before any partition has been assigned, and the input had ended."""
    settings = began(kafka_settings, query_name, partitioner={"linger": linger})
    service = clients.admin(settings.kafka)
    for future in service.delete_topics([settings.topic("routed")]).values():
        future.result(30)
    wait_until(
        lambda: settings.topic("routed") not in admin.describe(settings.kafka, [settings.topic("routed")])
    )
    with pytest.raises(DataLossError, match="routed was deleted and created again"):
        run(settings)


def test_a_rejected_topic_that_was_recreated_is_refused(kafka_settings, query_name):
    settings = began(kafka_settings, query_name)
    admin.delete_topics(settings.kafka, [settings.topic("rejected")])
    with pytest.raises(DataLossError, match="rejected was deleted and created again"):
        run(settings)


@pytest.mark.parametrize("role", ["input", "routed", "rejected"])
def test_a_topic_that_is_recreated_under_a_running_partitioner_stops_it_within_seconds(
    kafka_settings, query_name, role
):
    settings = make_settings(kafka_settings, query_name)
    create_topics(settings)
    write(settings, some_rows(200), end=False)
    plane = DataPlane(settings)
    thread, errors = start_thread(plane)
    wait_until(lambda: total(all_states(settings))[0] == 200 or errors)
    admin.delete_topics(settings.kafka, [settings.topic(role)])
    create_topics(settings)
    thread.join(30)
    assert isinstance(errors[0], DataLossError)
    assert settings.topic(role) in str(errors[0])


def test_records_deleted_before_they_were_read_are_noticed_and_refused(kafka_settings, query_name):
    settings = make_settings(kafka_settings, query_name, input={"partitions": 1})
    create_topics(settings)
    write(settings, some_rows(200, partitions=1), end=False)
    plane = DataPlane(settings)
    thread, errors = start_thread(plane)
    service = clients.admin(settings.kafka)
    wait_until(lambda: total(all_states(settings))[0] == 200 or errors)
    plane.stop()
    thread.join(60)
    write(settings, some_rows(200, partitions=1), end=False)
    partition = TopicPartition(settings.topic("input"), 0, 300)
    for future in service.delete_records([partition]).values():
        future.result(30)
    with pytest.raises(DataLossError, match="Rebuild after data loss"):
        run(settings)


def test_committed_offsets_that_vanished_are_never_taken_for_a_fresh_start(kafka_settings, query_name):
    settings = began(kafka_settings, query_name)
    service = clients.admin(settings.kafka)
    for future in service.delete_consumer_groups([data_plane_group(settings)]).values():
        future.result(30)
    with pytest.raises(IncompatibleStateError, match="no committed offsets"):
        run(settings)


def test_offsets_of_which_a_part_vanished_are_refused_with_the_partitions_that_lack_them(
    kafka_settings, query_name
):
    whole = began(kafka_settings, query_name)
    kept = all_states(whole)
    service = clients.admin(whole.kafka)
    for future in service.delete_consumer_groups([data_plane_group(whole)]).values():
        future.result(30)
    by_hand = clients.consumer(whole.kafka, group=data_plane_group(whole))
    topic = whole.topic("input")
    some = [TopicPartition(topic, p, kept[p].offset, kept[p].encode()) for p in (0, 3)]
    by_hand.commit(offsets=some, asynchronous=False)
    by_hand.close()
    with pytest.raises(IncompatibleStateError, match=r"no committed offsets of input partitions \[1, 2\]"):
        run(whole)


def test_an_offset_that_another_program_committed_is_refused(kafka_settings, query_name):
    settings = began(kafka_settings, query_name)
    stranger = clients.consumer(settings.kafka, group=data_plane_group(settings))
    stranger.commit(offsets=[TopicPartition(settings.topic("input"), 0, 5)], asynchronous=False)
    stranger.close()
    with pytest.raises(IncompatibleStateError, match="no evenflow state"):
        run(settings)
