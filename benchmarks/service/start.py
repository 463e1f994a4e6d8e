"""How long services take to begin and to end. Each service is a process, and times count from its start.

* partition: until the first committed frame of the partitioner can be read.
* aggregate: until the first result row of the Spark application can be read. Frames wait for the application.
* end: from the commit of the last micro-batch to the end of the process (`--until-ended`).
* restart: SIGKILL in mid-stream and a start right after. The time is until the first row of a window that was
  not emitted before. Where one micro-batch reads all frames, no window may be left: then until the first row.

The client that reads all this sees committed records only. Each repetition is a query of its own on one
broker. The query has 60 s windows by 1 s over 1,000 keys, so few that rows are no part of the figures.

The figures that begin with `wide` are of 1,000 workers and 100 input partitions, and nothing is set: rhythm
and bounds are those that evenflow chooses.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from confluent_kafka import TopicPartition

from benchmarks.measuring.spread import spread
from benchmarks.measuring.stream import SEED as SEED
from benchmarks.measuring.stream import settings_for
from evenflow.errors import ServiceError
from evenflow.settings import Settings, save_settings
from evenflow.settings.views import TopicRole
from evenflow.sources.generators import generate
from evenflow.sources.source import SourceOptions
from partitioner_service.plane.data_plane import DataPlane
from producers.replay import replay
from spark_consumers.checkpoints.runs import newest_local_run
from spark_consumers.jars.archive import archive_path
from topics import clients
from topics.admin import describe, ensure_topics, pipeline_topics
from workbench.local.broker import EmbeddedBroker
from workbench.local.processes import ChildProcess

ID = "service-start"
WHAT = (
    "seconds until the first committed frame, the first result (goal with 1,000 workers and 100 input"
    " partitions: 20 s), the end, and the next window after SIGKILL"
)

GOALS = {"aggregate": 10.0, "restart": 15.0, "end": 2.0, "wide_aggregate": 20.0}
"""Name of a figure -> the most seconds that its median shall be."""
_PATIENCE = 120.0
_RATE = 1_000
_KEYS = 1_000
_SETTINGS: dict[str, dict[str, Any]] = {
    # One input partition. With several, a window closes only once blocks of each have come, however fast a
    # start is.
    "": {
        "input": {"partitions": 1},
        "partitioner": {"block_tuples": 5_000, "workers": 8},
        "spark": {"max_frames_per_batch": 8},
    },
    "wide_": {"input": {"partitions": 100}, "partitioner": {"workers": 1_000}, "spark": {}},
}
"""Prefix of the figures -> settings."""


def run(*, smoke: bool) -> dict[str, object]:
    """Seconds, as min / median / max over the repetitions."""
    repetitions = 1 if smoke else 3
    seconds_by_phase: dict[str, list[float]] = {}
    with EmbeddedBroker() as broker, tempfile.TemporaryDirectory(prefix="evenflow-bench-") as name:
        for number, prefix in product(range(repetitions), list(_SETTINGS)[:1] if smoke else _SETTINGS):
            folder = Path(name) / f"{prefix}{number}"
            start = _Start.prepare(broker, folder, _SETTINGS[prefix], tuples=20_000 if smoke else 100_000)
            for phase, seconds in start.figures().items():
                seconds_by_phase.setdefault(prefix + phase, []).append(seconds)
    figures = {phase: spread(seconds) for phase, seconds in seconds_by_phase.items()}
    return {
        "repetitions": repetitions,
        "archive_of_classes": archive_path().exists(),
        **figures,
        "goals": GOALS,
        "met": {name: figures[name]["median"] <= goal for name, goal in GOALS.items() if name in figures},
    }


@dataclass(frozen=True, kw_only=True)
class _Start:
    """One query whose input waits in its topic."""

    settings: Settings
    """Settings of the query."""
    folder: Path
    """Folder for the query's processes."""

    @classmethod
    def prepare(
        cls, broker: EmbeddedBroker, folder: Path, parts: Mapping[str, dict[str, Any]], *, tuples: int
    ) -> _Start:
        name = f"bench-start-{folder.name.replace('_', '-')}"
        settings = settings_for(
            broker.settings(),
            name,
            input={"topic": f"{name}.input", **parts["input"]},
            partitioner=parts["partitioner"],
            spark={"checkpoint": str(folder / "checkpoint"), **parts["spark"]},
        )
        ensure_topics(settings.kafka, pipeline_topics(settings).values())
        words = f"keys={_KEYS},tuples={tuples},rate={_RATE},seed={SEED},values=1000000"
        replay(settings, generate("zipf", words, SourceOptions(values=("amount",))))
        folder.mkdir()
        save_settings(settings, folder / "settings.json")
        return cls(settings=settings, folder=folder)

    def figures(self) -> dict[str, float]:
        """Seconds by name, as the module describes them. All processes have ended afterwards."""
        with self._service("partition") as service, _watched(self.settings, "routed") as routed:
            partition = self._seconds(lambda: bool(routed.records()), service)
        # Route what is left, so that frames wait for the application.
        DataPlane(self.settings, until_ended=True).run()
        routed_topic = self.settings.topic("routed")
        routed_records = describe(self.settings.kafka, [routed_topic])[routed_topic].records
        once = routed_records <= self.settings.frames_per_batch
        with _watched(self.settings, "results") as results:
            with self._service("aggregate") as first:
                aggregate = self._seconds(lambda: results.newest_window() > 0, first)
                first.kill()
            # What the killed application has emitted, so that the restart is measured up to a row that is
            # new.
            reached = results.drained()
            with self._service("aggregate", "--until-ended") as again:
                restart = self._seconds(
                    lambda: bool(results.records()) if once else results.newest_window() > reached, again
                )
                self._seconds(lambda: not again.alive, again)
                end = time.time() - self._last_commit()
        return {"partition": partition, "aggregate": aggregate, "restart": restart, "end": end}

    @contextmanager
    def _service(self, *words: str) -> Iterator[ChildProcess]:
        command = [sys.executable, "-m", "cli.main", "-c", str(self.folder / "settings.json"), *words]
        log = self.folder / f"{words[0]}.log"
        with ChildProcess(command, log=log, name=words[0], cwd=self.folder) as child:
            yield child

    def _seconds(self, done: Callable[[], bool], service: ChildProcess) -> float:
        """Seconds until `done()`. ServiceError if the service fails before, or if that takes more than
        `_PATIENCE`.
        """
        began = time.monotonic()
        while not done():
            if service.returncode:
                raise ServiceError(f"{service.name} ended with {service.returncode}:\n{service.tail()}")
            if time.monotonic() - began > _PATIENCE:
                raise ServiceError(f"waited {_PATIENCE:g} s for {service.name}:\n{service.tail()}")
            time.sleep(0.02)
        return time.monotonic() - began

    def _last_commit(self) -> float:
        """The moment at which Spark committed its last micro-batch (s since 1970, by the clock of the file
        system).
        """
        stage = self.folder / "checkpoint" / self.settings.query.name / "fused"
        commits = newest_local_run(stage) / "commits"
        return max(file.stat().st_mtime for file in commits.glob("[0-9]*"))


class _Watch:
    """Follows the committed records of a topic from its beginning."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer
        self._newest = 0

    def records(self, patience: float = 0.05) -> list[Any]:
        """Records that have come since the last call."""
        return [m for m in self._consumer.consume(10_000, timeout=patience) if m.error() is None]

    def newest_window(self) -> int:
        """Largest end of a window (event time, ms) among all rows so far. 0 before the first row."""
        self._note(self.records())
        return self._newest

    def drained(self) -> int:
        """`newest_window`, once no row has come for a second."""
        while records := self.records(patience=1.0):
            self._note(records)
        return self._newest

    def _note(self, rows: list[Any]) -> None:
        self._newest = max([self._newest, *(json.loads(row.value())["window_end"] for row in rows)])


@contextmanager
def _watched(settings: Settings, role: TopicRole) -> Iterator[_Watch]:
    topic = settings.topic(role)
    partitions = pipeline_topics(settings)[role].partitions
    consumer = clients.consumer(settings.kafka, group="evenflow-bench", fetch_wait_max_ms=50)
    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        yield _Watch(consumer)
    finally:
        consumer.close()
