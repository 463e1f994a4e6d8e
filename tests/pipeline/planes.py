"""Data planes for the tests of the partitioner service: run here, in a thread or as a process, and waited
for.
"""

from __future__ import annotations

import json
import random
import sys
import threading
from pathlib import Path
from typing import Any

from evenflow.progress import PartitionState
from evenflow.settings import KafkaSettings, Settings
from evenflow.settings.sections.kafka import KafkaExtras
from evenflow.telemetry import PartitionerRecord, parse
from partitioner_service.begin.prepare import prepare
from partitioner_service.plane.data_plane import DataPlane
from tests.patience import wait_for
from tests.pipeline.routed import create_topics, make_settings, records, write
from workbench.local.processes import ChildProcess

_SERVE = """
import json, logging, sys
from evenflow.settings import load_settings
from partitioner_service.app import serve
logging.basicConfig(level=logging.INFO)
serve(load_settings(**json.loads(sys.argv[1])))
"""


def some_rows(
    n: int, *, partitions: int = 4, seed: int = 1, keys: int = 50
) -> list[tuple[int, dict[str, Any]]]:
    """n rows in event time order over all partitions, one a millisecond, skewed keys."""
    rng = random.Random(seed)
    return [
        (rng.randrange(partitions), {"k": f"key{int(rng.paretovariate(0.6)) % keys}", "t": i, "v": i % 7})
        for i in range(n)
    ]


def soon_missed(kafka: KafkaSettings) -> KafkaSettings:
    """Settings with which a killed member is missed after 3 s. By default its partitions rest for 10 s."""
    return missed_after(kafka, 3_000)


def missed_after(kafka: KafkaSettings, ms: int) -> KafkaSettings:
    """Settings with which the group forgets a killed member after so long."""
    extras = KafkaExtras(librdkafka={"session.timeout.ms": ms})
    return kafka.model_copy(update={"extras": extras})


def run(settings: Settings) -> DataPlane:
    """One instance until its input has ended."""
    plane = DataPlane(prepare(settings), until_ended=True)
    plane.run()
    return plane


def wait_until(condition: Any, *, timeout: float = 60.0) -> None:
    """Poll for something another process or thread is about to do."""
    wait_for(condition, lambda: "it did not happen in time", timeout=timeout)


def start_thread(plane: DataPlane) -> tuple[threading.Thread, list[BaseException]]:
    """The plane in a thread; what it raises is kept."""
    errors: list[BaseException] = []

    def body() -> None:
        try:
            plane.run()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    return thread, errors


def telemetry(settings: Settings) -> list[PartitionerRecord]:
    """What instances have reported, in order."""
    said = [parse(message.value()) for message in records(settings, "telemetry")]
    return [record for record in said if isinstance(record, PartitionerRecord)]


def total(states: dict[int, PartitionState]) -> tuple[int, int, int]:
    """(read, routed, rejected) of all input partitions."""
    names = ("read", "routed", "rejected")
    # mypy does not count the elements of a generator.
    return tuple(sum(getattr(s, name) for s in states.values()) for name in names)  # type: ignore[return-value]


def parts_of(settings: Settings) -> str:
    """The settings as JSON, for `load_settings` in a process of its own."""
    return json.dumps(
        settings.model_dump(mode="json", exclude_unset=True)
        | {
            "query": {
                **settings.query.model_dump(mode="json"),
                "aggregates": {n: str(a) for n, a in settings.query.aggregates.items()},
            }
        }
    )


def start_instance(settings: Settings, log: Path) -> ChildProcess:
    """The whole service, with these settings, as a process that logs what it does."""
    name = f"partitioner {settings.partitioner.instance}"
    return ChildProcess([sys.executable, "-c", _SERVE, parts_of(settings)], log=log, name=name)


def began(kafka_settings: Any, query_name: str, **parts: Any) -> Settings:
    """A query that has read and ended a small input."""
    settings = make_settings(kafka_settings, query_name, **parts)
    create_topics(settings)
    write(settings, some_rows(200, partitions=settings.input_partitions))
    run(settings)
    return settings
