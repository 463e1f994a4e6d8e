import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaException, Message, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    NewPartitions,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)

from evenflow.errors import ConfigError, DataLossError, IncompatibleStateError, ServiceError
from evenflow.settings import KafkaSettings, load_settings
from topics import offsets
from topics.admin import delete_topics, describe, ensure_topics, may_write, pipeline_topics
from topics.batches.raw_batches import RawReader
from topics.clients import admin, consumer, flush, producer
from topics.offsets import known_offsets
from topics.reader import read_range
from topics.state import TopicSpec
from workbench.local.broker import EmbeddedBroker

pytestmark = pytest.mark.pipeline
NOWHERE = KafkaSettings(bootstrap_servers="127.0.0.1:1", request_timeout=1000)


def collect(batches: Iterator[list[Message]]) -> list[tuple[int, bytes]]:
    return sorted((m.partition(), m.value()) for batch in batches for m in batch)


def fill(kafka: KafkaSettings, topic: str, partitions: int, each: int) -> list[tuple[int, bytes]]:
    ensure_topics(kafka, [TopicSpec(topic, partitions, {})])
    client = producer(kafka)
    rows = [(partition, b"%05d" % n) for partition in range(partitions) for n in range(each)]
    for partition, value in rows:
        client.produce(topic, value, partition=partition)
    flush(client, kafka)
    return rows


def test_all_topics_of_a_query_are_created_as_specified(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    file = tmp_path / "evenflow.toml"
    file.write_text(f'[query]\nname = "{query_name}"\n')
    specs = pipeline_topics(load_settings(file).with_input_partitions(4))
    states = ensure_topics(kafka_settings, specs.values())
    for spec in specs.values():
        state = states[spec.name]
        assert state.partitions == spec.partitions
        assert {name: state.config[name] for name in spec.config} == dict(spec.config)
        assert state.records == 0
    again = ensure_topics(kafka_settings, specs.values())
    assert {name: state.topic_id for name, state in again.items()} == {
        n: s.topic_id for n, s in states.items()
    }


def test_a_partition_that_is_added_while_its_offset_is_asked_for_is_known_at_once(
    kafka_settings: KafkaSettings, query_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(kafka_settings, query_name, 2, 3)
    assert known_offsets(kafka_settings, query_name, [0, 1], OffsetSpec.latest()) == {0: 3, 1: 3}

    def add(seconds: float) -> None:
        with suppress(KafkaException):
            admin(kafka_settings).create_partitions([NewPartitions(query_name, 3)])[query_name].result()

    # The partition is added after the first answer, which says that there is none.
    times = []
    clock = SimpleNamespace(monotonic=lambda: float(len(times)), sleep=lambda s: (times.append(s), add(s)))
    monkeypatch.setattr(offsets, "time", clock)
    assert known_offsets(kafka_settings, query_name, [2], OffsetSpec.latest()) == {2: 0}
    assert times


def test_existing_topics_are_checked(kafka_settings: KafkaSettings, query_name: str) -> None:
    ensure_topics(kafka_settings, [TopicSpec(query_name, 2, {"max.message.bytes": "1000000"})])
    with pytest.raises(IncompatibleStateError, match="has 2 partitions, the settings need 3"):
        ensure_topics(kafka_settings, [TopicSpec(query_name, 3, {})])
    with pytest.raises(ConfigError, match="max"):
        ensure_topics(kafka_settings, [TopicSpec(query_name, 2, {"max.message.bytes": "2000000"})])


def test_too_many_replicas_are_a_clear_error(kafka_settings: KafkaSettings, query_name: str) -> None:
    kafka = kafka_settings.model_copy(update={"replication_factor": 3})
    with pytest.raises(ServiceError, match="creating topic") as caught:
        ensure_topics(kafka, [TopicSpec(query_name, 1, {})])
    assert "replication_factor" in (caught.value.hint or "")


def test_missing_topics_are_absent_and_a_recreated_one_has_another_id(
    kafka_settings: KafkaSettings, query_name: str
) -> None:
    assert describe(kafka_settings, [query_name]) == {}
    fill(kafka_settings, query_name, 2, 3)
    before = describe(kafka_settings, [query_name, "no-such"])
    assert set(before) == {query_name}
    assert before[query_name].end == {0: 3, 1: 3}
    delete_topics(kafka_settings, [query_name])
    delete_topics(kafka_settings, [query_name])
    assert describe(kafka_settings, [query_name]) == {}
    ensure_topics(kafka_settings, [TopicSpec(query_name, 2, {})])
    assert describe(kafka_settings, [query_name])[query_name].topic_id != before[query_name].topic_id


def test_a_range_is_read_completely_and_once(kafka_settings: KafkaSettings, query_name: str) -> None:
    rows = fill(kafka_settings, query_name, 3, 1000)
    assert collect(read_range(kafka_settings, query_name)) == rows


def test_begin_and_end_bound_each_partition(kafka_settings: KafkaSettings, query_name: str) -> None:
    rows = fill(kafka_settings, query_name, 2, 10)
    result = collect(read_range(kafka_settings, query_name, begin={0: 4}, end={0: 6, 1: 1}))
    assert result == [rows[4], rows[5], rows[10]]
    assert collect(read_range(kafka_settings, query_name, end={0: 0, 1: 0})) == []


def test_an_empty_topic_is_read_at_once(kafka_settings: KafkaSettings, query_name: str) -> None:
    ensure_topics(kafka_settings, [TopicSpec(query_name, 4, {})])
    assert collect(read_range(kafka_settings, query_name)) == []


def test_what_comes_after_the_call_is_not_read(kafka_settings: KafkaSettings, query_name: str) -> None:
    rows = fill(kafka_settings, query_name, 1, 10)
    end = dict(describe(kafka_settings, [query_name])[query_name].end)
    fill(kafka_settings, query_name, 1, 10)
    assert collect(read_range(kafka_settings, query_name, end=end)) == rows


def test_a_log_that_ends_with_aborted_records_and_markers_is_read_to_its_end(
    kafka_settings: KafkaSettings, query_name: str
) -> None:
    ensure_topics(kafka_settings, [TopicSpec(query_name, 2, {})])
    client = producer(kafka_settings, transactional_id=query_name)
    client.init_transactions(10)
    for values, ends in (([b"a", b"b"], client.commit_transaction), ([b"no"], client.abort_transaction)):
        client.begin_transaction()
        for value in values:
            client.produce(query_name, value, partition=0)
        client.flush(10)
        ends(10)
    assert collect(read_range(kafka_settings, query_name)) == [(0, b"a"), (0, b"b")]
    uncommitted = read_range(kafka_settings, query_name, isolation="read_uncommitted")
    assert [value for _, value in collect(uncommitted)] == [b"a", b"b", b"no"]
    only_markers = read_range(kafka_settings, query_name, begin={0: 2})
    assert collect(only_markers) == []


def test_an_open_transaction_is_an_error_and_no_hang(kafka_settings: KafkaSettings, query_name: str) -> None:
    rows = fill(kafka_settings, query_name, 1, 2)
    client = producer(kafka_settings, transactional_id=query_name)
    client.init_transactions(10)
    client.begin_transaction()
    client.produce(query_name, b"open")
    client.flush(10)
    result: list[Message] = []
    batches = read_range(kafka_settings, query_name, timeout=1)
    with pytest.raises(ServiceError, match=r"no progress for 1 s: \[0\] at 2 of 3"):
        result.extend(message for batch in batches for message in batch)
    assert [(m.partition(), m.value()) for m in result] == rows
    client.abort_transaction(10)
    assert collect(read_range(kafka_settings, query_name)) == rows


def test_offsets_that_are_gone_are_data_loss(kafka_settings: KafkaSettings, query_name: str) -> None:
    fill(kafka_settings, query_name, 1, 10)
    client = admin(kafka_settings)
    for future in client.delete_records([TopicPartition(query_name, 0, 5)]).values():
        future.result(10)
    assert len(collect(read_range(kafka_settings, query_name))) == 5
    with pytest.raises(DataLossError, match="offsets 2 to 4 are gone"):
        collect(read_range(kafka_settings, query_name, begin={0: 2}))


def test_a_topic_that_is_not_there_is_a_clear_error(kafka_settings: KafkaSettings, query_name: str) -> None:
    with pytest.raises(ServiceError, match="does not exist"):
        collect(read_range(kafka_settings, query_name))


def test_a_missing_broker_is_a_clear_error_in_time() -> None:
    for make in (producer, admin, lambda kafka: consumer(kafka, group="g")):
        started = time.monotonic()
        with pytest.raises(ServiceError, match=r"no broker answers within 1 s at 127\.0\.0\.1:1"):
            make(NOWHERE)
        assert time.monotonic() - started < 5


def test_a_broker_that_goes_away_is_an_error_for_readers_and_writers(query_name: str) -> None:
    with EmbeddedBroker() as broker:
        kafka = broker.settings(request_timeout=2000)
        fill(kafka, query_name, 1, 5)
        client = producer(kafka)
        reading = read_range(kafka, query_name, end={0: 100}, timeout=2)
        assert len(next(reading)) > 0
        broker.kill()
        client.produce(query_name, b"lost")
        with pytest.raises(ServiceError, match="1 records are not accepted"):
            flush(client, kafka, timeout=1)
        with pytest.raises(ServiceError, match="no progress"):
            collect(reading)


@pytest.fixture(scope="module")
def strict_broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(sasl={"admin": "top secret", "ann": 'a"b\\c', "bob": "b"}) as broker:
        yield broker


def test_a_wrong_password_is_a_clear_error_at_once(strict_broker: EmbeddedBroker) -> None:
    started = time.monotonic()
    with pytest.raises(ServiceError, match="AUTHENTICATION") as caught:
        producer(strict_broker.settings("ann", sasl_password="wrong"))
    assert "sasl_password" in (caught.value.hint or "")
    assert time.monotonic() - started < 10


def test_raw_batches_are_fetched_with_a_password_and_a_wrong_one_is_refused_in_words(
    strict_broker: EmbeddedBroker, query_name: str
) -> None:
    kafka = strict_broker.settings()
    ensure_topics(kafka, [TopicSpec(query_name, 1, {})])
    client = producer(kafka)
    client.produce(query_name, b"value")
    flush(client, kafka)
    with RawReader(kafka, query_name) as reader:
        fetched = reader.fetch(0, 0)
        assert fetched is not None
        assert [[one.value for one in batch.records(1_000)] for batch in fetched.batches] == [[b"value"]]
        assert reader.fetch(0, 7) is None, "no such offset"
    with (
        RawReader(strict_broker.settings("ann", sasl_password="wrong"), query_name) as reader,
        pytest.raises(ServiceError, match=f"fetching batches of {query_name} at "),
    ):
        reader.fetch(0, 0)


def test_rights_are_known_before_the_first_write(strict_broker: EmbeddedBroker, query_name: str) -> None:
    boss = strict_broker.settings()
    ensure_topics(boss, [TopicSpec(query_name, 1, {})])
    client = admin(boss)
    rights = [("ann", AclOperation.WRITE), ("ann", AclOperation.DESCRIBE), ("bob", AclOperation.DESCRIBE)]
    acls = [
        AclBinding(
            ResourceType.TOPIC,
            query_name,
            ResourcePatternType.LITERAL,
            f"User:{user}",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        for user, operation in rights
    ]
    for future in client.create_acls(acls).values():
        future.result(10)
    assert may_write(boss, query_name)
    assert may_write(strict_broker.settings("ann"), query_name)
    assert not may_write(strict_broker.settings("bob"), query_name)
    with pytest.raises(ServiceError, match="AUTHORIZATION_FAILED") as caught:
        ensure_topics(strict_broker.settings("bob"), [TopicSpec(f"{query_name}-new", 1, {})])
    assert "ACL" in (caught.value.hint or "")


def test_a_broker_without_rights_management_lets_everyone_write(
    kafka_settings: KafkaSettings, query_name: str
) -> None:
    ensure_topics(kafka_settings, [TopicSpec(query_name, 1, {})])
    assert may_write(kafka_settings, query_name)
