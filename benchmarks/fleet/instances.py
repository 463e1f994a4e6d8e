"""Several partitioner instances on one stream, slide by slide: who gets which tuples while instances come and
go.

The stream is live: a slide of event time takes at least as long on the clock. It is written in portions, and
each portion is waited for. So instances hear each other as they would on a topic that is not behind, however
busy this machine is.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from confluent_kafka import Consumer, TopicPartition

from evenflow.errors import ServiceError
from evenflow.metrics import imbalance
from evenflow.numeric.arrays import Int64s
from evenflow.settings import KafkaSettings, Settings, load_settings, save_settings
from evenflow.settings.sections.kafka import KafkaExtras
from evenflow.wire import decode_frame
from evenflow.wire.markers import EndOfStream
from topics import clients
from topics.admin import ensure_topics, pipeline_topics
from workbench.local.ports import free_ports
from workbench.local.processes import ChildProcess

WORKERS, INPUTS, PANES = 16, 12, 6
SLIDE_MS, _PORTIONS = 2_000, 20
_PATIENCE, _LONGEST = 120.0, 300.0
_MISSED_MS = 3_000
"""After so long a killed instance is missed. By default its partitions rest for ten seconds."""


class Fleet:
    """Instances 0 to `instances` - 1 of one partitioner, each a process or not there.

    loads: tuples by slide and worker. counts: tuples by (slide, key). Both are of the routed topic.
    """

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.settings = settings
        self.partitioner = settings.partitioner.name
        self.loads: dict[int, Int64s] = {}
        self.counts: Counter[tuple[int, bytes]] = Counter()
        self.rounds: list[int | None] = []
        self._folder = folder
        self._ports = free_ports(settings.partitioner.instances)
        self._alive: dict[int, ChildProcess] = {}
        self._written: Counter[int] = Counter()
        self._expected: Counter[tuple[int, bytes]] = Counter()
        self._routed = self._slides = 0
        ensure_topics(settings.kafka, pipeline_topics(settings).values())
        self._producer = clients.producer(settings.kafka)
        self._reader = _reader_of(settings)

    # ---- the instances

    def run(self, *numbers: int) -> None:
        """Let exactly these instances run. The others are ended by SIGTERM."""
        for number in sorted(self._alive.keys() - set(numbers)):
            self._alive.pop(number).terminate(30)
        for number in numbers:
            if number not in self._alive:
                self._alive[number] = self._start(number)
        self._wait(self._share_the_input, "instances that share the input")

    def kill(self, number: int) -> None:
        """SIGKILL. Its partitions go to the others once it is missed."""
        self._alive.pop(number).kill()

    def close(self) -> None:
        """End every instance, and the clients."""
        for child in self._alive.values():
            child.terminate(20)
        self._reader.close()

    def _start(self, number: int) -> ChildProcess:
        parts = {"instance": str(number), "web_port": self._ports[number]}
        settings = self.settings.model_copy(
            update={"partitioner": self.settings.partitioner.model_copy(update=parts)}
        )
        return self._process(f"instance-{number}", settings, "partition")

    def _process(self, name: str, settings: Settings, *words: str) -> ChildProcess:
        file = self._folder / f"{name}.json"
        save_settings(settings, file)
        command = [sys.executable, "-m", "cli.main", "-c", str(file), *words]
        return ChildProcess(command, log=self._folder / f"{name}.log", name=name, cwd=self._folder)

    def _share_the_input(self) -> bool:
        owned = [len(self._page(number).get("assignment") or ()) for number in self._alive]
        return sum(owned) == INPUTS and min(owned) > 0

    def _page(self, number: int) -> dict[str, Any]:
        """The status page. Empty if there is none yet."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._ports[number]}/status/", timeout=5) as page:
                return dict(json.loads(page.read()))
        except OSError:
            # An instance that starts has no page yet. One that has ended never will.
            if not self._alive[number].alive:
                raise ServiceError(f"instance {number} has ended:\n{self._alive[number].tail()}") from None
            return {}

    # ---- the stream

    def slide(self, keys: Int64s) -> float:
        """Write a slide of tuples with these keys, and wait until they are routed. Returns the slide's
        imbalance.
        """
        slide, portion_ms = self._slides, SLIDE_MS // _PORTIONS
        self._slides += 1
        for number, portion in enumerate(np.array_split(keys, _PORTIONS)):
            until = time.monotonic() + portion_ms / 1000
            begin = slide * SLIDE_MS + number * portion_ms
            for row, key in enumerate(portion.tolist()):
                time_ms = begin + row * portion_ms // len(portion)
                self._produce(row % INPUTS, {"k": f"key{key}", "t": time_ms, "v": 1})
                self._expected[slide, f"key{key}".encode()] += 1
            clients.flush(self._producer, self.settings.kafka)
            # Each portion is waited for, so that an event between two slides meets no tuples on their way.
            self._wait(self._all_routed, f"the tuples of slide {slide}")
            time.sleep(max(0.0, until - time.monotonic()))
        self.rounds.append(self._newest_round())
        return imbalance(self.loads[slide])

    def end(self) -> None:
        """End the stream. ServiceError unless every tuple is in the routed topic once."""
        for partition in range(INPUTS):
            headers: Any = EndOfStream(
                producer="bench", tuples=self._written[partition], producers=1
            ).headers()
            self._producer.produce(self.settings.topic("input"), partition=partition, headers=headers)
        clients.flush(self._producer, self.settings.kafka)
        if self.counts != self._expected:
            raise ServiceError("the routed topic does not have each tuple once")

    def verify(self) -> None:
        """Aggregate the whole stream with Spark. ServiceError unless results are those of a direct
        aggregation.
        """
        for words in (["aggregate", "--until-ended"], ["verify"]):
            child = self._process(words[0], self.settings, *words)
            if child.wait(_LONGEST):
                raise ServiceError(f"evenflow {words[0]} failed:\n{child.tail()}")

    def window_imbalance(self) -> list[float]:
        """The imbalance of the window that ends with each slide."""
        loads = np.array([self.loads[slide] for slide in range(self._slides)])
        return [
            imbalance(loads[max(0, slide + 1 - PANES) : slide + 1].sum(axis=0))
            for slide in range(self._slides)
        ]

    def _produce(self, partition: int, row: dict[str, Any]) -> None:
        self._producer.produce(self.settings.topic("input"), json.dumps(row).encode(), partition=partition)
        self._producer.poll(0)
        self._written[partition] += 1

    def _all_routed(self) -> bool:
        for message in self._reader.consume(1_000, 0.05):
            value, routed_at = message.value(), message.partition()
            if message.error() is not None or value is None or routed_at is None:
                continue
            frame = decode_frame(value, fingerprint=self.settings.fingerprint)
            self._routed += frame.batch.num_rows
            panes, keys = (frame.batch.column(number).to_pylist() for number in (0, 1))
            workers = frame.row_workers(routed_at).tolist()
            for (pane, worker), number in Counter(zip(panes, workers, strict=True)).items():
                loads = self.loads.setdefault(pane, np.zeros(WORKERS, np.int64))
                loads[worker] += number
            self.counts.update(zip(panes, keys, strict=True))
        return self._routed >= self._written.total()

    # ---- the exchange

    def _newest_round(self) -> int | None:
        exchanges = [self._page(number).get("exchange") or {} for number in self._alive]
        return max((each["round"] for each in exchanges if each.get("round") is not None), default=None)

    def _wait(self, done: Callable[[], bool], event: str) -> None:
        until = time.monotonic() + _PATIENCE
        while not done():
            if time.monotonic() > until:
                raise ServiceError(f"waited {_PATIENCE:g} s for {event}")
            for number, child in self._alive.items():
                if not child.alive:
                    raise ServiceError(f"instance {number} has ended:\n{child.tail()}")
            time.sleep(0.02)


def _reader_of(settings: Settings) -> Consumer:
    topic = settings.topic("routed")
    # As Spark does, count only what was committed.
    reader = clients.consumer(settings.kafka, group="bench", isolation_level="read_committed")
    reader.assign([TopicPartition(topic, worker, 0) for worker in range(WORKERS)])
    return reader


@contextmanager
def fleet(kafka: KafkaSettings, query: str, partitioner: str, *, sources: int) -> Iterator[Fleet]:
    """Up to `sources` instances of this partitioner, none of which runs yet."""
    soon = KafkaExtras(librdkafka={"session.timeout.ms": _MISSED_MS})
    with tempfile.TemporaryDirectory(prefix="evenflow-bench-") as place:
        settings = load_settings(
            query={
                "name": query,
                "key": "k",
                "time": "t",
                "window": f"{PANES * SLIDE_MS}ms",
                "slide": f"{SLIDE_MS}ms",
                "types": {"v": "int64"},
                "aggregates": {"n": "count", "s": "sum(v)"},
            },
            kafka=kafka.model_copy(update={"extras": soon}).model_dump(exclude_unset=True),
            input={"partitions": INPUTS},
            partitioner={
                "name": partitioner,
                "workers": WORKERS,
                "instances": sources,
                "commit_interval": 100,
            },
            spark={"checkpoint": f"{place}/checkpoint"},
        )
        instances = Fleet(settings, Path(place))
        try:
            yield instances
        finally:
            instances.close()
