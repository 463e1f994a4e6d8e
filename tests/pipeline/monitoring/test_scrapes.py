"""What a real Prometheus makes of a part that starts again, of a very large pipeline, and of one that is
not there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from evenflow.settings import KafkaSettings, Settings, load_settings
from evenflow.telemetry import BatchRecord, DecisionRecord, HotKey, PartitionerRecord, PartWork
from monitoring.grafana.__main__ import FOLDER
from monitoring.instruments.controller import ControllerInstruments
from monitoring.instruments.partitioner import PartitionerInstruments
from monitoring.instruments.spark import SparkInstruments
from monitoring.serving import served
from tests.pipeline.planes import some_rows, start_instance, wait_until
from tests.pipeline.routed import create_topics, make_settings, write
from workbench.local.ports import CONTROLLER_JOB, HOST, free_ports
from workbench.local.prometheus import Prometheus

pytestmark = [
    pytest.mark.pipeline,
    pytest.mark.more,
    pytest.mark.timeout(180),
    pytest.mark.xdist_group("scrapes"),
]

WORKERS, INSTANCES, PARTITIONS = 100, 100, 1_000
MOST_LINES = 24
"""That a person can tell apart in one panel. A heat map has a row for each worker."""
_NEVER_READ = range(500, 600)
_COMMON: dict[str, Any] = {"query": "large", "fingerprint": "0123456789abcdef"}


def value(prometheus: Prometheus, expression: str) -> float | None:
    """Of the one series that an expression has."""
    result = prometheus.query(expression)
    return float(result[0]["value"][1]) if result else None


def test_a_partitioner_that_starts_again_is_a_failed_scrape_and_its_counters_go_on(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    settings = make_settings(
        kafka_settings, query_name, partitioner={"web_port": port, "commit_interval": 50}
    )
    create_topics(settings)
    logs = [tmp_path / "first.log", tmp_path / "second.log"]
    routed, rows = "evenflow_tuples_routed_total", some_rows(3_000)
    with Prometheus(tmp_path / "prometheus", {"evenflow-partitioner": port}, every=0.5) as prometheus:
        first = start_instance(settings, logs[0])
        try:
            wait_until(lambda: value(prometheus, routed) == 0)
            write(settings, rows[:2_000], end=False)
            wait_until(lambda: value(prometheus, routed) == 2_000)
        finally:
            first.terminate(30)
        wait_until(lambda: value(prometheus, "up") == 0)
        assert value(prometheus, routed) is None, "what a part no longer says is not taken for what it says"
        write(settings, rows[2_000:], end=False)
        second = start_instance(settings, logs[1])
        try:
            wait_until(lambda: value(prometheus, routed) == 1_000)
            assert value(prometheus, "up") == 1
            assert value(prometheus, f"resets({routed}[5m])") == 1
            # Prometheus reckons with the stretch before the first scrape and after the last.
            assert value(prometheus, f"increase({routed}[5m])") == pytest.approx(3_000, rel=0.1)
        finally:
            second.terminate(30)
    assert not [log for log in logs if "Traceback" in log.read_text()]


class Growing:
    """Status and telemetry of one of very many instances whose work goes on."""

    def __init__(self, number: int) -> None:
        self._partitions = range(number * PARTITIONS // INSTANCES, (number + 1) * PARTITIONS // INSTANCES)
        self._number = number
        self._began = time.monotonic()

    def status(self) -> dict[str, Any]:
        tuples = round(1_000 * (time.monotonic() - self._began))
        return {
            "state": "running",
            "seconds_since_progress": 0.1 * self._number,
            "assignment": {str(p): self._partition(p) for p in self._partitions},
            "read": tuples * WORKERS + tuples // 100,
            "filtered": 0,
            "tuples": tuples * WORKERS,
            "rejected_by_reason": {"late": tuples // 100},
            "busy_seconds": 1.0,
            "rebalances": self._number,
            "reading": "queues",
            "rhythm": {"block_tuples": 50_000, "linger": 50, "commit_interval": 500},
            "workers": WORKERS,
            "routed_partitions": WORKERS,
            "worker_tuples": [tuples + worker for worker in range(WORKERS)],
            "worker_costs": [tuples + worker for worker in range(WORKERS)],
            "costs_below": 0,
            "costs_above": 0,
            "plan_epoch": 1,
            "plans_ignored": 0,
            "learning_since": time.time() - 600,
            "learned_at": time.time() - self._number / 10,
        }

    def _partition(self, partition: int) -> dict[str, Any]:
        """A hundred of them never had a tuple, and windows wait for them."""
        watermark = None if partition in _NEVER_READ else round(1_000 * time.time()) - partition
        return {"lag": partition, "watermark": watermark, "ended": False, "idle": False}

    def told(self) -> PartitionerRecord:
        hot = HotKey(key="hot", length=3, share=0.01, holders=3)
        return PartitionerRecord(
            **_COMMON, time=1, instance=str(self._number), started=1, owned=len(self._partitions), inputs=1,
            epoch=1,
            workers=WORKERS, tuples=1, rejected=0, read=1, filtered=0, period_ms=1_000,
            keys=50.0 + self._number,
            imbalance=0.001, head_keys=self._number, hottest=[hot] * 10,
        )  # fmt: skip


def spark(settings: Settings) -> SparkInstruments:
    made = SparkInstruments(settings)
    work = PartWork(tasks=WORKERS, busy_ms=900.0, longest_ms=20.0, rows=100_000, keys=50.0, replication=1.2)
    made.batch(
        BatchRecord(
            **_COMMON, time=round(1_000 * time.time()), stage="fused", batch=1, rows=100, duration_ms=600,
            batch_interval_ms=1_000, load=0.6, backlog=1, parts={"combine": work, "reduce": work}, slots=8,
            epoch=1,
            tuples=100_000, rows_out=10, windows_closed=1, open_windows=2, state_bytes=10**6,
            finished=1,
        )
    )  # fmt: skip
    return made


def controller(settings: Settings) -> ControllerInstruments:
    made = ControllerInstruments(settings)
    made.watch(
        record_count=lambda: 1,
        ignored=dict,
        silence=lambda: {"fused": 1.0, "partitioner": 1.0},
        patience=20.0,
    )
    made.decided(
        DecisionRecord(
            **_COMMON, time=round(1_000 * time.time()), policy="ds2", step=1, p=WORKERS, r=8,
            wanted_p=WORKERS,
            wanted_r=8, zone=1, observation={"load": 0.6},
        )
    )  # fmt: skip
    return made


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """That has scraped a hundred instances which own a thousand input partitions and route to a hundred
    workers.
    """
    settings = load_settings(query={"name": "large"})
    with ExitStack() as stack:
        pages: list[ExitStack] = []
        # One after the other they would take half a minute to close.
        pool = stack.enter_context(ThreadPoolExecutor(INSTANCES))
        stack.callback(lambda: list(pool.map(ExitStack.close, pages)))

        def port(made: Any) -> int:
            pages.append(ExitStack())
            return pages[-1].enter_context(served(made, HOST, 0, setting="x"))

        ports = []
        for number in range(INSTANCES):
            growing, made = Growing(number), PartitionerInstruments(settings)
            made.watch(growing.status, growing.told)
            ports.append(port(made))
        targets = {
            "evenflow-partitioner": ports,
            "evenflow-spark": port(spark(settings)),
            CONTROLLER_JOB: port(controller(settings)),
        }
        folder = tmp_path_factory.mktemp("large")
        # A hundred pages in one process: with less time for each round, scrapes run out of time beside other
        # work.
        prometheus = stack.enter_context(Prometheus(folder, targets, every=8.0, hold=8.0))
        wait_until(lambda: value(prometheus, f"count(up == 1) == {INSTANCES + 2}"))
        wait_until(lambda: prometheus.query("query:evenflow_imbalance_ratio:rate1m"))
        wait_until(lambda: prometheus.query('ALERTS{alertname="EvenflowWatermarkStalled"}'), timeout=100)
        yield prometheus


def panels() -> list[dict[str, Any]]:
    boards = [json.loads(file.read_text()) for file in sorted(FOLDER.glob("*.json"))]
    return [panel for board in boards for panel in board["panels"] if "targets" in panel]


def series(prometheus: Prometheus, panel: dict[str, Any], *, query: str) -> int:
    """That a panel shows at this moment."""
    asked = [target["expr"] for target in panel["targets"]]
    for name, chosen in (("$query", query), ("$instance", ".*"), ("$__rate_interval", "1m")):
        asked = [expression.replace(name, chosen) for expression in asked]
    return sum(len(prometheus.query(expression)) for expression in asked)


def test_a_hundred_workers_and_instances_and_a_thousand_partitions_leave_panels_readable(
    large: Prometheus,
) -> None:
    shown = {panel["title"]: (panel["type"], series(large, panel, query="large")) for panel in panels()}
    assert shown["Load of each worker"] == ("heatmap", WORKERS)
    assert shown["Unread records"][1] == 10
    too_many = {title: number for title, (kind, number) in shown.items() if number > MOST_LINES}
    assert too_many == {"Load of each worker": WORKERS, "Tuples of each worker": WORKERS}
    assert shown["Tuples of each worker"][0] == "heatmap"
    assert {number for kind, number in shown.values() if kind == "stat"} <= {0, 1}


def test_no_alert_comes_once_for_each_of_a_hundred_partitions(large: Prometheus) -> None:
    alerts = large.query("count by (alertname) (ALERTS)")
    assert {alert["metric"]["alertname"]: float(alert["value"][1]) for alert in alerts} == {
        "EvenflowWatermarkStalled": 10
    }
    assert large.rules() == {"ok"}


def test_a_query_that_is_not_there_has_no_numbers(large: Prometheus) -> None:
    """Of the answering processes there is one number, whatever the query: who does not answer says none."""
    stats = [panel for panel in panels() if panel["type"] == "stat"]
    shown = {panel["title"]: series(large, panel, query="nobody") for panel in stats}
    assert {title for title, number in shown.items() if number} == {"parts that answer"}
    assert {panel["fieldConfig"]["defaults"]["noValue"] for panel in stats} == {"not known"}
