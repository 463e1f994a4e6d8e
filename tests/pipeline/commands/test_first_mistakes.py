"""What a stranger gets wrong in the first hour is refused before any topic or offset is touched, and
leaves nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer

from evenflow.settings import KafkaSettings, load_settings
from partitioner_service.kafka.committed_state import all_states
from tests.patience import PATIENCE
from tests.pipeline.planes import run
from topics import clients
from topics.admin import describe, ensure_topics, topic_names
from topics.state import TopicSpec

pytestmark = [pytest.mark.pipeline, pytest.mark.timeout(240)]

_START = 1_700_000_000_000


class Stranger:
    """Somebody with a topic of their own, a folder with an evenflow.toml, and mistakes to make."""

    def __init__(self, kafka: KafkaSettings, name: str, folder: Path, *, partitions: int = 4) -> None:
        self.kafka, self.name, self.folder = kafka, name, folder
        self.topic = f"{name}-orders"
        ensure_topics(kafka, [TopicSpec(self.topic, partitions, {})])
        producer: Producer = clients.producer(kafka)
        for number in range(2_000):
            order = {"user": f"u{number % 97}", "amount": number % 50, "at": _START + 10 * number}
            producer.produce(self.topic, value=json.dumps(order).encode(), partition=number % partitions)
        clients.flush(producer, kafka)
        self.before = self.topics()

    def topics(self) -> set[str]:
        return {name for name in topic_names(self.kafka) if name.startswith(self.name)}

    def settings(self, **changed: str) -> Path:
        """The settings file with these words replaced."""
        words = {"topic": self.topic, "key": "user", "total": "sum(amount)", "window": "4s"} | changed
        file = self.folder / "evenflow.toml"
        file.write_text(
            f'[kafka]\n"bootstrap.servers" = "{self.kafka.bootstrap_servers}"\nrequest_timeout ='
            f' "5s"\n[input]\ntopic = "{words["topic"]}"\n[query]\nname = "{self.name}"\nkey ='
            f' "{words["key"]}"\ntime = "at"\nwindow = "{words["window"]}"\nslide ='
            f' "1s"\n[query.aggregates]\nn = "count"\ntotal = "{words["total"]}"\n'
        )
        return file

    def refused(self, *words: str) -> str:
        """What a command says that ends with 2."""
        done = subprocess.run(
            [sys.executable, "-m", "cli.main", *words],
            cwd=self.folder,
            env={
                "PATH": "/usr/bin:/bin",
                "PYTHONPATH": str(Path(__file__).parents[3]),
                "HOME": str(self.folder),
            },
            capture_output=True,
            text=True,
            timeout=120 * PATIENCE,
        )
        assert done.returncode == 2, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stderr


@pytest.fixture
def stranger(kafka_settings: KafkaSettings, query_name: str, tmp_path: Path) -> Stranger:
    return Stranger(kafka_settings, query_name, tmp_path)


@pytest.mark.more
def test_an_aggregate_that_does_not_exist_burns_no_name_and_the_corrected_query_begins(
    stranger: Stranger,
) -> None:
    stranger.settings(total="distinct_count(country)")
    for command in ("partition", "aggregate", "verify"):
        said = stranger.refused(command)
        assert (
            "there is no aggregate 'distinct_count'; did you mean 'count_distinct'?; known aggregates:"
            in said
        )
    assert stranger.topics() == stranger.before
    settings = load_settings(stranger.settings())
    plane_ran = load_settings(
        stranger.settings(), input={"topic": stranger.topic}, partitioner={"workers": 3}
    )
    _end(stranger)
    run(plane_ran)
    states = all_states(settings.with_input_partitions(4))
    assert sum(state.routed for state in states.values()) == 2_000


def test_a_misspelt_topic_is_refused_with_the_right_one_and_is_not_made(stranger: Stranger) -> None:
    stranger.settings(topic=stranger.topic[:-1])
    for words in (("partition",), ("aggregate",), ("verify",), ("plan", "--workers", "3")):
        said = stranger.refused(*words)
        assert f"there is no topic {stranger.topic[:-1]}, which the query reads" in said
        assert f"did you mean {stranger.topic}" in said
    assert stranger.topics() == stranger.before


@pytest.mark.parametrize("partitions", [1, 12])
def test_the_number_of_partitions_is_read_from_the_topic(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path, partitions: int
) -> None:
    stranger = Stranger(kafka_settings, query_name, tmp_path, partitions=partitions)
    _end(stranger, partitions)
    settings = load_settings(stranger.settings())
    run(settings)
    states = all_states(settings.with_input_partitions(partitions))
    assert len(states) == partitions
    assert sum(state.routed for state in states.values()) == 2_000
    made = stranger.topics() - stranger.before
    assert made == {
        f"{query_name}.{role}" for role in ("routed", "rejected", "telemetry", "plan", "snapshots")
    }
    assert describe(kafka_settings, made)[f"{query_name}.rejected"].partitions == partitions


@pytest.mark.more
def test_a_command_without_a_settings_file_in_an_empty_folder_makes_nothing(stranger: Stranger) -> None:
    (stranger.folder / "evenflow.toml").unlink(missing_ok=True)
    before = set(topic_names(stranger.kafka))
    servers = ("--config", str(stranger.folder / "only-kafka.toml"))
    Path(servers[1]).write_text(f'[kafka]\n"bootstrap.servers" = "{stranger.kafka.bootstrap_servers}"\n')
    for words in (("partition",), ("aggregate",), ("verify",), ("plan", "--workers", "2")):
        said = stranger.refused(*servers, *words)
        assert "there is no topic evenflow.input, which the query reads (no settings file was read" in said
    assert set(topic_names(stranger.kafka)) == before
    assert [file.name for file in stranger.folder.iterdir() if file.name == "evenflow.toml"] == []


@pytest.mark.long
def test_settings_that_changed_are_named_before_anything_starts(stranger: Stranger) -> None:
    _end(stranger)
    run(load_settings(stranger.settings()))
    stranger.settings(window="8s", total="max(amount)")
    for command in ("partition", "aggregate", "verify"):
        said = stranger.refused(command)
        assert f"query {stranger.name} began with other settings; changed since then:" in said
        assert 'query.window: "4s" -> "8s"' in said
        assert 'query.aggregates.total: "sum(amount)" -> "max(amount)"' in said
        assert "query.name" not in said


def _end(stranger: Stranger, partitions: int = 4) -> None:
    from evenflow.wire.markers import EndOfStream

    producer = clients.producer(stranger.kafka)
    for partition in range(partitions):
        marker = EndOfStream(producer="p", tuples=2_000 // partitions).headers()
        producer.produce(stranger.topic, partition=partition, headers=marker)
    clients.flush(producer, stranger.kafka)
