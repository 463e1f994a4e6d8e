"""A closed loop, run once: broker, partitioner, Spark with executor processes, controller,
and a replay that changes.

The replay is live: the event time of a tuple is the time at which it is sent. So W and latency mean what they
mean in production.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from evenflow import elasticity, partitioners
from evenflow.elasticity import Bounds
from evenflow.settings import Settings, load_settings
from evenflow.sources.datasets import open_source
from evenflow.sources.source import SourceOptions
from evenflow.telemetry import BatchRecord, parse
from producers.profiles import FixedRate
from producers.replay import replay
from topics import admin
from topics.reader import read_newest
from workbench.assist.activity import read_activity
from workbench.demo.interrupts import Interrupts
from workbench.demo.services import Services
from workbench.elastic.course import Course, course_of
from workbench.elastic.course_figures import CourseVerdict, verdict_of
from workbench.elastic.shapes import STEADY, Shape
from workbench.local.broker import EmbeddedBroker
from workbench.local.clocked_batches import clocked_batches
from workbench.local.ports import CONTROLLER_JOB, WebPorts, live_page
from workbench.provenance import provenance_of_pipeline
from workbench.verify.report import Report
from workbench.verify.shell import verify

WINDOW, SLIDE = "10s", "5s"
INPUT_PARTITIONS = 2
SLO_MS = 20_000.0
_LOOK_SECONDS = 1.0
_WARM = 3
"""How many micro-batches in a row must keep up before the loop begins."""
_LONGEST_WARM_UP = 90.0


@dataclass(frozen=True, kw_only=True)
class LoopOptions:
    """What to run."""

    shape: Shape
    """The stream and how its rate changes."""
    policy: str | None = "prompt-plus"
    """Name of the policy. None: no controller."""
    policy_options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the policy, by name."""
    wiring: Literal["fused", "split"] = "fused"
    """How the Spark stages are joined."""
    workers: int = 2
    """p at the beginning."""
    most_workers: int = 6
    """The most workers that the controller may ask for."""
    partitions_per_slot: int = 2
    """How many workers share a core."""
    reserve: int = 0
    """Executors beyond those that the policy asks for."""
    batch_interval: int = 5_000
    """Batch interval of the Spark stages, in ms."""
    wait: float = 600.0
    """Microseconds that the combiner waits for each tuple, as if computing it were costly."""
    ports: WebPorts = field(default_factory=WebPorts)
    """Ports of the parts' web servers."""
    slo_ms: float = SLO_MS
    """Objective for the latency."""
    partitioner: str = "evenflow"
    """A registered name, or `module:Class`. One that decides on whole micro-batches cuts them by processing
    time, one for each of Spark's."""
    partitioner_options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the partitioner, by name."""

    @property
    def batches(self) -> dict[str, Any]:
        """How the partitioner cuts micro-batches, as settings. Empty for one that routes tuple by tuple."""
        return clocked_batches(self.partitioner, self.batch_interval)

    @property
    def executors(self) -> int:
        """Number of executors that the largest p asks for, a core each, rounded up, and the reserve."""
        return -(-self.most_workers // self.partitions_per_slot) + self.reserve

    @property
    def targets(self) -> dict[str, int]:
        """Port of each job that Prometheus scrapes."""
        jobs = self.ports.targets
        return {job: port for job, port in jobs.items() if self.policy is not None or job != CONTROLLER_JOB}


@dataclass(frozen=True, kw_only=True)
class LoopResult:
    """A course, how good it was, and whether every result was exact."""

    options: LoopOptions
    """Options with which the loop ran."""
    course: Course
    """What happened from the first tuple to the last window."""
    verdict: CourseVerdict
    """Figures of that course."""
    report: Report
    """What verify says of the results."""
    provenance: Mapping[str, Any]
    """What made the figures (`provenance_of_pipeline`), with the policy's options."""


@dataclass(frozen=True, kw_only=True)
class LoopObserver:
    """Whom to tell what while a loop runs."""

    say: Callable[[str], None] = lambda text: None
    """Gets each step in words."""
    replayed: Callable[[int, int | None], None] = lambda sent, total: None
    """Gets the tuples sent, and how many there will be (None if unknown)."""
    page: Callable[[str], None] = lambda address: None
    """Gets the address at which there will be a live page in a moment. Called only if the ports are known."""


def run_loop(options: LoopOptions, onlooker: LoopObserver | None = None) -> LoopResult:
    """Run a loop and compare its results with a direct aggregation.
    Leaves no process or file behind, however it ends.

    Raises ConfigError for impossible options before anything is started, and ServiceError if a part fails.
    """
    onlooker = onlooker or LoopObserver()
    # Made only to be refused early if a name or options are wrong. Controller and partitioner make their own.
    policy_options: dict[str, Any] = {}
    if options.policy is not None:
        policy = elasticity.create(
            options.policy, bounds=Bounds(p_max=options.most_workers), **dict(options.policy_options)
        )
        policy_options = policy.options.model_dump(mode="json")
    partitioners.create(options.partitioner, workers=options.workers, **dict(options.partitioner_options))
    tuples = options.shape.tuples()
    with Interrupts() as interrupts, tempfile.TemporaryDirectory(prefix="evenflow-loop-") as name:
        folder = Path(name)
        settings = loop_settings(options, folder)
        onlooker.say("starting a Kafka broker ...")
        with EmbeddedBroker() as broker:
            settings = settings.model_copy(update={"kafka": broker.settings()})
            admin.ensure_topics(settings.kafka, admin.pipeline_topics(settings).values())
            onlooker.say(f"kafka at {broker.bootstrap_servers}; starting Spark with executors of its own ...")
            with Services(settings, folder, instances=1, interrupts=interrupts) as services:
                began, until = _stream(options, settings, tuples, services, onlooker)
            onlooker.say("recomputing every window with DuckDB ...")
            report = verify(settings)
            interrupts.check()
            course = course_of(settings, began=began, until=until)
            return LoopResult(
                options=options,
                course=course,
                verdict=verdict_of(course, slo_ms=options.slo_ms),
                report=report,
                provenance=provenance_of_pipeline(settings, options.shape.source)
                | {"profile": options.shape.profile, "policy_options": policy_options},
            )


def loop_settings(options: LoopOptions, folder: Path) -> Settings:
    """All settings but the broker's. The user's own evenflow.toml is left out by naming an empty file."""
    empty, ports = folder / "empty.json", options.ports.settings
    empty.write_text("{}")
    return load_settings(
        empty,
        query={
            "name": "loop",
            "key": "key",
            "time": "time",
            "window": WINDOW,
            "slide": SLIDE,
            "out_of_orderness": "200ms",
            "aggregates": {"tuples": "count", "value": "sum(value)"},
            "types": {"value": "int64"},
        },
        input={"partitions": INPUT_PARTITIONS},
        partitioner={
            **ports["partitioner"],
            **options.batches,
            "name": options.partitioner,
            "options": dict(options.partitioner_options),
            "workers": options.workers,
            "routed_partitions": options.most_workers,
            "commit_interval": 500,
            # Spark shares the cores: a burst of its work stopped the partitioner for 15 s, and the broker
            # fenced it.
            "transaction_timeout": 60_000,
        },
        spark={
            **ports["spark"],
            "wiring": options.wiring,
            "master": f"local-cluster[{options.executors},1,1024]",
            "executor_memory": "1g",
            "driver_memory": "1g",
            "buckets": 2,
            "reducers": 1,
            "batch_interval": options.batch_interval,
            "partitions_per_slot": options.partitions_per_slot,
            "reserve_executors": options.reserve,
            "combine_wait": options.wait,
            "max_frames_per_batch": 20_000,
            "checkpoint": str(folder / "checkpoint"),
        },
        control={
            **ports["control"],
            "policy": options.policy or "fixed",
            "options": dict(options.policy_options),
            "r_max": 1,
        },
    )


def _stream(
    options: LoopOptions, settings: Settings, tuples: int, services: Services, onlooker: LoopObserver
) -> tuple[float, float]:
    """Replay and wait for the last result. Returns when the course began and ended, in seconds since 1970."""
    shape = options.shape
    services.wait(lambda: any(part.is_spark for part in read_activity(settings).parts), lambda: None)
    onlooker.say(f"warming up at {shape.first_rate:,.0f} tuples/s ...")
    _warm_up(settings, shape, services)
    if options.policy is not None:
        services.start_control()
    port = options.ports.partitioner if options.policy is None else options.ports.control
    if port:
        onlooker.page(live_page(port))
    onlooker.say(f"{shape.profile} for {shape.seconds:g} s ...")

    def replayed(sent: int, expected: int | None) -> None:
        onlooker.replayed(sent, expected)
        services.check()

    began = time.time()
    source = open_source(shape.source, SourceOptions.for_settings(settings))
    replay(settings, source, limit=tuples, live=True, profile=shape.rates(), progress=replayed)
    until = time.time()
    services.to_the_end(settings, lambda states: None)
    return began, until


def _warm_up(settings: Settings, shape: Shape, services: Services) -> None:
    """Replay at the first rate until micro-batches keep up.
    The first micro-batches of an application are its slowest.
    """
    # Lists, so that `warm` can write to them.
    begun, last_look, loads = time.monotonic(), [0.0], list[float]()

    def warm() -> bool:
        now = time.monotonic()
        if now - last_look[0] >= _LOOK_SECONDS:
            last_look[0] = now
            services.check()
            loads[:] = _newest_loads(settings)
        return now - begun > _LONGEST_WARM_UP or (len(loads) == _WARM and max(loads) <= 1.0)

    source = open_source(STEADY, SourceOptions.for_settings(settings))
    rate = FixedRate(shape.first_rate)
    replay(settings, source, live=True, profile=rate, producer_id="warm-up", end=False, stop=warm)


def _newest_loads(settings: Settings) -> list[float]:
    """W of the last finished micro-batches, at most `_WARM` of them."""
    records = [
        parse(message.value()) for message in read_newest(settings.kafka, settings.topic("telemetry"), 100)
    ]
    loads = [record.load for record in records if isinstance(record, BatchRecord) and record.load is not None]
    return loads[-_WARM:]
