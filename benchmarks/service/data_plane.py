"""The data plane of the partitioner service against a bare confluent-kafka loop on the same broker and data,
and beside its own queues alone.

The tuples are written once, and every turn of every way reads the same topic from its beginning. Both service
and bare loop are measured from their first to their last commit. Start-up, the claim, joining the group and
the first transaction are outside. The client fetches up to 800,000 tuples ahead before the first commit, so
the topic is many times as long.

The bare loop reads blocks of the same size with the same client settings, and looks at every record's error
and value. It writes the very frames that the data plane wrote for as many tuples, which were recorded in a
run that does not count. Its transactions with offsets have the same interval. It parses nothing and routes
nothing.

The queues alone are the ceiling of this way of reading. A member of the group takes the records out of the
data plane's queues and gathers them into buffers. It parses, routes, writes and commits nothing. It is
measured from its first to its last fetch. Garbage collection is set for all as the data plane sets it for
itself, and once more the bare loop runs as people write it, with Python's own thresholds.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.measuring.cpu import CpuMeter
from benchmarks.measuring.pipelines import measured_broker
from benchmarks.measuring.spread import Speed, beside, in_turns, judged, spread
from benchmarks.measuring.step_lines import step
from benchmarks.measuring.stream import settings_for, write_input
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from evenflow.settings.sections.rhythm import rhythm
from evenflow.wire import decode_frame
from partitioner_service.begin.prepare import prepare
from partitioner_service.fetch.librdkafka import Librdkafka
from partitioner_service.fetch.queues import ONE_QUEUE, Queues, bounds
from partitioner_service.kafka.committed_state import data_plane_group
from partitioner_service.kafka.sink import producer_config
from partitioner_service.kafka.source import client_id, consumer_config
from partitioner_service.plane.data_plane import DataPlane
from partitioner_service.plane.garbage import patient_garbage_collection
from partitioner_service.plane.loop import Loop
from partitioner_service.plane.opening import Parts
from topics import clients
from topics.admin import delete_topics, describe, ensure_topics, pipeline_topics
from topics.reader import read_range

WORKERS = 8
GOAL_SPEED = 3.0
"""How many times as fast as the bare loop the service shall be."""
GOAL_CPU = 0.8
"""Microseconds of CPU that a tuple may cost from topic to frames, without the broker."""
_TUPLES = 16_000_000
_SMOKE_BLOCK = 20_000
"""Tuples. A smoke run has a few hundred thousand, which a fast machine routes in one usual transaction."""
_PROCESS = "data_plane"
"""Label of this process, with the threads of its Kafka client."""


@dataclass
class Commits:
    """The moments at which commits ended, and how many tuples had been read by then. Of a way that commits
    nothing, its first and its last fetch.
    """

    moments: list[tuple[float, int]] = field(default_factory=list)
    """Pairs of seconds since 1970 and tuples."""

    def note(self, tuples: int) -> None:
        """Note a commit that has just ended. Before the first tuple there is nothing to measure."""
        if tuples:
            self.moments.append((time.time(), tuples))

    def speed(self, meter: CpuMeter) -> Speed:
        """Tuples per second and CPU time from the first commit to the last.

        ValueError if no tuples were read between two commits.
        """
        if not self.moments or self.moments[0][1] == self.moments[-1][1]:
            raise ValueError(
                "all tuples were committed at once, so no speed can be measured: write more tuples, or make"
                " blocks and commit_interval shorter"
            )
        # A look at the end, so that the meter knows what was used up to the last commit.
        meter.now()
        (begin, before), (end, after) = self.moments[0], self.moments[-1]
        return Speed((after - before) / (end - begin), after - before, meter.between(begin, end))


def commits_of(*, smoke: bool) -> dict[str, int]:
    """The partitioner's settings with which a run commits several times. A smoke run commits after every
    block or two, however fast the machine is.
    """
    return {"block_tuples": _SMOKE_BLOCK, "commit_interval": 1} if smoke else {"commit_interval": 500}


class MeasuredLoop(Loop):
    """The data plane's loop, unchanged but for noting its commits."""

    def __init__(self, settings: Settings, parts: Parts, *, commits: Commits, **more: Any) -> None:
        super().__init__(settings, parts, **more)
        self._commits = commits

    def commit(self, added: Mapping[int, PartitionState] | None = None) -> None:
        """Commit, and note it."""
        super().commit(added)
        self._commits.note(self.counted())

    def counted(self) -> int:
        """The number that speed is made of: tuples."""
        return self.work.tuples


class MeasuredPlane(DataPlane):
    """The data plane, unchanged but for a loop that is measured."""

    def __init__(self, settings: Settings, loop: type[MeasuredLoop] = MeasuredLoop) -> None:
        self.commits = Commits()
        super().__init__(settings, until_ended=True, loop=partial(loop, commits=self.commits))


def compare(partitioner: str, *, smoke: bool) -> dict[str, object]:
    """Rates of data plane, bare loop and queues alone, measured in turns, and the goals."""
    tuples, repetitions = (300_000, 1) if smoke else (_TUPLES, 3)
    numbers = count()
    with measured_broker(_PROCESS) as (broker, meter):

        def fresh() -> Settings:
            options = {"name": partitioner, "workers": WORKERS, **commits_of(smoke=smoke)}
            return settings_for(broker.settings(), f"bench-{next(numbers)}", partitioner=options)

        first = fresh()
        with step(f"writing {tuples:,} tuples"):
            write_input(first, tuples=tuples)
        with step("recording the frames"):
            MeasuredPlane(first).run()
            frames = recorded(first)
        speeds = in_turns(
            {
                "service": lambda: plane_speed(fresh(), meter),
                "bare": lambda: bare_speed(fresh(), meter, frames, tuples=tuples),
                "usual": lambda: bare_speed(fresh(), meter, frames, tuples=tuples, patient=False),
                "queues_alone": lambda: queues_speed(fresh(), meter, tuples=tuples),
            },
            repetitions,
            tell=True,
        )
    return {
        "partitioner": partitioner,
        "tuples": tuples,
        "workers": WORKERS,
        "frames": sum(map(len, frames.values())),
        "frame_bytes": sum(len(data) for block in frames.values() for _, data in block),
        **beside(speeds["service"], speeds["bare"], ("service", "bare")),
        **judged(speeds["service"], speeds["bare"], GOAL_SPEED),
        **cpu_judged(speeds["service"]),
        "beside_usual_loop": beside(speeds["service"], speeds["usual"], ("service", "usual")),
        "beside_queues_alone": beside(speeds["service"], speeds["queues_alone"], ("service", "queues_alone")),
    }


def cpu_judged(speeds: Sequence[Speed]) -> dict[str, object]:
    """CPU time of a tuple without the broker, the goal for it, and whether the median over the turns meets
    it.
    """
    cpu = spread([1e6 * speed.used.get(_PROCESS, 0.0) / speed.tuples for speed in speeds])
    return {
        "cpu_microseconds_without_broker": cpu,
        "goal_cpu": GOAL_CPU,
        "goal_cpu_met": cpu["median"] <= GOAL_CPU,
    }


def plane_speed(settings: Settings, meter: CpuMeter) -> Speed:
    """Speed of the data plane over the whole input topic."""
    plane = MeasuredPlane(prepare(settings))
    plane.run()
    speed = plane.commits.speed(meter)
    _drop_output(settings)
    return speed


Frames = dict[int, list[tuple[int, bytes]]]
"""Tuples routed up to the end of a block -> the block's frames as (worker, bytes)."""


def recorded(settings: Settings) -> Frames:
    """The frames that a run wrote, block by block, in the order in which they were written."""
    blocks: dict[tuple[tuple[int, int], ...], list[tuple[int, bytes, int]]] = defaultdict(list)
    for messages in read_range(settings.kafka, settings.topic("routed")):
        for message in messages:
            value = message.value() or b""
            frame = decode_frame(value, fingerprint=settings.fingerprint)
            # Frames of one block carry the same offsets. A block without tuples only tells: then partition
            # and offset told.
            offsets, marks = frame.header.offsets, frame.header.marks
            starts = offsets[["partition", "first"]] if len(offsets) else marks[["partition", "reached"]]
            block = tuple(sorted(starts.tolist()))
            blocks[block].append((message.partition(), value, frame.batch.num_rows))
    frames: Frames = {}
    tuples = 0
    for _, written in sorted(blocks.items(), key=lambda item: max(first for _, first in item[0])):
        tuples += sum(rows for _, _, rows in written)
        frames.setdefault(tuples, []).extend((worker, data) for worker, data, _ in written)
    return frames


def bare_speed(
    settings: Settings, meter: CpuMeter, frames: Frames, *, tuples: int, patient: bool = True
) -> Speed:
    """Speed of the bare loop over the whole input topic. patient: whether garbage is collected as rarely as
    the data plane does it.
    """
    ensure_topics(settings.kafka, pipeline_topics(settings).values())
    config = consumer_config(settings) | ONE_QUEUE
    consumer = clients.consumer(settings.kafka, group=data_plane_group(settings), **config)
    producer = clients.producer(settings.kafka, **producer_config(settings))
    try:
        producer.init_transactions(30)
        begin = describe(settings.kafka, [settings.topic("input")])[settings.topic("input")].begin
        consumer.assign([TopicPartition(settings.topic("input"), p, at) for p, at in begin.items()])
        with patient_garbage_collection() if patient else nullcontext():
            commits = _bare_loop(settings, consumer, producer, frames, tuples)
        speed = commits.speed(meter)
    finally:
        consumer.close()
    _drop_output(settings)
    return speed


def _bare_loop(
    settings: Settings, consumer: Consumer, producer: Producer, frames: Frames, tuples: int
) -> Commits:
    options, routed = (
        rhythm(settings.partitioner, routed=settings.routed_partitions),
        settings.topic("routed"),
    )
    # Reversed, so that the block that is due next can be popped from the end.
    due = list(frames.items())[::-1]
    commits, opened, read = Commits(), 0.0, 0
    # The last block is due once all tuples have been read, and the loop ends with its commit.
    while due:
        messages = consumer.consume(options.block_tuples, options.linger / 1000)
        records = [message for message in messages if message.error() is None]
        values = [record.value() for record in records]
        # A record without a value marks the end of the stream.
        read += len(values) - values.count(None)
        if not opened:
            producer.begin_transaction()
            opened = time.perf_counter()
        while due and due[-1][0] <= read:
            for worker, data in due.pop()[1]:
                producer.produce(routed, value=data, partition=worker)
                producer.poll(0)
        if not due or time.perf_counter() - opened >= options.commit_interval / 1000:
            offsets = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 30)
            producer.commit_transaction(30)
            opened = 0.0
            commits.note(read)
    assert read == tuples, f"{read} tuples of {tuples} were read"
    return commits


def queues_speed(settings: Settings, meter: CpuMeter, *, tuples: int) -> Speed:
    """Speed of reading the whole input topic out of the queues as a member of the group.

    NotProvenError if this librdkafka is not one whose queues can be read.
    """
    topic = settings.topic("input")
    begin = describe(settings.kafka, [topic])[topic].begin
    config = consumer_config(settings) | bounds(settings.input_partitions)
    consumer = clients.consumer(settings.kafka, group=data_plane_group(settings), **config)
    queues = Queues(consumer, Librdkafka(consumer, client_id(settings)), topic)

    def on_assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        owned = [entry.partition for entry in partitions]
        queues.split(owned)
        consumer.assign([TopicPartition(topic, partition, begin[partition]) for partition in owned])

    def on_revoke(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        queues.take_back()
        consumer.unassign()

    consumer.subscribe([topic], on_assign=on_assign, on_revoke=on_revoke)
    try:
        with patient_garbage_collection():
            fetches = _queues_loop(settings, queues, tuples)
        return fetches.speed(meter)
    finally:
        queues.close()
        consumer.close()


def _queues_loop(settings: Settings, queues: Queues, tuples: int) -> Commits:
    options = rhythm(settings.partitioner, routed=settings.routed_partitions)
    fetches, read = Commits(), 0
    while read < tuples:
        fetched = queues.fetch(options.block_tuples, options.linger / 1000)
        assert not fetched.astray, "records came by the consumer's own queue"
        missing = fetched.values.missing
        # A record without a value marks the end of the stream.
        read += len(fetched.partitions) - (0 if missing is None else int(missing.sum()))
        if read == tuples or not fetches.moments:
            fetches.note(read)
    assert read == tuples, f"{read} tuples of {tuples} were read"
    return fetches


def _drop_output(settings: Settings) -> None:
    delete_topics(settings.kafka, [settings.topic("routed")])
