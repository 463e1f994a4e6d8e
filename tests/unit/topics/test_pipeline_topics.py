from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException

from evenflow.errors import ConfigError, IncompatibleStateError
from evenflow.settings import KafkaSettings, Settings, load_settings
from topics.admin import check_topic, pipeline_topics
from topics.clients import service_error
from topics.state import TopicSpec, TopicState


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    file = tmp_path / "evenflow.toml"
    file.write_text(
        '[query]\nname="q"\n[input]\ntopic="clicks"\npartitions=3\n[partitioner]\nworkers=5\n[spark]\nbuckets=7\n'
    )
    return load_settings(file)


def test_every_role_has_a_topic_with_its_partitions(settings: Settings) -> None:
    result = {role: (spec.name, spec.partitions) for role, spec in pipeline_topics(settings).items()}
    assert result == {
        "input": ("clicks", 3),
        "rejected": ("q.rejected", 3),
        "routed": ("q.routed", 5),
        "partials": ("q.partials", 7),
        "results": ("q.results", 7),
        "telemetry": ("q.telemetry", 1),
        "plan": ("q.plan", 1),
        "snapshots": ("q.snapshots", 1),
        "combiner": ("q.combiner", 1),
        "reducer": ("q.reducer", 1),
        "controller": ("q.controller", 1),
        "audit": ("q.audit", 1),
    }


def test_instances_that_tell_each_other_have_a_topic_for_it_and_no_others_have() -> None:
    def made(**partitioner: object) -> set[str]:
        return set(pipeline_topics(load_settings(input={"partitions": 3}, partitioner=partitioner)))

    assert "sync" not in made(name="evenflow")
    for name in ("evenflow", "dalton-cooperative"):
        assert "sync" in made(name=name, instances=2)
    assert "sync" not in made(name="evenflow", instances=2, exchange="off")
    assert "sync" not in made(name="dalton", instances=2)
    assert "sync" not in made(name="no-such-name", instances=2)
    how = load_settings(input={"partitions": 3}, partitioner={"instances": 2})
    spec = pipeline_topics(how)["sync"]
    assert (spec.name, spec.partitions) == (f"{how.query.name}.sync", 1)
    assert (spec.config["cleanup.policy"], spec.config["retention.ms"]) == ("delete", "3600000")
    assert spec.config["max.message.bytes"] == pipeline_topics(how)["snapshots"].config["max.message.bytes"]


def test_rejected_records_are_kept_for_as_long_as_asked_by_the_clock_of_the_broker() -> None:
    asked = load_settings(input={"partitions": 3, "rejected_retention": "30d"})
    config = pipeline_topics(asked)["rejected"].config
    assert config["retention.ms"] == str(30 * 24 * 3_600_000)
    assert config["message.timestamp.type"] == "LogAppendTime"
    assert (
        config["max.message.bytes"]
        == pipeline_topics(load_settings(input={"partitions": 3}))["rejected"].config["max.message.bytes"]
    )
    assert asked.fingerprint == load_settings(input={"partitions": 3}).fingerprint


def test_topics_that_hold_event_time_in_the_timestamp_keep_records_for_ever(settings: Settings) -> None:
    for role, spec in pipeline_topics(settings).items():
        event_time = spec.config["message.timestamp.type"] == "CreateTime"
        assert event_time == (role in ("input", "rejected"))
        if event_time:
            assert spec.config["retention.ms"] == "-1"


def test_plans_are_compacted_in_small_segments(settings: Settings) -> None:
    spec = pipeline_topics(settings)["plan"]
    assert spec.config["cleanup.policy"] == "compact"
    assert int(spec.config["segment.bytes"]) <= 1_048_576


def test_another_number_of_partitions_is_refused_and_says_what_to_do() -> None:
    state = TopicState("t", "id", 2, {}, {}, {})
    with pytest.raises(IncompatibleStateError, match="has 2 partitions, the settings need 3") as caught:
        check_topic(TopicSpec("t", 3, {}), state)
    assert "routed_partitions" in str(caught.value)


def test_a_record_limit_that_is_too_small_is_refused() -> None:
    state = TopicState("t", "id", 1, {}, {}, {"max.message.bytes": "10"})
    with pytest.raises(ConfigError, match="allows records of 10 bytes, evenflow writes up to 11"):
        check_topic(TopicSpec("t", 1, {"max.message.bytes": "11"}), state)
    check_topic(TopicSpec("t", 1, {"max.message.bytes": "10"}), state)


def test_offsets_sum_to_records() -> None:
    assert TopicState("t", "id", 2, {0: 5, 1: 0}, {0: 7, 1: 3}, {}).records == 5


def test_a_kafka_error_names_the_broker_and_what_to_do() -> None:
    kafka = KafkaSettings(bootstrap_servers="k:1")
    error = service_error(KafkaException(KafkaError(KafkaError._AUTHENTICATION)), kafka, "logging in")
    assert "logging in at k:1" in error.message
    assert "sasl_password" in (error.hint or "")
