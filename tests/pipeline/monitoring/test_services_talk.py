"""What the services say while they work, on a real broker: nothing that stands still does so silently."""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline import spark_stream
from tests.pipeline.planes import parts_of, some_rows, wait_until
from tests.pipeline.routed import create_topics, make_settings, write
from tests.pipeline.spark_stream import start
from workbench.local.ports import free_ports
from workbench.local.processes import ChildProcess

pytestmark = pytest.mark.pipeline

FAST = """
import json, sys, time
from evenflow.commands.logs import configure
from evenflow.settings import load_settings
from partitioner_service.app import serve
configure(quiet=False, verbose=False, as_json=False)
serve(load_settings(**json.loads(sys.argv[1])), clock=lambda: 30 * time.monotonic())
"""
"""A partitioner whose minute lasts two seconds."""


def page(port: int, name: str = "") -> tuple[int, str]:
    """HTTP status (0: nobody listens yet) and text of a page."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{name}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


def test_three_of_four_partitions_with_records_is_said_not_healthy_and_over_with_the_first_record(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    settings = make_settings(kafka_settings, query_name, partitioner={"web_port": port})
    create_topics(settings)
    write(settings, some_rows(600, partitions=3), end=False)
    child = ChildProcess([sys.executable, "-c", FAST, parts_of(settings)], log=tmp_path / "service.log")
    try:
        wait_until(lambda: "input partition 3 had no tuple yet" in child.output() or not child.alive)
        assert 'To go on without it: [partitioner] idle_timeout = "30s" (now: none)' in child.output()
        wait_until(lambda: "partition 3 had no tuple" in page(port, "healthy/")[1] or not child.alive)
        status, text = page(port, "healthy/")
        assert (status, json.loads(text)["healthy"]) == (503, False)
        wait_until(lambda: page(port, "alive/")[0] == 200)  # a restart would not help

        status, text = page(port)
        assert status == 200
        for shown in (
            'href="/status/"',
            'href="/healthy/"',
            'href="/alive/"',
            query_name,
            "600",
            "no: input",
        ):
            assert shown in text

        write(settings, [(3, {"k": "a", "t": 500, "v": 1})], end=False)
        wait_until(lambda: "waits for a first tuple any more" in child.output())
        wait_until(lambda: page(port, "healthy/")[0] == 200)
    finally:
        assert child.terminate(30) == 0, child.tail()
    lines = child.output().splitlines()
    assert f"query {query_name}, instance 0: {query_name}.input (4 partitions)" in lines[0]
    for said in (
        "assigned input partitions 0-3: from the beginning",
        "status page: http://127.0.0.1:",
        "read 6",
    ):
        assert any(said in line for line in lines), child.output()
    assert sum("had no tuple yet" in line for line in lines) < 5, "said at once, then rarely"


def test_the_first_rejection_and_a_large_share_are_said_and_json_logs_are_json(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(kafka_settings, query_name, query={"key": "usr"}, input={"partitions": 2})
    create_topics(settings)
    write(settings, some_rows(300, partitions=2))
    log = tmp_path / "service.log"
    process = start(settings, log, "partition", "--until-ended", "--unchecked", "--json-logs")
    try:
        assert process.wait(60) == 0, log.read_text()
    finally:
        process.kill()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert all({"ts", "level", "logger", "message"} <= set(line) for line in lines)
    warned = {line["concern"]: line["message"] for line in lines if line.get("event") == "concern"}
    assert "300 of 300 records rejected as unreadable, unchanged to" in warned["rejected: unreadable"]
    assert "usr" in warned["rejected: unreadable"]
    assert "100 % of the records are rejected" in warned["10 % rejected"]
    (beat,) = [line for line in lines if line.get("event") == "heartbeat"]
    assert (beat["read"], beat["routed"], beat["rejected_by_reason"]) == (300, 0, {"unreadable": 300})


@pytest.mark.more
def test_the_application_says_what_it_does_and_sparks_own_noise_goes_to_a_file(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings = spark_stream.make_settings(kafka_settings, query_name, tmp_path)
    stream = spark_stream.Stream(settings)
    stream.write(12)
    stream.end()
    log = tmp_path / "aggregate.log"
    process = start(settings, log, "aggregate", "--until-ended")
    try:
        assert process.wait(120) == 0, log.read_text()
    finally:
        process.kill()
    lines = log.read_text().splitlines()
    # A busy machine may start Python too slowly for Spark, which is said
    # (tests/pipeline/spark/test_slow_start.py).
    assert all(" INFO " in line or "Spark waits 10 s" in line for line in lines), "nothing but what we say"
    said = "\n".join(lines)
    for part in (
        f"query {query_name}, fused: {query_name}.routed to kafka {query_name}.results, from the beginning",
        f"query {query_name}, fused: a micro-batch reads at most 30 frames (spark.max_frames_per_batch, set)",
        "tasks combine them (spark.combine_tasks, chosen for",
        f"checkpoint: {settings.spark.checkpoint}/{query_name}",
        "running: combine, reduce",
        f"{len(stream.rows):,} tuples (",
        "rows out",
        "the input has ended",
    ):
        assert part in said, said
    (own,) = [line.rpartition(" ")[2] for line in lines if "what Spark itself says is in" in line]
    assert own == f"{settings.spark.checkpoint}/{query_name}/aggregate.log"
    assert "log4j" in Path(own).read_text() or "WARN" in Path(own).read_text()
    told = spark_stream.told(settings)
    assert (told[-1].open_windows, told[-1].backlog) == (0, 0)
    assert {some.frames_per_batch for some in told} == {30}
    assert all(some.combine_tasks for some in told)
    assert sum(some.tuples for some in told) == len(stream.rows)
    assert sum(some.rows_out for some in told) == len(stream.expected())
