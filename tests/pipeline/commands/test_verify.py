"""verify against the real partitioner on a real broker; the results are written as the reducer would."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from typer.testing import CliRunner

from cli.main import app
from evenflow.errors import EvenflowError
from evenflow.settings import KafkaSettings, Settings, load_settings
from partitioner_service.plane.data_plane import DataPlane
from tests.unit.workbench.verify.pipeline_model import Record, end, record, run
from topics import admin, clients, reader
from workbench.verify.shell import verify

pytestmark = pytest.mark.pipeline


def _settings(kafka: KafkaSettings, name: str, **query: object) -> Settings:
    base = {"name": name, "window": 4000, "slide": 1000, "types": {"n": "int64"}}
    base |= {"aggregates": {"count": "count", "mean": "mean(v)", "n": "sum(n)"}} | query
    return load_settings(
        query=base,
        input={"partitions": 2},
        kafka=kafka.model_dump(exclude_unset=True),
        partitioner={"workers": 3, "commit_interval": 100, "linger": 20},
    )


def _records(seed: int, count: int) -> list[Record]:
    rng = random.Random(seed)
    keys = ["", "a", "b", 'q"\n', "ключ", "x" * 60_000]
    good = [
        record(rng.choice(keys), i * 20 + rng.randint(-3000, 3000), v=rng.random(), n=rng.randint(-9, 9))
        for i in range(count)
    ]
    poison = [Record(b"{broken", None), Record(None, None), Record(b'{"key":"a","time":"x"}', None)]
    return [*good[: count // 2], *poison, *good[count // 2 :], end(count + len(poison))]


def _produce(settings: Settings, role: str, partition: int, records: list[Record]) -> None:
    from evenflow.wire.markers import EndOfStream

    client = clients.producer(settings.kafka)
    for one in records:
        headers = EndOfStream(**one.marker).headers() if one.marker else []
        client.produce(
            settings.topic(role), value=one.value, key=one.key, partition=partition, headers=headers
        )
        client.poll(0)
    clients.flush(client, settings.kafka)


def _pipeline(settings: Settings, drop: int = 0) -> int:
    """Input through the real partitioner, results by the model; returns the number of result rows."""
    admin.ensure_topics(settings.kafka, admin.pipeline_topics(settings).values())
    partitions = [_records(1, 400), _records(2, 300)]
    for partition, records in enumerate(partitions):
        _produce(settings, "input", partition, records)
    DataPlane(settings, until_ended=True).run()
    rows = run(settings, partitions).rows[drop:]
    results = [Record(json.dumps(row).encode(), None, key=row["key"].encode()) for row in rows]
    _produce(settings, "results", 0, results)
    return len(rows)


def test_the_real_partitioner_and_right_results_have_no_difference(
    kafka_settings: KafkaSettings, query_name: str
) -> None:
    settings = _settings(kafka_settings, query_name, out_of_orderness=500)
    rows = _pipeline(settings)
    report = verify(settings)
    assert report.first == ()
    assert (report.rows, report.read) == (rows, 706)
    assert report.rejected > 6
    assert report.ended


def test_what_retention_deletes_while_it_is_read_is_left_out_by_another_try(
    kafka_settings: KafkaSettings, query_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = _settings(kafka_settings, query_name, out_of_orderness=500)
    _pipeline(settings)
    topic, begins, read = settings.topic("input"), [], reader.read_range

    def deleting(kafka: KafkaSettings, name: str, **bounds: Any) -> Iterator[Any]:
        """As `read_range`, but the broker deletes records of the input at the first two times."""
        if name == topic:
            begins.append(bounds["begin"][0])
            if len(begins) < 3:
                until = [TopicPartition(topic, 0, begins[-1] + 20)]
                for done in clients.admin(kafka).delete_records(until).values():
                    done.result(30)
        return read(kafka, name, **bounds)

    monkeypatch.setattr(reader, "read_range", deleting)
    report = verify(settings)
    assert report.first == ()
    assert report.rows > 0
    # 404 offsets. Of what is left, another try leaves out a fifth, and the last one two fifths.
    assert begins == [0, 20 + (404 - 20) // 5, begins[1] + 20 + int(0.4 * (404 - begins[1] - 20))]
    assert [(lost.partition, lost.before) for lost in report.lost] == [(0, begins[2])]


def test_the_command_exits_with_1_and_shows_the_rows_that_differ(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings = _settings(kafka_settings, query_name)
    _pipeline(settings, drop=3)
    file = tmp_path / "evenflow.toml"
    file.write_text(
        f"[query]\nname = '{query_name}'\nwindow = '4s'\nslide = '1s'\ntypes = {{n = 'int64'}}\n"
        "aggregates = {count = 'count', mean = 'mean(v)', n = 'sum(n)'}\n"
        "[input]\npartitions = 2\n[partitioner]\nworkers = 3\n"
        f"[kafka]\nbootstrap_servers = '{kafka_settings.bootstrap_servers}'\n"
    )
    shown = CliRunner().invoke(app, ["--config", str(file), "verify"])
    assert shown.exit_code == 1, shown.output
    assert shown.output.splitlines()[-1] == "3 differences"
    as_json = CliRunner().invoke(app, ["--config", str(file), "verify", "--json", "--limit-differences", "1"])
    report = json.loads(as_json.stdout.splitlines()[-1])
    assert (report["differences"], len(report["first"])) == (3, 1)


def test_settings_of_another_query_are_refused(kafka_settings: KafkaSettings, query_name: str) -> None:
    _pipeline(_settings(kafka_settings, query_name))
    with pytest.raises(EvenflowError, match=r'query\.slide: "1s" -> "2s"'):
        verify(_settings(kafka_settings, query_name, slide=2000))


def test_a_query_whose_partitioner_never_ran_is_refused(
    kafka_settings: KafkaSettings, query_name: str
) -> None:
    settings = _settings(kafka_settings, query_name)
    with pytest.raises(EvenflowError, match="there is no topic"):
        verify(settings)
    admin.ensure_topics(settings.kafka, admin.pipeline_topics(settings).values())
    with pytest.raises(EvenflowError, match="has committed nothing"):
        verify(settings)
