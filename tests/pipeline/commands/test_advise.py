"""`evenflow advise` on real topics."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from evenflow.errors import EvenflowError
from evenflow.settings import KafkaSettings, Settings, load_settings
from evenflow.wire.markers import EndOfStream
from topics import admin, clients

pytestmark = pytest.mark.pipeline
TUPLES = 6_000


def _settings_file(folder: Path, kafka: KafkaSettings, name: str) -> Path:
    file = folder / "evenflow.toml"
    file.write_text(
        f"[query]\nname = '{name}'\nkey = 'who'\ntime = 'at'\nwindow = '4s'\nslide = '1s'\n"
        "[input]\npartitions = 2\n[partitioner]\nworkers = 4\n"
        f"[kafka]\nbootstrap_servers = '{kafka.bootstrap_servers}'\n"
    )
    return file


def _fill(settings: Settings) -> None:
    """500 tuples/s of event time, half of them of one key; a third in partition 0, the rest in partition
    1; ended.
    """
    client = clients.producer(settings.kafka)
    for row in range(TUPLES):
        body = {"who": "всё" if row % 2 else f"k{row % 1000}", "at": row * 2}
        client.produce(settings.topic("input"), json.dumps(body).encode(), partition=min(1, row % 3))
        client.poll(0)
    client.produce(settings.topic("input"), b"{broken", partition=1)
    for partition in (0, 1):
        marker = EndOfStream(producer="p", tuples=TUPLES // 2)
        client.produce(settings.topic("input"), partition=partition, headers=marker.headers())
    clients.flush(client, settings.kafka)


def _advice(file: Path, *words: str) -> dict:
    result = CliRunner().invoke(app, ["--config", str(file), "advise", "--json", *words])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.more
def test_a_topic_is_sampled_as_the_settings_say_and_advised_on(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    file = _settings_file(tmp_path, kafka_settings, query_name)
    settings = load_settings(file)
    admin.ensure_topics(settings.kafka, admin.pipeline_topics(settings).values())
    _fill(settings)

    whole = _advice(file)
    assert (whole["tuples"], whole["unreadable"], whole["keys"]) == (TUPLES, 1, 501)
    assert (whole["workers"], whole["input_partitions"], whole["rate"]) == (4, 2, 500)
    assert (whole["window_ms"], whole["slide_ms"], whole["window_tuples"]) == (4000, 1000, 2000)
    assert whole["hot_keys"][0] == {"key": "всё", "key_base64": None, "tuples": 3000, "share": 0.5}
    assert [one["family"] for one in whole["candidates"] if one["chosen"]] == ["splitting"]

    work = 3 * TUPLES // 2 + 6 * (5 * 2 + 45 * 3 + 450 * 4)  # each of 500 keys comes six times
    weighed = _advice(file, "--cost", "length(who) * 2")
    assert (weighed["cost"], weighed["mean_cost"]) == ("length(who) * 2", 2 * work / TUPLES)
    assert weighed["hot_keys"][0]["share"] == weighed["top_share"] == 9_000 / work
    assert 'cost = "length(who) * 2"' in weighed["settings"]

    newest, oldest = _advice(file, "--sample", "600"), _advice(file, "--sample", "600", "--oldest")
    assert 590 <= newest["tuples"] <= 602  # the markers and the broken record are among the newest
    assert 600 <= oldest["tuples"] <= 602
    assert newest["unreadable"] == 1
    assert oldest["unreadable"] == 0
    assert newest["seconds"] == pytest.approx(1.2, abs=0.05)

    by_record_key = CliRunner().invoke(app, ["--config", str(file), "advise", "--key", "@key"])
    assert isinstance(by_record_key.exception, EvenflowError)
    assert "can be read, mostly: the record has no key" in by_record_key.exception.message

    text = file.read_text()
    file.write_text(text.replace("slide = '1s'", "slide = '1s'\nwhere = \"who LIKE 'k%'\""))
    filtered = _advice(file)
    assert (filtered["tuples"], filtered["unreadable"], filtered["keys"]) == (TUPLES // 2, 1, 500)
    file.write_text(text.replace("slide = '1s'", "slide = '1s'\nwhere = \"who = 'nobody'\""))
    nothing = CliRunner().invoke(app, ["--config", str(file), "advise"])
    assert isinstance(nothing.exception, EvenflowError)
    assert f"leave no tuple of {TUPLES:,} records" in nothing.exception.message


@pytest.mark.more
def test_a_topic_that_is_missing_empty_or_ended_before_it_began_is_refused(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    file = _settings_file(tmp_path, kafka_settings, query_name)
    settings = load_settings(file)

    def refusal(*words: str) -> str:
        result = CliRunner().invoke(app, ["--config", str(file), "advise", *words])
        assert isinstance(result.exception, EvenflowError), result.output
        return result.exception.message

    assert refusal() == f"topic {query_name}.input does not exist"
    assert refusal("--topic", "no-such") == "topic no-such does not exist"
    admin.ensure_topics(settings.kafka, admin.pipeline_topics(settings).values())
    assert refusal() == f"topic {query_name}.input is empty"
    client = clients.producer(settings.kafka)
    client.produce(settings.topic("input"), headers=EndOfStream(producer="p", tuples=0).headers())
    clients.flush(client, settings.kafka)
    assert refusal() == f"the records read of topic {query_name}.input are no tuples, but ends of streams"


def test_stray_times_in_a_topic_are_named_and_change_no_figure(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    result = []
    for name, stray in ((f"{query_name}-clean", False), (f"{query_name}-stray", True)):
        file = _settings_file(tmp_path, kafka_settings, name)
        settings = load_settings(file)
        admin.ensure_topics(settings.kafka, admin.pipeline_topics(settings).values())
        client = clients.producer(settings.kafka)
        for row in range(TUPLES):
            at = 1_700_000_000_000 + 2 * row
            wrong = {100: at // 1000, 3_000: at // 1000, 4_000: 3_976_000_000_000}.get(row)
            for time in (at, wrong) if stray and wrong else (at,):
                body = json.dumps({"who": f"k{row % 7}", "at": time}).encode()
                client.produce(settings.topic("input"), body, partition=row % 2)
        clients.flush(client, settings.kafka)
        result.append(_advice(file))
    clean, dirty = result
    assert [(one["tuples"], one["cause"]) for one in dirty["strays"]] == [
        (2, "are in s, not ms"),
        (1, "lie further ahead of the clock than query.max_ahead_of_clock allows"),
    ]
    assert dirty["strays"][0]["example"].startswith("offset 51 of partition 0, read as 1970-01-20")
    assert clean["strays"] == []
    for figure in ("tuples", "keys", "rate", "seconds", "window_tuples", "hot_keys", "partitioner", "zipf"):
        assert dirty[figure] == clean[figure], figure
