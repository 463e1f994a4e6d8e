"""Where a query that begins starts to read (input.start): what lies before it is no part of the query."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message

from evenflow.errors import IncompatibleStateError
from evenflow.settings import Settings
from evenflow.settings.sections.input import parse_start
from partitioner_service.begin.prepare import prepare
from partitioner_service.kafka.committed_state import all_states
from partitioner_service.plane.data_plane import DataPlane
from tests.pipeline.end_to_end import Pipeline, Stream, assert_exact, make_settings
from tests.pipeline.planes import run as run_plane
from tests.pipeline.planes import start_thread, wait_until
from tests.pipeline.routed import create_topics, records, write, write_end
from tests.pipeline.routed import make_settings as small
from tests.unit.workbench.verify.pipeline_model import Record, run
from topics import clients
from workbench.verify.shell import verify

pytestmark = pytest.mark.pipeline


def starting(settings: Settings, start: str) -> Settings:
    return settings.model_copy(
        update={"input": settings.input.model_copy(update={"start": parse_start(start)})}
    )


@pytest.mark.long
def test_a_query_that_starts_at_the_latest_record_is_exact_from_there_on(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(kafka_settings, query_name, tmp_path, input={"partitions": 2, "start": "latest"})
    stream = Stream(settings)
    stream.write(700)
    everything = list(stream.records)
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.start("partition", "--until-ended")
        pipeline.wait_until(lambda: len(all_states(settings)) == 2)
        stream.records.clear()
        stream.write(1_500)
        stream.end()
        pipeline.start("aggregate", "--until-ended")
        pipeline.finish()
    begins = {partition: state.begin for partition, state in all_states(settings).items()}
    assert sum(begins.values()) == len(everything)
    assert_exact(stream)


def write_rows(settings: Settings, first: int, n: int, *, end: bool = False) -> None:
    """n rows a second of event time apart, the partitions in turn; then an end marker in each."""
    write(
        settings,
        [(i % 2, {"k": f"k{i % 3}", "t": i * 1_000, "v": i}) for i in range(first, first + n)],
        end=False,
    )
    if end:
        write_end(settings, {0: (first + n) // 2, 1: (first + n) // 2})


def write_results(settings: Settings) -> None:
    """The results that the model has for what lies at and behind the place where the query began."""
    begins = {partition: state.begin for partition, state in all_states(settings).items()}
    partitions: list[list[Record]] = [[], []]
    for message in records(settings, "input"):
        if message.offset() >= begins[message.partition()]:
            partitions[message.partition()].append(modelled(message))
    client = clients.producer(settings.kafka)
    for row in run(settings, partitions).rows:
        value = json.dumps(row).encode()
        client.produce(settings.topic("results"), value=value, key=row["key"].encode(), partition=0)
    clients.flush(client, settings.kafka)


def modelled(message: Message) -> Record:
    if message.value() is None:
        return Record(None, None, marker=json.loads(message.headers()[0][1]))
    row = json.loads(message.value())
    return Record(message.value(), (row["k"].encode(), row["t"], {"v": row["v"]}))


@pytest.mark.parametrize(("start", "read"), [("earliest", 60), ("between", 40)])
def test_verify_has_no_difference_wherever_the_query_starts(
    kafka_settings: Any, query_name: str, start: str, read: int
) -> None:
    settings = small(kafka_settings, query_name, input={"partitions": 2})
    create_topics(settings)
    write_rows(settings, 0, 20)
    between = max(message.timestamp()[1] for message in records(settings, "input")) + 1
    while time.time() * 1000 < between + 1:
        pass
    write_rows(settings, 20, 40, end=True)
    moment = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(between // 1000))}.{between % 1000:03}Z"
    settings = prepare(starting(settings, moment if start == "between" else "earliest"))
    run_plane(settings)
    write_results(settings)
    report = verify(settings)
    assert report.exact, report.text()
    assert report.read == read


def test_a_query_that_starts_at_the_latest_record_reads_what_comes_from_then_on(
    kafka_settings: Any, query_name: str
) -> None:
    settings = small(kafka_settings, query_name, input={"partitions": 2, "start": "latest"})
    create_topics(settings)
    write_rows(settings, 0, 20)
    thread, errors = start_thread(DataPlane(prepare(settings), until_ended=True))
    wait_until(lambda: len(all_states(settings)) == 2)
    write_rows(settings, 20, 40, end=True)
    thread.join(30)
    assert errors == []
    write_results(settings)
    report = verify(settings)
    assert report.exact, report.text()
    assert report.read == 40
    first = min(records(settings, "results"), key=lambda message: json.loads(message.value())["window_end"])
    assert json.loads(first.value())["n"] == 1, "the first windows hold only what was read"


def test_a_start_that_changes_in_mid_query_is_refused_by_name(kafka_settings: Any, query_name: str) -> None:
    settings = small(kafka_settings, query_name, input={"partitions": 2})
    create_topics(settings)
    write_rows(settings, 0, 20, end=True)
    run_plane(prepare(settings))
    for changed in ("latest", "2026-11-20T10:00:00Z"):
        with pytest.raises(IncompatibleStateError, match=r'input.start: "earliest" -> "'):
            prepare(starting(settings, changed))
        with pytest.raises(IncompatibleStateError, match=r'input.start: "earliest" -> "'):
            verify(starting(settings, changed))
