"""The processes of a run: partitioner instances, the Spark driver, and who writes the input."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

from confluent_kafka import KafkaError

from evenflow.errors import EvenflowError, ServiceError
from evenflow.plans import Plan
from evenflow.settings import Settings
from evenflow.twostep import Tally
from evenflow.wire.markers import EndOfStream
from partitioner_service.begin.prepare import prepare
from partitioner_service.kafka.watchdog import Watchdog
from partitioner_service.plane.data_plane import DataPlane
from spark_consumers.application import _stages, _topics, _watched
from spark_consumers.checkpoints.notes import refuse_other_wiring
from spark_consumers.stage import RunningStage
from tests.faults.model import network
from tests.faults.model.broker import Broker
from tests.faults.model.log import Committed, Entry
from tests.faults.model.spark import Spark, Storage
from tests.faults.processes.world import World
from tests.faults.schedules.schedule import BASE, FUTURE, Fault, Schedule, Written
from topics.query.input_topic import admitted
from topics.watch import TopicWatch

_CODES = (KafkaError._BAD_COMPRESSION, KafkaError._BAD_MSG, KafkaError.MSG_SIZE_TOO_LARGE)
"""Why a batch cannot be fetched. librdkafka goes on behind one whose checksum is wrong, and stays before
any other.
"""
_CLOSE = 6
"""How many records of the others are about as old as a new one."""


class NoWatchdog(Watchdog):
    """Calls of the model always return."""

    def start(self) -> None:
        """Nothing to watch."""


def partitioner(
    settings: Settings, world: World, keep: Callable[[DataPlane], object]
) -> Callable[[], object]:
    """What a partitioner instance does from its start to its end. keep: is given the data plane."""

    def body() -> None:
        plane = DataPlane(prepare(settings), until_ended=True, clock=world.monotonic, watchdog=NoWatchdog())
        keep(plane)
        plane.run()

    return body


class Added:
    """What an accumulator of tallies holds in the driver."""

    def __init__(self) -> None:
        self.value = Tally()

    def add(self, tally: Tally) -> None:
        """What a task has done."""
        self.value += tally


def driver(
    settings: Settings, world: World, storage: Storage, name: str, keep: Callable[[Spark], object]
) -> Callable[[], object]:
    """What the Spark application does from its start to its end. keep: is given the session."""

    def body() -> None:
        chosen = _stages(settings, ("combine", "reduce"))
        known = admitted(settings)
        topics = _topics(known, chosen)
        spark: Any = Spark(network.broker(), storage, name)
        keep(spark)
        refuse_other_wiring(spark, known, chosen)
        tally: Any = Added()
        stages = [RunningStage(spark, known, stage, topics, tally=tally) for stage in chosen]
        pause = known.spark.batch_interval / 1000
        watch = TopicWatch(known.kafka, _watched([topics])) if storage.watched else None
        left = list(stages)
        while True:
            if watch is not None:
                watch.check()
            worked = {stage: _triggered(stage) for stage in stages}
            for stage in stages:
                stage.look()
            while left and not worked[left[0]] and left[0].over():
                left.pop(0)
            if not left:
                return
            world.sleep(pause if any(worked.values()) else 2 * pause)

    return body


def _triggered(stage: RunningStage) -> bool:
    """Run a micro-batch. A driver that was fenced says so, whatever else went wrong."""
    query: Any = stage.query
    try:
        return query.trigger()
    except EvenflowError:
        with suppress(ServiceError):
            stage._epoch.check()
        raise


class Writer:
    """Writes the input, and notes what it wrote.

    begins: where each partition began when the query did. arrived: when (s) a record came, by partition and
    offset.
    """

    def __init__(self, schedule: Schedule, world: World, broker: Broker) -> None:
        self._world, self._broker = world, broker
        self._late = schedule.shape.start == "latest"
        self._records = schedule.records
        self.begins: dict[int, int] | None = None
        self.arrived: dict[tuple[int, int], float] = {}
        broker.groups.of("q.partitioner").on_first = self._claimed
        self.done = False
        logs = broker.topics["in"].logs
        if self._late:
            for log in logs:
                for number in range(2):
                    log.append(_entry(Written(0.0, log.number, "tuple", "old", number, 1)))
        else:
            self._begin(0.0)

    def _claimed(self, offsets: dict[tuple[str, int], Committed]) -> None:
        """The query has begun at these offsets: what was there before does not count."""
        self.begins = {number: result.offset for (_, number), result in offsets.items()}
        if self._late:
            self._begin(1_000.0)

    def _begin(self, shift: float) -> None:
        for record in self._records:
            self._world.at(record.at - shift, lambda record=record: self._write(record))
        last = max((record.at - shift for record in self._records), default=0.0)
        self._world.at(last + 0.001, self._finish)

    def _write(self, record: Written) -> None:
        log = self._broker.topics["in"].logs[record.partition]
        if record.kind == "batch":
            log.append_unfetchable(record.value, _CODES[record.time % len(_CODES)])
            return
        offset = log.append(_entry(record))
        self.arrived[record.partition, offset] = self._world.now

    def fill(self, partition: int, draw: Random) -> None:
        """Write into a partition that was added: some records by and by, most with times of about now, and
        the end.
        """
        others = [r for r in self._records if r.kind == "tuple" and r.time < FUTURE]
        others.sort(key=lambda record: abs(record.at % 1_000 - self._world.now))
        times = [record.time for record in others] or [1_000]
        delay = 0.0
        for value in range(1, draw.randint(1, 9)):
            delay += draw.uniform(0.0, 1.5)
            time = draw.choice(times[:_CLOSE] if draw.random() < 0.7 else times)
            written = Written(0.0, partition, "tuple", draw.choice("abc"), time, value)
            self._world.at(delay, lambda written=written: self._write(written))
        self._world.at(delay + 0.5, lambda: self._write(Written(0.0, partition, "marker")))

    def grow_again(self, partition: int, draw: Random) -> None:
        """Write into a partition that has lost its last records: others, and its end, behind all that is
        to come.
        """
        left = [record for record in self._records if record.partition == partition]
        shift = 1_000.0 if self._late else 0.0
        last = max((record.at - shift for record in left), default=0.0)
        self._world.at(max(0.0, last - self._world.now), lambda: self.fill(partition, draw))

    def _finish(self) -> None:
        self.done = True


def _entry(record: Written) -> Entry:
    if record.kind == "marker":
        marker = EndOfStream(producer="w", tuples=0)
        return Entry(None, None, marker.headers(), BASE, None)
    fields: dict[str, Any] = {"k": record.key, "t": BASE + record.time, "v": record.value}
    if record.text:
        fields["w"] = record.text
    value = b"{bad" if record.kind == "bad" else json.dumps(fields).encode()
    return Entry(None, value, None, BASE + record.time, None)


def plan_of(fault: Fault, settings: Settings, epoch: int) -> Plan:
    """The plan that a fault publishes."""
    draw = Random(fault.draw)
    workers = draw.randint(1, settings.max_workers)
    begins = BASE + 2_000 * draw.randint(0, 8)
    return Plan(epoch=epoch, p=workers, r=1, effective_from=begins)
