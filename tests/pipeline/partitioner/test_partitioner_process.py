"""The partitioner as a process on a real broker: its status page, plans, and SIGTERM at any moment."""

from __future__ import annotations

import json
import signal
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from prometheus_client import generate_latest

from evenflow.plans import Plan
from evenflow.settings import Settings
from evenflow.windows import END_MARK
from monitoring.instruments.partitioner import PartitionerInstruments
from partitioner_service.kafka.committed_state import all_states
from partitioner_service.plans_by_hand import publish
from tests.pipeline.planes import run, some_rows, start_instance, total, wait_until
from tests.pipeline.routed import (
    create_topics,
    expected_counts,
    make_settings,
    read_routed,
    write,
    write_end,
)
from topics import admin, clients
from workbench.local.broker import EmbeddedBroker
from workbench.local.ports import free_ports

pytestmark = pytest.mark.pipeline


def write_no_plans(settings: Settings) -> None:
    """Three records that the plan agent must survive."""
    client = clients.producer(settings.kafka)
    for value in (None, b"", b"\xff{"):
        client.produce(settings.topic("plan"), key=b"\xff", value=value)
    clients.flush(client, settings.kafka)


def abort_a_plan(settings: Settings, *, workers: int) -> None:
    """The next plan in a transaction that is aborted once the record lies in the log."""
    client = clients.producer(settings.kafka, transactional_id=f"{settings.query.name}.somebody")
    client.init_transactions(30)
    client.begin_transaction()
    plan = Plan(epoch=1, p=workers, r=1)
    client.produce(settings.topic("plan"), value=plan.encode(settings.fingerprint), key=plan.key)
    clients.flush(client, settings.kafka)
    client.abort_transaction(30)


def test_where_queues_are_not_proven_records_come_through_consume_and_the_metrics_say_so(
    kafka_settings: Any, query_name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings = make_settings(kafka_settings, query_name, partitioner={"reading": "queues"})
    create_topics(settings)
    write(settings, some_rows(200))
    monkeypatch.setattr(confluent_kafka, "__version__", "2.99.0")
    plane = run(settings)
    instruments = PartitionerInstruments(settings)
    instruments.watch(plane.status, lambda: None)
    metrics = generate_latest(instruments.registry).decode()
    assert f'evenflow_reading_from_queues{{query="{query_name}"}} 0.0' in metrics
    assert f'evenflow_tuples_routed_total{{query="{query_name}"}} 200.0' in metrics
    assert "records are read by consume(), at about half the speed" in caplog.text


def test_the_service_stops_on_sigterm_serves_its_status_and_follows_plans(
    kafka_settings, query_name, tmp_path
):
    (unused_tcp_port,) = free_ports(1)
    settings = make_settings(
        kafka_settings,
        query_name,
        partitioner={"web_port": unused_tcp_port, "workers": 3, "commit_interval": 50},
    )
    create_topics(settings)
    child = start_instance(settings, tmp_path / "service.log")
    try:
        write(settings, some_rows(1_000), end=False)
        status: dict[str, Any] = {}

        def text(name: str) -> str:
            try:
                with urllib.request.urlopen(
                    f"http://127.0.0.1:{unused_tcp_port}/{name}/", timeout=5
                ) as answer:
                    return answer.read().decode()
            except OSError:
                assert child.alive, child.tail()
                return "{}"

        def page(name: str) -> dict[str, Any]:
            return json.loads(text(name))

        def routed_all() -> bool:
            status.update(page("status"))
            return status.get("tuples") == 1_000

        wait_until(routed_all)
        assert sum(status["loads"]) == 1_000
        assert sorted(status["assignment"]) == ["0", "1", "2", "3"]
        wait_until(lambda: page("status")["tuples_per_second"] > 0)
        assert page("healthy") == {"healthy": True, "state": "running"}
        metrics = text("metrics")
        assert f'evenflow_tuples_routed_total{{query="{query_name}"}} 1000.0' in metrics
        assert "faust_messages_received_total" in metrics, "Faust's own sensors stand beside ours"
        assert "<title>evenflow</title>" in text("live")
        wait_until(lambda: len(page("live/state").get("instances", [])) == 1)
        assert page("live/state")["query"] == query_name
        write_no_plans(settings)
        abort_a_plan(settings, workers=2)
        publish(settings, workers=1)
        rows = [(p, {"k": row["k"], "t": row["t"] + 2_000, "v": 1}) for p, row in some_rows(1_000)]

        def plan_followed() -> bool:
            write(settings, rows[:100], end=False)
            return page("status").get("plan_epoch") == 1

        wait_until(plan_followed)
        shown = page("status")
        assert (shown["workers"], shown["plans_ignored"]) == (1, 3), (
            "had the aborted plan counted, this would not"
        )
    finally:
        code_ = child.terminate(30)
    assert code_ == 0, Path(tmp_path / "service.log").read_text()[-2000:]
    states = all_states(settings)
    read, routed, rejected = total(states)
    assert read == routed + rejected >= 1_000
    assert sum(read_routed(settings).counts.values()) == routed
    assert all(state.mark(settings.query) < END_MARK for state in states.values())


@pytest.mark.more
def test_sigterm_at_any_moment_of_the_start_ends_the_process_with_0(kafka_settings, query_name, tmp_path):
    settings = make_settings(kafka_settings, query_name)
    create_topics(settings)
    for moment in ("DataPlaneService]: Starting", "assigned input partitions", "status page"):
        child = start_instance(settings, tmp_path / f"{len(moment)}.log")
        try:
            wait_until(lambda child=child, moment=moment: moment in child.output() or not child.alive)
        finally:
            assert child.terminate(25) == 0, child.tail()


@pytest.mark.long
def test_sigterm_while_the_broker_is_gone_ends_the_process_within_its_grace(query_name, tmp_path):
    with EmbeddedBroker(data_dir=tmp_path / "broker") as broker:
        settings = make_settings(broker.settings(), query_name, partitioner={"commit_interval": 5_000})
        create_topics(settings)
        write(settings, some_rows(500), end=False)
        child = start_instance(settings, tmp_path / "service.log")
        try:
            topic = settings.topic("routed")
            wait_until(lambda: admin.describe(settings.kafka, [topic])[topic].records or not child.alive)
            broker.kill()
            child.signal(signal.SIGTERM)
            assert child.wait(20) != -signal.SIGKILL, child.tail()
        finally:
            child.kill()
        broker.restart()
        write_end(settings, Counter(p for p, _ in some_rows(500)))
        run(settings)
        routed = read_routed(settings)
    assert routed.counts == expected_counts(settings, some_rows(500))
