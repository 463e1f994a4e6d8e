"""The order of events of a demo, and its figures."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from evenflow import partitioners
from evenflow.settings import Settings
from evenflow.sources.datasets import open_source
from producers.replay import replay
from spark_consumers.sinks import sink_of
from topics import admin
from workbench.demo import figures
from workbench.demo.interrupts import Interrupts
from workbench.demo.options import DemoOptions, Opener, prepare
from workbench.demo.screen import Bars, Screen
from workbench.demo.services import Services
from workbench.demo.windows import busiest
from workbench.local.broker import EmbeddedBroker
from workbench.provenance import provenance_of_pipeline
from workbench.verify.views import Reports, verify_all

BUSIEST = 8


@dataclass(frozen=True, kw_only=True)
class DemoResult:
    """The figures of one demo, as `--json` prints them."""

    tuples: int
    """Tuples that the partitioner read."""
    routed: int
    """Tuples that it sent to a worker."""
    rejected: int
    """Tuples that it wrote to the rejected topic."""
    windows: int
    """Windows of the query (not of its views) that were compared."""
    rows: int
    """Result rows in those windows."""
    differences: int
    """Differences of the query, its views and its summaries together."""
    window_imbalance: float
    """Mean over windows of (max load - mean load) / tuples."""
    ksr: float
    """Mean over consecutive windows of the replication factor."""
    seconds: float
    """Wall time from the first tuple to the last window, the start of Spark included."""
    tuples_per_second: float
    """`tuples` divided by `seconds`."""
    latency_p50_ms: float | None
    """Always None, because the event times of a demo are not live."""
    latency_p99_ms: float | None
    """Always None, for the same reason."""
    view_rows: Mapping[str, int] = field(default_factory=dict)
    """Result rows of each view and summary of the query, by its name."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """What made the figures (`provenance_of_pipeline`)."""

    def json(self) -> str:
        """One line of JSON."""
        return json.dumps(asdict(self))


def run(options: DemoOptions, console: Console, *, opened: Opener = open_source) -> DemoResult:
    """Run the whole pipeline on this machine and compare its results with a direct aggregation.

    Leaves no process, port or file behind, however it ends. opened: opens the file of the options. Raises
    ConfigError for impossible options before anything is started, and ServiceError if a part fails.
    """
    screen = Screen(console)
    # Made only to be refused early if the options are wrong. Each instance makes its own.
    partitioners.create(options.partitioner, workers=options.workers, **options.partitioner_options)
    with Interrupts() as interrupts, tempfile.TemporaryDirectory(prefix="evenflow-demo-") as name:
        folder = Path(name)
        settings, source = prepare(options, folder, opened)
        screen.say("starting a Kafka broker ...")
        with EmbeddedBroker() as broker:
            settings = settings.model_copy(update={"kafka": broker.settings()})
            admin.ensure_topics(settings.kafka, admin.pipeline_topics(settings).values())
            screen.say(
                f"kafka at {broker.bootstrap_servers}; {source.name} by {settings.query.key_name} through "
                f"{options.partitioner} over {options.workers} workers; starting Spark ..."
            )
            with Services(settings, folder, instances=options.instances, interrupts=interrupts) as services:
                seconds = _stream(options, settings, source, services, screen)
            screen.say("recomputing every window with DuckDB ...")
            reports = verify_all(settings)
            interrupts.check()
            result = _show(settings, reports, seconds, screen)
            return replace(result, provenance=provenance_of_pipeline(settings, source.name))


def _stream(
    options: DemoOptions, settings: Settings, source: Any, services: Services, screen: Screen
) -> float:
    """Replay, partition, combine, reduce. Returns the seconds from the first tuple to the last window."""
    with screen.progress() as bars:
        began = time.monotonic()
        total = source.rows if options.limit is None else min(source.rows or options.limit, options.limit)

        def replayed(sent: int, expected: int | None) -> None:
            bars.show("replayed", sent, expected)
            services.check()

        summary = replay(settings, source, limit=options.limit, progress=replayed)
        bars.show("replayed", summary.tuples, total)
        services.to_the_end(settings, lambda states: _look(settings, states, summary.tuples, bars))
        return time.monotonic() - began


def _look(settings: Settings, states: dict[int, Any], total: int, bars: Bars) -> None:
    bars.show("partitioned", sum(state.read for state in states.values()), total)
    if roles := sink_of(settings).topics:
        results = admin.describe(settings.kafka, [settings.topic(role) for role in roles])
        bars.show("result rows", sum(topic.records for topic in results.values()), None)


def _show(settings: Settings, reports: Reports, seconds: float, screen: Screen) -> DemoResult:
    report = reports.by_query[settings.query.name]
    tuples = figures.read_tuples(settings)
    routing = figures.as_routed(settings, tuples)
    screen.windows(settings, busiest(settings, BUSIEST))
    screen.loads(routing)
    screen.comparison([routing, *figures.as_others(settings, tuples)])
    rate = report.read / seconds if seconds else 0.0
    screen.say(
        f"{report.read:,} tuples in {seconds:.1f} s, Spark's start included ({rate:,.0f} tuples/s); "
        f"every one of {report.windows:,} windows ({report.rows:,} rows) compared with a direct aggregation:"
    )
    screen.say(reports.text())
    return DemoResult(
        tuples=report.read,
        routed=report.routed,
        rejected=report.rejected,
        windows=report.windows,
        rows=report.rows,
        differences=reports.differences,
        window_imbalance=routing.window_imbalance,
        ksr=routing.ksr,
        seconds=round(seconds, 3),
        tuples_per_second=round(rate, 1),
        latency_p50_ms=None,
        latency_p99_ms=None,
        view_rows={
            name: reports.by_query[f"{settings.query.name}.{name}"].rows
            for name in (*settings.query.views, *settings.query.summaries)
        },
    )
