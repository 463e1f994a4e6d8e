"""What an instance begins with on a real broker: its own state, else another's, and the table that was
heard last.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evenflow.keys import hash_keys
from evenflow.partitioners.dalton.messages import GlobalTable
from evenflow.partitioners.exchange import Message, Table
from evenflow.settings import KafkaSettings, Settings
from evenflow.wire.sync import SyncRecord, encode_sync
from partitioner_service.exchange.channel import Channel
from partitioner_service.exchange.identity import identity_of
from partitioner_service.exchange.newest_table import newest_table
from partitioner_service.kafka.learned_state import LearnedState, new_partitioner
from partitioner_service.kafka.side_records import SideRecords
from tests.hostile import BYTES
from tests.pipeline.planes import run, some_rows
from tests.pipeline.routed import create_topics, make_settings, write, write_end
from topics import clients

pytestmark = pytest.mark.pipeline


def settings_of(kafka: KafkaSettings, query: str, instance: str, **parts: Any) -> Settings:
    how = {"name": "dalton", "instances": 3, "instance": instance, **parts.pop("partitioner", {})}
    return make_settings(kafka, query, partitioner=how, **parts)


def begun(settings: Settings) -> Any:
    """The partitioner that this instance begins with."""
    side = SideRecords(settings)
    try:
        return LearnedState(settings, side).restored()[0]
    finally:
        side.close()


@pytest.mark.parametrize("name", ["dalton", "dalton-cooperative"])
def test_an_instance_without_state_begins_with_what_another_learned_and_goes_on_with_its_own(
    name: str, kafka_settings: KafkaSettings, query_name: str
) -> None:
    first, second, third = (
        settings_of(kafka_settings, query_name, number, partitioner={"name": name}) for number in "012"
    )
    create_topics(first)
    assert begun(second).observe().tuples == 0, "nobody has learned anything"
    rows = some_rows(2_000)
    write(first, rows, end=False)
    write_end(first, Counter(partition for partition, _ in rows))
    run(first)
    learned = begun(first)
    for other in (second, third):
        taken_over = begun(other)
        assert taken_over.source == int(other.partitioner.instance)
        assert taken_over.observe().tuples == learned.observe().tuples == 2_000
    side = SideRecords(second)
    side.save_snapshot(new_partitioner(second).snapshot(), 0)
    side.close()
    assert begun(second).observe().tuples == 0, "its own state counts, however little it is"
    pkg = settings_of(kafka_settings, query_name, "2", partitioner={"name": "pkg"})
    assert begun(pkg).observe().tuples == 0, "state of another partitioner is nobody's"


def test_a_cooperating_dalton_begins_with_another_s_snapshot_and_hears_the_newest_table_on_top_of_it(
    kafka_settings: KafkaSettings, query_name: str
) -> None:
    first, second = (
        settings_of(kafka_settings, query_name, number, partitioner={"name": "dalton-cooperative"})
        for number in "01"
    )
    create_topics(first)
    rows = [(at // 4 % 4, {"k": "hot" if at % 2 else f"k{at}", "t": at, "v": 1}) for at in range(3_600)]
    write(first, rows, end=False)
    write_end(first, Counter(partition for partition, _ in rows))
    run(first)
    hot, now = hash_keys(pa.array([b"hot"])), 3_900

    def values_of(partitioner: Any) -> list[float]:
        values = partitioner.explain(hot[0], now).values
        assert values is not None
        return list(values)

    channel, taken_over, expected = Channel(second), begun(second), begun(second)
    assert taken_over.source == 1
    assert values_of(taken_over) == values_of(begun(first))
    values = np.array([[-0.5, -0.25, -0.75]])
    body = GlobalTable(total=1_000, dsync_ms=1_000, keys=hot, values=values).to_bytes()
    table = Table(7, (0,), body)
    record = SyncRecord(identity=identity_of(first, taken_over), session=7, source=0, time=now, payload=table)
    client = clients.producer(first.kafka)
    client.produce(first.topic("sync"), encode_sync(record))
    clients.flush(client, first.kafka)
    side = SideRecords(second)
    try:
        member = channel.member(side)
        channel.begin()
        member.hear(taken_over, None)
        assert values_of(taken_over) == values_of(begun(first)), "before its first tuple it hears nothing"
        member.hear(taken_over, now)
    finally:
        side.close()
    # What the snapshot's rewards teach comes on top of the table.
    expected.hear(table, now)
    assert values_of(taken_over) == values_of(expected) != values_of(begun(first))
    assert taken_over.round == 8
    assert channel.figures.shown()["heard"] == 1


def test_an_instance_hears_the_table_that_was_made_last_whatever_else_is_on_the_topic(
    kafka_settings: KafkaSettings, query_name: str
) -> None:
    settings = settings_of(kafka_settings, query_name, "2", partitioner={"name": "evenflow"})
    topic, identity = settings.topic("sync"), identity_of(settings, new_partitioner(settings))

    def newest() -> Table | None:
        return newest_table(settings.kafka, topic, identity=identity, sources=3)

    assert newest() is None, "no topic"
    create_topics(settings)
    assert newest() is None, "an empty topic"
    client = clients.producer(settings.kafka)

    def put(payload: Message | Table, identity: str = identity) -> None:
        record = SyncRecord(identity=identity, session=7, source=0, time=1, payload=payload)
        client.produce(topic, encode_sync(record))

    put(Table(3, (0, 1), b"the newest"))
    put(Table(2, (0, 1), b"told again"))
    put(Table(9, (0, 3), b"of a fourth source"))
    put(Table(9, (0, 1), b"of another query"), identity="0" * 32)
    put(Table(1 << 50, (0, 1), b"far ahead"))
    for value in (None, *BYTES[:3]):
        client.produce(topic, value)
    for source in range(3):
        put(Message(source, 4, b"told"))
    clients.flush(client, settings.kafka)
    assert newest() == Table(3, (0, 1), b"the newest")
