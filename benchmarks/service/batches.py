"""How late the frames of Prompt's batches are, in percent of the interval, with and without early release.

One partitioner instance reads a backlog at full speed and cuts batches of processing time (001's heartbeat).
That is the hardest case: no core is idle when a batch is planned. Late is the time from the end of a batch's
interval until its last frame was handed to Kafka's client. Telemetry says it of each batch (`late`,
`took_ms`, `release_ms`). The first two batches do not count, because nothing is known of earlier ones yet,
and kernels are loaded.

Each setting has a query of its own over the same input: uniform keys, so that nearly every tuple is of
another key where there are a million. Settings are measured in turns.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from benchmarks.measuring.spread import in_turns, spread
from benchmarks.measuring.stream import SEED as SEED
from benchmarks.measuring.stream import settings_for
from evenflow.settings import KafkaSettings, Settings
from evenflow.sources.generators import generate
from evenflow.sources.source import SourceOptions
from evenflow.telemetry import BatchState
from partitioner_service.begin.prepare import prepare
from partitioner_service.plane.data_plane import DataPlane
from producers.replay import replay
from topics.admin import delete_topics, ensure_topics, pipeline_topics
from workbench.local.broker import EmbeddedBroker

ID = "service-batches"
WHAT = (
    "time from the end of a batch's interval to its last frame, in % of the interval: exact and quasi, 1e4 to"
    " 1e6 keys"
)

_SKIPPED = 2
_LOOK_SECONDS = 0.02


def run(*, smoke: bool) -> dict[str, Any]:
    """For each number of keys and each way: late and took in percent, sizes of the batches."""
    keys, interval, batches, repetitions, tuples = (
        ((1_000,), 500, 4, 1, 600_000) if smoke else ((10_000, 100_000, 1_000_000), 2_000, 8, 3, 4_000_000)
    )
    report: dict[str, Any] = {"interval_ms": interval, "batches": batches * repetitions}
    with EmbeddedBroker() as broker:
        for distinct in keys:
            first = _settings(broker.settings(), distinct, "input", {})
            ensure_topics(first.kafka, pipeline_topics(first).values())
            words = f"z=0,keys={distinct},tuples={tuples},rate=50000,seed={SEED},values=1000000000000"
            replay(first, generate("zipf", words, SourceOptions(values=("amount",))))
            ways = {
                f"{order}, {release}": _BatchWay(
                    broker.settings(), distinct, order, release, interval, batches
                )
                for order in ("exact", "quasi")
                for release in ("off", "early")
            }
            measured = in_turns(ways, repetitions, tell=not smoke)
            report[f"{distinct} keys"] = {name: _figures(turns, interval) for name, turns in measured.items()}
            delete_topics(first.kafka, [first.topic("input")])
    return report


def _settings(kafka: KafkaSettings, keys: int, name: str, partitioner: dict[str, Any]) -> Settings:
    return settings_for(
        kafka,
        f"bench-batches-{keys}-{name}",
        input={"topic": f"bench-batches-{keys}", "partitions": 4},
        partitioner={"name": "prompt", "workers": 8, "max_skew": "1h", **partitioner},
    )


class _BatchWay:
    """One setting. Each call measures a run of so many batches, as a query of its own."""

    def __init__(
        self, kafka: KafkaSettings, keys: int, order: str, release: str, interval: int, batches: int
    ) -> None:
        self._kafka, self._keys, self._batches = kafka, keys, batches
        self._partitioner = {
            "options": {"order": order},
            "batch_interval": interval,
            "batch_clock": "processing",
            "batch_release": release,
            "batch_bytes": 1_000_000_000,
        }
        self._name = f"{order}-{release}"
        self._turn = 0

    def __call__(self) -> list[BatchState]:
        """What telemetry says of the batches."""
        self._turn += 1
        settings = _settings(self._kafka, self._keys, f"{self._name}-{self._turn}", self._partitioner)
        topics = [topic for role, topic in pipeline_topics(settings).items() if role != "input"]
        ensure_topics(settings.kafka, topics)
        plane = DataPlane(prepare(settings), until_ended=True)
        states: dict[int, BatchState] = {}
        thread = threading.Thread(target=plane.run, name="data plane")
        thread.start()
        try:
            while thread.is_alive() and len(states) < self._batches + _SKIPPED:
                # The newest record of telemetry. A batch between two looks is missed, so they are closer than
                # batches.
                report = plane.newest_telemetry
                if report is not None and report.batches is not None and report.batches.last is not None:
                    states[report.batches.count] = report.batches.last
                time.sleep(_LOOK_SECONDS)
        finally:
            plane.stop()
            thread.join()
        delete_topics(settings.kafka, [topic.name for topic in topics])
        return [
            state for number, state in sorted(states.items()) if number > _SKIPPED and state.late is not None
        ]


def _figures(turns: list[list[BatchState]], interval: int) -> dict[str, Any]:
    states = [state for turn in turns for state in turn]
    return {
        "late_percent": spread([100 * (state.late or 0.0) for state in states]),
        "took_percent": spread([100 * (state.took_ms or 0.0) / interval for state in states]),
        "tuples": spread([state.tuples for state in states]),
        "keys": spread([state.keys for state in states]),
    }
