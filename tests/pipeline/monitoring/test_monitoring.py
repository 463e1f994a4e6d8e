"""A live pipeline under a real Prometheus: every panel has data, every metric is there, and the live page
says the same.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.pages import page
from tests.patience import PATIENCE
from tests.pipeline.firing import firing
from tests.pipeline.panels import BATCHES, EXCHANGE, asked, has_data, queries, series
from tests.pipeline.partitioner.test_exchange import Instances
from workbench.elastic import LoopObserver, LoopOptions, LoopResult, run_loop, shape_of
from workbench.local.ports import WebPorts
from workbench.local.prometheus import Prometheus

pytestmark = [
    pytest.mark.pipeline,
    pytest.mark.more,
    pytest.mark.timeout(420),
    pytest.mark.xdist_group("monitoring"),
]
_PATIENCE = 240.0 * PATIENCE
_QUIET = {
    "evenflow_tuples_rejected_total",
    "evenflow_snapshot_timestamp_seconds",
    "evenflow_telemetry_ignored_total",
    "evenflow_plans_ignored_total",
    "evenflow_certificate_end_timestamp_seconds",
}
"""Metrics of a pipeline that is well, young and without TLS: nothing was rejected, ignored or saved yet."""

_EMPTY = {"faults/Age of learned state/A"}
"""Queries of panels that such a pipeline leaves without data: no learned state was saved so early."""


@dataclass
class Watched:
    """What was asked of a pipeline in the middle of its stream."""

    panels: dict[str, int | str]
    """Series of each query of each panel, or what Prometheus said."""
    names: set[str]
    page: dict[str, Any]
    figures: dict[str, set[float]]
    """Before and after the page was asked: a plan may come between."""
    firing: set[str]
    result: LoopResult


class Observer(threading.Thread):
    """Asks everything once the stream is far enough; the pipeline itself runs in the main thread, as
    signals want it.
    """

    def __init__(self, ports: WebPorts, prometheus: Prometheus) -> None:
        super().__init__(daemon=True)
        self._ports = ports
        self._prometheus = prometheus
        self.far_enough, self.ended = threading.Event(), threading.Event()
        self.seen: dict[str, Any] = {}

    def replayed(self, sent: int, total: int | None) -> None:
        if total and sent > 0.8 * total:
            self.far_enough.set()

    def run(self) -> None:
        if self.far_enough.wait(_PATIENCE):
            try:
                self._ask()
            except BaseException as error:
                self.seen["error"] = error

    def _ask(self) -> None:
        before = self._figures()
        self.seen["page"] = page(self._ports.control, "/live/state/")[1]
        for _ in range(2):  # one scrape later
            threading.Event().wait(1.0)
            after = self._figures()
            before = {name: values | after[name] for name, values in before.items()}
        self.seen["figures"] = before
        self.seen["firing"] = firing(self._prometheus)
        self.seen["panels"] = self._panels()
        self.seen["names"] = self._prometheus.metadata()

    def _panels(self) -> dict[str, int | str]:
        """Series of each query, at the latest at the end: a slow Spark closes its first window when all is
        replayed.
        """
        panels: dict[str, int | str] = {}
        asking = {
            name: expression
            for name, expression in queries()
            # One instance tells nobody (see test_exchange.py), and routes tuple by tuple (see below).
            if EXCHANGE not in expression and BATCHES not in expression
        }
        while True:
            last = self.ended.is_set()
            panels |= {
                name: asked(self._prometheus, expression, "loop")
                for name, expression in asking.items()
                if not has_data(panels.get(name, 0))
            }
            if last or all(has_data(panels[name]) for name in asking.keys() - _EMPTY):
                return panels
            self.ended.wait(1.0)

    def _figures(self) -> dict[str, set[float]]:
        return {
            name: {float(self._prometheus.query(f'max(evenflow_{name}{{query="loop"}})')[0]["value"][1])}
            for name in ("workers", "load_ratio")
        }


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    options = LoopOptions(
        shape=shape_of("flash-crowd", seconds=75), policy="prompt-plus", ports=WebPorts.free()
    )
    folder: Path = tmp_path_factory.mktemp("prometheus")
    with Prometheus(folder, options.targets, every=1.0) as prometheus:
        observer = Observer(options.ports, prometheus)
        observer.start()
        try:
            result = run_loop(options, LoopObserver(replayed=observer.replayed))
        finally:
            observer.ended.set()
        observer.join(_PATIENCE)
        assert "error" not in observer.seen, observer.seen["error"]
        return Watched(**observer.seen, result=result)


def test_every_query_of_every_panel_has_data(watched: Watched) -> None:
    empty = {name: said for name, said in watched.panels.items() if not has_data(said)}
    assert set(empty) <= _EMPTY, empty


def test_every_metric_of_the_catalogue_is_exported(watched: Watched) -> None:
    wanted = series()
    elsewhere = {name for name in wanted if name.startswith((EXCHANGE, BATCHES))}
    assert wanted - elsewhere - watched.names <= _QUIET
    assert {name for name in watched.names if name.startswith("evenflow_")} <= wanted
    assert "faust_messages_received_total" in watched.names, "Faust's own sensors, on the same page"


def test_the_live_page_says_what_the_metrics_say(watched: Watched) -> None:
    assert watched.page["workers"] in watched.figures["workers"]
    newest = [stage["load"] for stage in watched.page["stages"]]
    assert any(newest == [pytest.approx(load, abs=1e-6)] for load in watched.figures["load_ratio"])
    assert watched.page["hottest"][0]["share"] > 0.05
    assert watched.page["decisions"]
    assert len(watched.page["loads"]) == watched.page["workers"]
    assert watched.page["verdicts"].keys() == {"keeping up", "balanced", "right"}


def test_results_are_exact_while_prometheus_scrapes(watched: Watched) -> None:
    assert watched.result.report.differences == 0
    assert "EvenflowPartDown" not in watched.firing


def test_every_panel_and_metric_of_micro_batches_has_data_and_status_and_page_say_them(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    # Of all partitioners `partly` has most to say: it also counts what its fallback plans.
    instances = Instances(
        kafka_settings, query_name, tmp_path, name="partly", batch_interval=200, batch_clock="processing"
    )
    asking = {name: expression for name, expression in queries() if BATCHES in expression}
    assert len(asking) > 8
    ports = [settings.partitioner.web_port for settings in instances.settings]
    with Prometheus(tmp_path / "prometheus", {"evenflow-partitioner": ports}, every=1.0) as prometheus:
        try:
            for number in range(2):
                instances.start(number)
            result: dict[str, int | str] = {}

            def all_have_data() -> bool:
                result.update(
                    {name: asked(prometheus, expression, query_name) for name, expression in asking.items()}
                )
                return all(map(has_data, result.values()))

            instances.feed_until(all_have_data)
            assert {name for name in series() if name.startswith(BATCHES)} <= prometheus.metadata()
            assert instances.status(0)["batches"]["clock"] == "processing"

            def page_says_them() -> bool:
                shown = page(ports[0], "/live/state/")[1]["instances"]
                return {one["batches"]["interval_s"] for one in shown} == {0.2}

            instances.feed_until(page_says_them)  # the page reads telemetry only once somebody looks
            logs = instances.running[0].output()
            instances.finish()
        finally:
            instances.stop()
    assert "tuples are routed in micro-batches of 200 ms of processing time" in logs
