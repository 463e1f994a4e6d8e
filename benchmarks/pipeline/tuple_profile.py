"""Where each nanosecond of a tuple goes, from the topic to the row, beside the limit of each step.

Four parts, over one stream (Zipf 1.0, 100,000 keys):

* The partitioner: its loop runs in this process for the second time, and the CPU time of its thread is
  counted by function. What the process used beside this thread are the threads of the Kafka client.
* Combiner and reducer: the frames that the partitioner wrote go through the two cores in this process, in
  micro-batches, and CPU time is counted by function. The state of the buckets is in memory.
* Spark: its bare scan of the same frames, Python that drops them, the combiner, and the whole application
  without writing. CPU time is by process, so the difference between two ways is what the second one adds.
* Limits: the same topic only fetched, the same frames only produced, and as many bytes only copied.

To count costs a microsecond a call. Calls are by block and by frame, so it hardly shows in a tuple.
`python -m benchmarks.pipeline.profile_page` makes docs/profile.md of the figures.
"""

from __future__ import annotations

import cProfile
import pstats
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from confluent_kafka import TopicPartition

from benchmarks.cores.growth import Memory
from benchmarks.measuring.cpu import CpuMeter
from benchmarks.measuring.pipelines import WORKERS, measured_broker
from benchmarks.measuring.step_lines import step
from benchmarks.measuring.stream import KEYS, settings_for, write_input
from benchmarks.measuring.stream import SEED as SEED
from benchmarks.pipeline.combiner import dropping
from benchmarks.spark.stages import FOLDER, stream_speed
from evenflow.errors import ServiceError
from evenflow.settings import Settings
from evenflow.twostep import combine_task, json_rows, reduce_windows
from partitioner_service.begin.prepare import prepare
from partitioner_service.fetch.fetchers import opened
from partitioner_service.kafka.sink import producer_config
from partitioner_service.kafka.source import client_id, consumer_config
from partitioner_service.plane.data_plane import DataPlane
from partitioner_service.plane.garbage import patient_garbage_collection
from spark_consumers import combiner
from spark_consumers.layout import Layout
from spark_consumers.session import end_session, make_session
from spark_consumers.sources import records
from spark_consumers.stage import stage_frame
from topics import clients
from topics.admin import describe, ensure_topics, pipeline_topics
from topics.reader import read_range

ID = "tuple-profile"
WHAT = (
    "where each nanosecond of a tuple goes, by process and function, beside the limit of each step (goal: 200"
    " to parse, judge, route and frame)"
)
GOAL = 200.0
"""Nanoseconds of CPU in which a tuple is parsed and judged, gets a worker and a place in a frame."""

_ROOT = Path(__file__).parents[2]
_BATCHES = 10
"""Micro-batches that the frames are cut into."""
_TASKS = 2
"""Tasks of the combiner."""
_AT_ONCE = 50_000
_PATIENCE = 120.0
"""Seconds in which the whole topic is fetched."""

Frames = dict[int, list[tuple[int, bytes]]]
"""(offset, frame) of each routed partition."""


class Step(NamedTuple):
    """Something that is done for a tuple."""

    description: str
    """In words."""
    functions: tuple[str, ...]
    """What does it, as `file:function`. No other step's functions call these or are called by them."""
    limit: str | None = None
    """The limit that it is held against, as of `limits`."""


PARTITIONER = (
    Step(
        "take records out of the client's queues",
        ("partitioner_service/fetch/queues.py:fetch", "partitioner_service/fetch/fetchers.py:fetch"),
        "copied",
    ),
    Step("check their offsets, cut blocks", ("partitioner_service/kafka/source.py:_blocks",)),
    Step("parse", ("partitioner_service/routing/router.py:_parse",), "copied"),
    Step("judge times", ("partitioner_service/routing/router.py:_judge_slice",)),
    Step("choose workers", ("partitioner_service/routing/router.py:assigned",)),
    Step("sort by worker, make frames", ("partitioner_service/routing/router.py:framed",), "copied"),
    Step("hand frames to the client", ("partitioner_service/kafka/sink.py:write_frames",)),
    Step("commit", ("partitioner_service/plane/loop.py:commit",)),
)
_ROUTER = "partitioner_service/routing/router.py:"
"""Where the functions of the steps of `GOAL` are."""
COMBINER = (
    Step("decode frames", ("evenflow/wire/frame.py:decode_frame",), "copied"),
    Step("fold tuples into partial results", ("evenflow/twostep/combiner.py:_fold",)),
    Step("cut by bucket, encode blobs", ("evenflow/twostep/combiner.py:_blobs",)),
)
REDUCER = (
    Step("read state, decode blobs", ("evenflow/twostep/reducing/reducer.py:_opened",)),
    Step("add partial results to panes", ("evenflow/twostep/reducing/state.py:append",)),
    Step("move windows on", ("evenflow/twostep/reducing/sliding.py:advance",)),
    Step("write state", ("evenflow/twostep/reducing/state.py:save",)),
    Step("write rows as JSON", ("evenflow/twostep/results.py:json_rows",)),
)
CLIENT = "threads of the Kafka client"
"""What the partitioner's process uses beside its data plane's thread."""
WAYS = ("bare scan of the frames", "Python that drops them", "combiner", "combiner and reducer")
"""What Spark does with the frames, each way with something more than the one before."""


def run(*, smoke: bool) -> dict[str, object]:
    """Nanoseconds a tuple of every step, and of every limit."""
    tuples = 200_000 if smoke else 4_000_000
    with measured_broker("driver") as (broker, meter), TemporaryDirectory(prefix=FOLDER) as folder:

        def named(name: str) -> Settings:
            return settings_for(
                broker.settings(),
                name,
                input={"topic": f"{ID}.input"},
                partitioner={"workers": WORKERS, "name": "evenflow"},
                spark={"checkpoint": f"{folder}/checkpoint", "batch_interval": 0},
            )

        settings = named(ID)
        with step(f"writing {tuples:,} tuples"):
            write_input(settings, tuples=tuples)
        settings = prepare(settings)
        with step("the partitioner"):
            DataPlane(prepare(named(f"{ID}-warm")), until_ended=True).run()  # the first time loads kernels
            thread, process = profiled(lambda: DataPlane(settings, until_ended=True).run())
        frames = written(settings)
        report: dict[str, Any] = {
            "tuples": tuples,
            "keys": KEYS,
            "workers": WORKERS,
            "partitioner": shares(PARTITIONER, thread, tuples=tuples)
            | {CLIENT: _ns(process - thread[""], tuples)},
        }
        report["parse_judge_route_frame"] = judged(report["partitioner"])
        with step("combiner and reducer"):
            report |= cores(settings, frames, tuples=tuples)
        with step("limits"):
            report["limits"] = limits(settings, frames, tuples=tuples)
        report["spark"] = in_spark(settings, frames, Path(folder), meter, tuples, 1 if smoke else 3)
    return report


def profiled(work: Callable[[], object]) -> tuple[dict[str, float], float]:
    """CPU seconds of this thread by `file:function`, with what the function calls, and of the whole process.

    The name "" has those of the whole thread.
    """
    profile = cProfile.Profile(time.thread_time)
    thread, process = time.thread_time(), time.process_time()
    with patient_garbage_collection():
        profile.runcall(work)
    seconds = {"": time.thread_time() - thread}
    used = time.process_time() - process
    for (file, _, function), (*_, cumulative, _) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]  # not in the stubs
        if file.startswith(str(_ROOT)):
            name = f"{Path(file).relative_to(_ROOT)}:{function}"
            seconds[name] = seconds.get(name, 0.0) + cumulative
    return seconds, used


def shares(steps: Sequence[Step], seconds: Mapping[str, float], *, tuples: int) -> dict[str, float]:
    """Nanoseconds a tuple of each step by its words, and of what no step has.

    seconds: as of `profiled`. ValueError for a step of which no function was called.
    """
    seconds_by_step = {
        one.description: [seconds[name] for name in one.functions if name in seconds] for one in steps
    }
    unknown = [what for what, each in seconds_by_step.items() if not each]
    if unknown:
        raise ValueError(f"nothing was called for: {', '.join(unknown)}")
    rest = seconds[""] - sum(map(sum, seconds_by_step.values()))
    return {what: _ns(sum(each), tuples) for what, each in seconds_by_step.items()} | {
        "the rest": _ns(rest, tuples)
    }


def judged(partitioner: Mapping[str, float]) -> dict[str, object]:
    """Nanoseconds a tuple of the router's steps together, the goal for them, and whether they meet it.

    partitioner: nanoseconds by step, as of `shares`.
    """
    ns = sum(partitioner[one.description] for one in PARTITIONER if one.functions[0].startswith(_ROUTER))
    return {"ns": round(ns, 1), "goal": GOAL, "met": ns <= GOAL}


def written(settings: Settings) -> Frames:
    """What the routed topic holds."""
    frames: Frames = defaultdict(list)
    for messages in read_range(settings.kafka, settings.topic("routed")):
        for message in messages:
            frames[message.partition() or 0].append((message.offset() or 0, message.value() or b""))
    return frames


def cores(settings: Settings, frames: Frames, *, tuples: int) -> dict[str, Any]:
    """Shares of combiner and reducer, and result rows a tuple."""
    topic = settings.topic("routed")
    layout = Layout.from_settings(settings, describe(settings.kafka, [topic])[topic].topic_id)
    for _ in range(2):  # the first time loads kernels
        states = [Memory() for _ in range(layout.buckets)]
        combined, reduced, rows = {"": 0.0}, {"": 0.0}, 0
        for part in micro_batches(frames):
            blobs: list[list[bytes]] = [[] for _ in states]

            def combine(part: Frames = part, blobs: list[list[bytes]] = blobs) -> None:
                for task in range(_TASKS):
                    mine = [(routed, part[routed]) for routed in sorted(part)[task::_TASKS]]
                    for blob in combine_task(layout.plan, layout, mine):
                        blobs[blob.bucket].append(blob.data)

            def reduce(blobs: list[list[bytes]] = blobs, states: list[Memory] = states) -> None:
                nonlocal rows
                for state, some in zip(states, blobs, strict=True):
                    for table in reduce_windows(layout.plan, layout, state, some):
                        rows += len(json_rows(table))

            add(combined, profiled(combine)[0])
            add(reduced, profiled(reduce)[0])
    return {
        "combiner": shares(COMBINER, combined, tuples=tuples),
        "reducer": shares(REDUCER, reduced, tuples=tuples),
        "rows_a_tuple": round(rows / tuples, 2),
    }


def micro_batches(frames: Frames) -> Iterator[Frames]:
    """The frames in `_BATCHES` parts, in order. A partition with few frames is not in all of them."""
    for number in range(_BATCHES):
        part = {
            routed: some[len(some) * number // _BATCHES : len(some) * (number + 1) // _BATCHES]
            for routed, some in frames.items()
        }
        yield {routed: some for routed, some in part.items() if some}


def add(sums: dict[str, float], more: Mapping[str, float]) -> None:
    """Add seconds by function to those of other calls."""
    for name, seconds in more.items():
        sums[name] = sums.get(name, 0.0) + seconds


def limits(settings: Settings, frames: Frames, *, tuples: int) -> dict[str, float]:
    """Nanoseconds a tuple. `fetched`, `produced`: of the client's threads, for the topic and nothing else,
    and for the same frames without transactions. `copied`: of this thread, for the records' bytes once.
    """
    return {
        "fetched": _ns(_fetched(settings), tuples),
        "produced": _ns(_produced(settings, frames), tuples),
        "copied": _ns(_copied(settings, tuples), tuples),
    }


def _fetched(settings: Settings) -> float:
    topic = settings.topic("input")
    state = describe(settings.kafka, [topic])[topic]
    config = consumer_config(settings)
    consumer, fetcher = opened(
        settings,
        lambda bounds: clients.consumer(settings.kafka, group=f"{ID}-limit", **config, **bounds),
        client_id=client_id(settings),
    )
    try:
        fetcher.split(state.begin)
        consumer.assign([TopicPartition(topic, number, at) for number, at in state.begin.items()])
        began, deadline, left = _other_threads(), time.monotonic() + _PATIENCE, state.records
        while left > 0:
            left -= len(fetcher.fetch(_AT_ONCE, 0.05).partitions)
            if time.monotonic() > deadline:
                raise ServiceError(f"{left:,} records of {topic} did not come within {_PATIENCE:g} s")
        return _other_threads() - began
    finally:
        fetcher.close()
        consumer.close()


def _produced(settings: Settings, frames: Frames) -> float:
    other = settings_for(
        settings.kafka,
        f"{ID}-limit",
        input={"topic": settings.topic("input")},
        partitioner={"workers": WORKERS},
    )
    ensure_topics(other.kafka, pipeline_topics(other).values())
    config = {
        name: value for name, value in producer_config(other).items() if not name.startswith("transact")
    }
    producer, topic = clients.producer(other.kafka, **config), other.topic("routed")
    began = _other_threads()
    for routed, some in frames.items():
        for _, data in some:
            producer.produce(topic, value=data, partition=routed)
            producer.poll(0)
    if producer.flush(_PATIENCE):
        raise ServiceError(f"frames were not written to {topic} within {_PATIENCE:g} s")
    return _other_threads() - began


def _other_threads() -> float:
    """CPU seconds of this process so far, without those of this thread. These are the client's threads."""
    return time.process_time() - time.thread_time()


def _copied(settings: Settings, tuples: int) -> float:
    """Seconds, by the fastest of five copies."""
    size = 0
    for messages in read_range(settings.kafka, settings.topic("input")):
        size += sum(len(message.value() or b"") for message in messages)
        if size >= 64_000_000:
            break
    source, target = np.ones(size, np.uint8), np.zeros(size, np.uint8)
    seconds = []
    for _ in range(5):
        began = time.thread_time()
        np.copyto(target, source)
        seconds.append(time.thread_time() - began)
    return min(seconds) / size * tuples * _record_bytes(settings)


def _record_bytes(settings: Settings) -> float:
    """Bytes of a record of the input topic, of the first that are read."""
    for messages in read_range(settings.kafka, settings.topic("input")):
        sizes = [len(value) for message in messages if (value := message.value()) is not None]
        if sizes:
            return sum(sizes) / len(sizes)
    return 0.0


def in_spark(
    settings: Settings, frames: Frames, folder: Path, meter: CpuMeter, tuples: int, repetitions: int
) -> dict[str, dict[str, float]]:
    """Nanoseconds a tuple of each of `WAYS` by process, the least of several runs, after one that does not
    count.
    """
    topic = settings.topic("routed")
    topic_id = describe(settings.kafka, [topic])[topic].topic_id
    layout, count = Layout.from_settings(settings, topic_id), sum(map(len, frames.values()))
    spark = make_session(settings)
    try:
        tasks = spark.sparkContext.defaultParallelism

        def source() -> Any:
            return records(spark, settings, topic)

        streams: dict[str, Callable[[], Any]] = dict(
            zip(
                WAYS,
                (
                    lambda: source().coalesce(tasks),
                    lambda: source().coalesce(tasks).mapInArrow(dropping(), combiner.BLOBS),
                    lambda: combiner.combined(source(), layout, tasks=tasks, on_tally=None),
                    lambda: stage_frame(
                        spark, settings, "fused", topic_id, starting="earliest", on_tally=None
                    ),
                ),
                strict=True,
            )
        )
        runs: dict[str, list[Mapping[str, float]]] = {way: [] for way in WAYS}
        for number in range(repetitions + 1):
            for way, stream in streams.items():
                with step(f"Spark: {way}"):
                    speed = stream_speed(stream(), folder, meter, rows=count, tuples=tuples)
                if number:
                    runs[way].append(speed.used)
    finally:
        end_session(spark)
    return {
        way: {
            process: min(_ns(used.get(process, 0.0), tuples) for used in each)
            for process in ("spark_jvm", "spark_python")
        }
        for way, each in runs.items()
    }


def _ns(seconds: float, tuples: int) -> float:
    return round(1e9 * max(0.0, seconds) / tuples, 1)
