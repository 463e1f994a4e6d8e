"""What Spark takes for a trigger, by how many of the partitioner's batches the trigger takes at once.

A routed topic holds batches of a second of event time (50,000 tuples). The fused application works off that
topic, from frames to rows in the results topic, again and again. A limit on the offsets of a trigger makes it
take one batch or several. There is one session, and all ways are measured in turns.

Seconds are those of the triggers as Spark reports them. The seconds of a turn, over its triggers, lie on a
line. Its slope is what a trigger costs whatever its data. The rest is what the data costs. CPU time has a
slope as well. It is of all processes, and hardly depends on what else the machine does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from benchmarks.measuring.cpu import CpuMeter, occupancy, total
from benchmarks.measuring.spread import in_turns, spread
from benchmarks.measuring.step_lines import step
from benchmarks.measuring.stream import EVENT_RATE
from benchmarks.spark.stages import routed
from evenflow.settings import KafkaSettings, Settings
from evenflow.settings.views import TopicRole
from spark_consumers.session import end_session, make_session
from spark_consumers.sinks import sink_of
from spark_consumers.sinks.base import Start
from spark_consumers.stage import stage_frame
from spark_consumers.stage_output import checked
from topics.admin import describe, ensure_topics, pipeline_topics
from topics.state import TopicState

_WINDOW = "1s"
_ROOM = 1.02
"""Offsets that a trigger may take, over those of its batches. Then markers and rounding need no trigger of
their own.
"""

FrameOf = Callable[[SparkSession, Settings, str], DataFrame]
"""(session, settings, Kafka's id of the routed topic) -> the rows that a stream writes."""


@dataclass(frozen=True)
class Turn:
    """The topic worked off once."""

    triggers: int
    """How many micro-batches had rows."""
    seconds: float
    """Seconds that these took together."""
    cpu: float
    """CPU seconds of the turn."""
    rows: int
    """Records that came into the results topic."""
    later: float
    """Median seconds of the triggers after the first one, in which code is loaded. Of the only one, its
    seconds."""


def routed_batches(
    kafka: KafkaSettings,
    query: str,
    partitioner: str,
    folder: Path,
    *,
    batches: int,
    zipf: float = 1.0,
    how: Mapping[str, Any] | None = None,
    **spark: Any,
) -> Settings:
    """Settings of a fused query whose routed topic holds so many batches.

    how: further settings of the partitioner. spark: settings of this part.
    """
    batched = {"name": partitioner, "batch_interval": "1s", "batch_bytes": 1_000_000_000}
    tuples = batches * EVENT_RATE
    settings = routed(
        kafka,
        query,
        folder,
        tuples=tuples,
        zipf=zipf,
        window=_WINDOW,
        partitioner=batched | dict(how or {}),
        wiring="fused",
        **spark,
    )
    ensure_topics(settings.kafka, pipeline_topics(settings).values())
    return settings


def measured_triggers(
    streams: Mapping[str, Settings],
    batches_a_trigger: Sequence[int],
    *,
    batches: int,
    repetitions: int,
    folder: str,
    meter: CpuMeter,
    frames: Mapping[str, FrameOf] | None = None,
) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """`figures` of each stream by its name, and what the machine did meanwhile.

    batches_a_trigger: how many batches a trigger takes, each number in turn. batches: how many each stream
    has. frames: by name of a stream, its rows. Those that are left out are of the fused application.
    """
    spark = make_session(next(iter(streams.values())))
    try:
        ways = {
            (name, many): partial(
                worked_off,
                spark,
                taking(stream, many / batches),
                folder,
                meter,
                frame_of=(frames or {}).get(name, fused),
            )
            for (name, stream), many in product(streams.items(), batches_a_trigger)
        }
        with step("warm-up"):
            for name in streams:
                ways[name, batches_a_trigger[-1]]()
        began = meter.now()
        turns = in_turns(
            {f"{name}, {many}": way for (name, many), way in ways.items()}, repetitions, tell=True
        )
        ended = meter.now()
    finally:
        end_session(spark)
    rows = {
        name: figures({f"{many}": turns[f"{name}, {many}"] for many in batches_a_trigger}, batches)
        for name in streams
    }
    return rows, occupancy(meter.between(began, ended), ended - began)


def figures(turns: Mapping[str, Sequence[Turn]], batches: int) -> dict[str, Any]:
    """Figures of a stream, by its turns for each number of batches a trigger. All turns have so many batches.

    seconds_a_trigger, later_trigger, cpu_a_trigger: spread over the turns. rows: of a turn, in the results
    topic (one number, unless turns differ). speed: batches per second, relative to the first number of
    batches a trigger. fixed_s, batch_s: seconds that a trigger and that a batch of data costs. fixed_cpu_s,
    batch_cpu_s: CPU seconds likewise.
    """
    each = [turn for several in turns.values() for turn in several]
    triggers = [turn.triggers for turn in each]
    fixed, rest = np.polyfit(triggers, [turn.seconds for turn in each], 1)
    fixed_cpu, rest_cpu = np.polyfit(triggers, [turn.cpu for turn in each], 1)
    medians = {many: spread([turn.seconds for turn in several])["median"] for many, several in turns.items()}
    first = next(iter(medians.values()))
    return {
        "seconds_a_trigger": {
            many: spread([turn.seconds / turn.triggers for turn in several])
            for many, several in turns.items()
        },
        "later_trigger": {many: spread([turn.later for turn in several]) for many, several in turns.items()},
        "cpu_a_trigger": {
            many: spread([turn.cpu / turn.triggers for turn in several]) for many, several in turns.items()
        },
        "triggers": {many: several[0].triggers for many, several in turns.items()},
        "rows": sorted({turn.rows for turn in each}),
        "speed": {many: round(first / seconds, 2) for many, seconds in medians.items()},
        "fixed_s": round(float(fixed), 3),
        "fixed_cpu_s": round(float(fixed_cpu), 3),
        "batch_s": round(float(rest) / batches, 3),
        "batch_cpu_s": round(float(rest_cpu) / batches, 3),
    }


def taking(settings: Settings, share: float) -> Settings:
    """These settings, with triggers that take so much of the routed topic."""
    offsets = math.ceil(_ROOM * share * _topic(settings, "routed").records)
    spark = settings.spark.model_copy(update={"max_frames_per_batch": offsets})
    return settings.model_copy(update={"spark": spark})


def _topic(settings: Settings, role: TopicRole) -> TopicState:
    topic = settings.topic(role)
    return describe(settings.kafka, [topic])[topic]


def fused(spark: SparkSession, settings: Settings, topic_id: str) -> DataFrame:
    """The rows of the fused application, as a `FrameOf`."""
    return stage_frame(spark, settings, "fused", topic_id, starting="earliest", on_tally=None)


def worked_off(
    spark: SparkSession, settings: Settings, folder: str, meter: CpuMeter, *, frame_of: FrameOf = fused
) -> Turn:
    """Work off the routed topic once, into the results topic. folder: for the checkpoint."""
    topic_id, rows = _topic(settings, "routed").topic_id, _topic(settings, "results").records
    began = meter.now()
    frame = frame_of(spark, settings, topic_id)
    write = sink_of(settings).writer(settings, Start(spark=spark, run="bench", epoch=1))
    with TemporaryDirectory(dir=folder) as checkpoint:
        writer: Any = frame.writeStream.outputMode("append").option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).foreachBatch(checked(write, lambda: None)).start()
        query.awaitTermination()
        seconds = [
            each["durationMs"]["triggerExecution"] / 1000
            for each in query.recentProgress
            # Triggers without rows take nothing. Counted, they would make a trigger look cheaper.
            if each["numInputRows"]
        ]
    cpu = total(meter.between(began, meter.now()))
    later = median(seconds[1:] or seconds)
    return Turn(len(seconds), sum(seconds), cpu, _topic(settings, "results").records - rows, later)
