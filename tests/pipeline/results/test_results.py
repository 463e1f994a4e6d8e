"""`evenflow results` on a real broker: what came out, each row once, from every sink."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from cli.main import app
from evenflow.errors import ProtocolError
from evenflow.settings import KafkaSettings, Settings, save_settings
from evenflow.settings.views import view
from tests.pipeline.written_results import settings_of_results, write_results
from topics import admin, clients
from topics.state import TopicSpec
from workbench.demo.windows import busiest
from workbench.result_rows import ResultRows

pytestmark = [pytest.mark.pipeline, pytest.mark.family]

SINKS = ("kafka", "avro", "frames", "parquet", "delta")


@pytest.fixture
def command(kafka_settings: KafkaSettings, tmp_path: Path) -> Callable[..., Any]:
    """Runs `evenflow results` with these settings and words."""

    def run(settings: Settings, *words: str) -> Any:
        admin.ensure_topics(kafka_settings, [TopicSpec(settings.topic("input"), 2, {})])
        file = tmp_path / "settings.json"
        save_settings(settings, file)
        return CliRunner().invoke(app, ["--config", str(file), "results", *words])

    return run


@pytest.mark.parametrize("sink", SINKS)
def test_the_newest_window_is_shown_and_any_other_and_a_key_in_every_window(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path, command: Callable[..., Any], sink: str
) -> None:
    settings = settings_of_results(kafka_settings, query_name, tmp_path, sink=sink)
    write_results(settings)
    newest = command(settings)
    assert newest.exit_code == 0, newest.output
    title, heading, *rows = newest.stdout.splitlines()
    assert title == (
        "window 1970-01-01 00:00:01 to 1970-01-01 00:00:05 UTC: 1 of 1 rows; 2 windows have results"
    )
    assert heading.split() == ["key", "n", "total"]
    assert [row.split() for row in rows] == [["8", "2", "0.5"]]
    first = command(settings, "--window", "1970-01-01T00:00:00Z", "--rows", "2").stdout.splitlines()
    assert first[0].endswith("2 of 3 rows; 2 windows have results")
    assert len(first) == 4
    by_key = [json.loads(line) for line in command(settings, "--key", "8", "--json").stdout.splitlines()]
    assert by_key == [
        {"window_start": start, "window_end": start + 4000, "key": 8, "n": 2, "total": 0.5}
        for start in (1000, 0)
    ]
    both = command(settings, "--key", "8", "--window", "1970-01-01T00:00:00Z", "--json").stdout.splitlines()
    assert [json.loads(line)["window_start"] for line in both] == [0]
    nowhere = command(settings, "--window", "1970-01-01T00:00:07Z", "--out", str(tmp_path / "none.csv"))
    assert "no window with results begins at 1970-01-01 00:00:07 UTC" in str(nowhere.exception)
    nothing = command(settings, "--window", "1970-01-01T00:00:07Z")
    assert "no window with results begins at 1970-01-01 00:00:07 UTC" in str(nothing.exception)


@pytest.mark.parametrize("sink", SINKS)
def test_an_export_has_every_row_once_with_its_types(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path, command: Callable[..., Any], sink: str
) -> None:
    settings = settings_of_results(kafka_settings, query_name, tmp_path, sink=sink, key="@key")
    write_results(settings)
    done = command(settings, "--out", str(tmp_path / "all.parquet"))
    assert done.stdout == f"4 rows in {tmp_path}/all.parquet\n", done.output
    rows = pq.read_table(tmp_path / "all.parquet").to_pylist()
    assert [(row["window_end"].second, row["key"], row["n"], row["total"]) for row in rows] == [
        (4, b"8", 2, 0.5),
        (4, b"b", 2, None),
        (4, b"\xff\x00", 2, 0.5),
        (5, b"8", 2, 0.5),
    ]
    one = command(settings, "--out", str(tmp_path / "one.csv"), "--window", "1970-01-01T00:00:01Z")
    assert one.exit_code == 0
    assert csv.read_csv(tmp_path / "one.csv").to_pylist()[0]["n"] == 2
    refused = command(settings, "--out", str(tmp_path / "all.xlsx"))
    assert "ends with neither .csv nor .parquet" in str(refused.exception)
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} >= {"all.parquet", "one.csv"}
    assert not list(tmp_path.glob(".*part"))


@pytest.mark.parametrize("sink", SINKS)
def test_a_reader_that_follows_gets_each_new_row_once(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path, sink: str
) -> None:
    settings = settings_of_results(kafka_settings, query_name, tmp_path, sink=sink)
    write_results(settings)
    of_all, from_now_on = ResultRows(settings), ResultRows(settings)
    from_now_on.pass_over()
    assert sum(table.num_rows for table in of_all.new()) == 4
    assert list(of_all.new()) == list(from_now_on.new()) == []
    write_results(settings, later=True)
    for reader in (of_all, from_now_on):
        rows = [row for table in reader.new() for row in table.to_pylist()]
        assert sorted((row["window_end"].second, row["key"]) for row in rows) == [(6, -5), (6, 8)]
    if sink not in ("parquet", "delta"):
        write_results(settings)  # a driver that stood still repeats its micro-batch
        assert list(of_all.new()) == []


@pytest.mark.parametrize("sink", SINKS)
def test_a_key_of_several_columns_is_a_column_for_each_unless_an_earlier_evenflow_began_the_query(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path, command: Callable[..., Any], sink: str
) -> None:
    settings = settings_of_results(
        kafka_settings, query_name, tmp_path, sink=sink, key=["shop.id", "product"]
    )
    write_results(settings)
    assert command(settings).stdout.splitlines()[1].split() == ["shop.id", "product", "n", "total"]
    by_key = command(settings, "--key", '["DE", 8]', "--json").stdout.splitlines()
    assert [json.loads(line) for line in by_key] == [
        {
            "window_start": start,
            "window_end": start + 4000,
            "shop.id": "DE",
            "product": 8,
            "n": 2,
            "total": 0.5,
        }
        for start in (1000, 0)
    ]
    for file in (tmp_path / "all.parquet", tmp_path / "all.csv"):
        assert command(settings, "--out", str(file)).exit_code == 0
    rows = pq.read_table(tmp_path / "all.parquet").to_pylist()
    keys = [(row["shop.id"], row["product"]) for row in rows]
    assert keys == [("", 0), ("DE", 8), ('q"é', -5), ("DE", 8)]
    assert [
        (row["shop.id"] or "", row["product"]) for row in csv.read_csv(tmp_path / "all.csv").to_pylist()
    ] == keys
    refused = str(command(settings, "--key", "DE").exception)
    assert 'type the parts of the key as a JSON array, such as ["DE",5]' in refused


def test_a_query_without_results_says_what_it_waits_for(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path, command: Callable[..., Any]
) -> None:
    settings = settings_of_results(kafka_settings, query_name, tmp_path, sink="kafka")
    done = command(settings)
    assert done.exit_code == 1
    assert "no results yet" in done.stderr


def test_a_view_is_shown_by_its_name_and_another_name_is_refused(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path, command: Callable[..., Any]
) -> None:
    settings = settings_of_results(
        kafka_settings,
        query_name,
        tmp_path,
        sink="kafka",
        views={"totals": {"aggregates": {"n": "count", "total": "sum(f)"}}},
    )
    totals = view(settings, "totals")
    admin.ensure_topics(settings.kafka, admin.pipeline_topics(totals).values())
    write_results(totals)
    assert "1 of 1 rows; 2 windows" in command(settings, "--view", "totals").stdout
    refused = str(command(settings, "--view", "total").exception)
    assert "no view or summary 'total'; did you mean 'totals'?" in refused


def test_a_record_that_is_no_row_is_named_with_its_place(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path, command: Callable[..., Any]
) -> None:
    settings = settings_of_results(kafka_settings, query_name, tmp_path, sink="kafka")
    write_results(settings)
    client = clients.producer(kafka_settings)
    client.produce(settings.topic("results"), b'{"window_start":0}', b"8", partition=0)
    clients.flush(client, kafka_settings)
    done = command(settings)
    assert isinstance(done.exception, ProtocolError)
    assert "partition 0, offset 8 of the results is no row of query" in str(done.exception)


def test_options_that_do_not_go_together_and_times_that_are_none_are_refused(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path, command: Callable[..., Any]
) -> None:
    settings = settings_of_results(kafka_settings, query_name, tmp_path, sink="kafka")
    for words, said in (
        (("--follow", "--out", "a.csv"), "--follow shows every new row"),
        (("--window", "yesterday"), "--window: 'yesterday' is no time"),
        (("--key", "eight"), "this is no key of"),
    ):
        assert said in str(command(settings, *words).exception)


@pytest.mark.parametrize(
    ("key", "first"),
    [("k", "-5"), ("@key", "/wA="), (["shop.id", "product"], ", 0")],
    ids=["number", "bytes", "parts"],
)
def test_the_demo_shows_the_key_of_its_busiest_windows(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path, key: str | list[str], first: str
) -> None:
    settings = settings_of_results(kafka_settings, query_name, tmp_path, sink="kafka", key=key)
    write_results(settings)
    result = busiest(settings, 5)
    assert [(window.end, window.tuples, window.keys, window.key) for window in result] == [
        (4000, 6, 3, first)
    ]
