"""What metrics cost the Spark application: its streams from Kafka to Kafka with metrics and without, in
turns.

One session works off the same topic again and again, each time with a checkpoint of its own. With metrics the
tasks tell what they did (latencies, keys, repeated and replicated work, stands), Spark's listener makes
telemetry and metrics of it, and there is a scrape over HTTP every 15 s. Without metrics the tasks tell
nothing and there is no listener. Seconds are those of the micro-batches as Spark reports them. CPU time is
that of all processes but for the JVM's compilers. It includes the start and the stop of the stream.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from benchmarks.measuring.cpu import CpuMeter
from benchmarks.measuring.scraping import Scraper, scraper
from benchmarks.measuring.step_lines import step, tell
from benchmarks.measuring.stream import SEED as SEED
from benchmarks.measuring.with_and_without import Piece, cost, having, pairs
from benchmarks.spark.stages import routed_stream
from evenflow.settings import Settings
from evenflow.telemetry import Stage
from evenflow.twostep import Tally
from monitoring.instruments.spark import SparkInstruments
from spark_consumers.cluster.executors import ExecutorState
from spark_consumers.reports.listener import Telemetry
from spark_consumers.reports.log_lines import LogLines
from spark_consumers.session import end_session, make_session
from spark_consumers.sinks import sink_of
from spark_consumers.sinks.base import Start
from spark_consumers.sinks.topic import topic_options
from spark_consumers.stage import stage_frame
from spark_consumers.stage_output import checked, into_kafka
from spark_consumers.tasks import OnTally
from spark_consumers.workers.tallies import Tallies
from topics.admin import describe, ensure_topics, pipeline_topics

ID = "service-metrics-spark"
WHAT = "tuples/s of the Spark application's stages with metrics against the same without (goal: 0.98)"

_STAGES: tuple[Stage, ...] = ("fused", "combine", "reduce")
_LOOK_SECONDS = 0.25
_FRAMES = 80
"""Most frames of a micro-batch. They hold half a million tuples, about a second of work."""
_SPARE = "bench.partials"
"""The topic that measured combiners write to. The partials that reducers read are written only once,
before.
"""


def run(*, smoke: bool) -> dict[str, object]:
    """The ratios of each stage."""
    tuples, measured, warm_up = (50_000, 1, 0) if smoke else (2_000_000, 20, 2)
    stream = routed_stream(
        "bench-metrics",
        tuples=tuples,
        zipf=1.4,
        window="10s",
        wiring="split",
        max_frames_per_batch=_FRAMES,
    )
    with stream as (settings, folder, meter):
        specs = pipeline_topics(settings)
        spare = replace(specs["partials"], name=_SPARE)
        ensure_topics(settings.kafka, [*specs.values(), spare])
        spark = make_session(settings)
        try:
            with step("writing the partials"):
                _Streams(spark, settings, "combine", folder, meter, tuples).drain(settings.topic("partials"))
            streams = {stage: _Streams(spark, settings, stage, folder, meter, tuples) for stage in _STAGES}
            return {"tuples": tuples} | {
                stage: each.cost(measured, warm_up) for stage, each in streams.items()
            }
        finally:
            end_session(spark)


class _ClockedTelemetry(Telemetry):
    """A listener that knows how much of its thread's CPU time it has taken in Python."""

    spent = 0.0

    def _finished(self, text: str) -> None:
        began = time.thread_time()
        super()._finished(text)
        self.spent += time.thread_time() - began


@dataclass
class _Streams:
    """One stage, which works off the whole topic as often as it is asked to."""

    spark: SparkSession
    """Session in which the streams run, one after the other."""
    settings: Settings
    """Settings of the query."""
    stage: Stage
    """"combine", "reduce" or "fused"."""
    folder: Path
    """Folder in which the streams keep their checkpoints."""
    meter: CpuMeter
    """Counts the CPU seconds of Spark and its Python."""
    tuples: int
    """Tuples of the whole topic."""
    listened: float = 0.0
    """CPU seconds that the listener has taken in Python, by its thread's own clock."""

    def cost(self, measured: int, warm_up: int) -> dict[str, object]:
        """The cost of metrics over `measured` pairs, after `warm_up` pairs that do not count."""
        numbers = range(2 * (measured + warm_up))
        with scraper(self._instruments) as scrapes, step(f"{self.stage}, {len(numbers)} streams"):
            pieces = [self._piece(having(number), scrapes) for number in numbers]
        cpu_with_metrics = sum(piece.cpu * piece.tuples for piece in pieces if piece.having)
        figures = cost(pairs(pieces, warm_up=warm_up)) | {
            "listener_share_of_cpu": round(self.listened / cpu_with_metrics, 4)
        }
        tell(self.stage, figures)
        return figures

    def drain(self, into: str) -> None:
        """Work off the whole topic once. A combiner writes to the topic `into`."""
        with self._started(None, into) as query:
            query.awaitTermination()

    @cached_property
    def _instruments(self) -> SparkInstruments:
        return SparkInstruments(self.settings)

    @cached_property
    def _topic_id(self) -> str:
        topic = self.settings.topic("routed")
        return describe(self.settings.kafka, [topic])[topic].topic_id

    def _piece(self, has: bool, scrapes: Scraper) -> Piece:
        """Work off the topic once, with metrics or without.

        What an application makes once in its life is made before the measured time, and ended after it.
        """
        if not has:
            return self._measured(None, lambda: None)
        tally = self.spark.sparkContext.accumulator(Tally(), Tallies())
        standing = ExecutorState(slots=self.spark.sparkContext.defaultParallelism)
        talk = LogLines(self.settings, lambda: None)
        telemetry = _ClockedTelemetry(
            self.settings, (self.stage,), tally, talk, lambda: standing, (self._instruments,)
        )
        # `Any`: a Telemetry is a listener for the JVM, but pyspark's types want a listener of its own class.
        listeners: Any = self.spark.streams
        listeners.addListener(telemetry)

        def look() -> None:
            telemetry.look({self.stage: lambda: True})
            scrapes.worked(_LOOK_SECONDS)

        try:
            return self._measured(tally.add, look)
        finally:
            listeners.removeListener(telemetry)
            telemetry.close()
            self.listened += telemetry.spent

    def _measured(self, callback: OnTally | None, look: Callable[[], None]) -> Piece:
        began = self.meter.now()
        with self._started(callback, _SPARE) as query:
            while not query.awaitTermination(_LOOK_SECONDS):  # type: ignore[arg-type]  # it takes parts of a second too
                look()
            used = self.meter.between(began, self.meter.now())
            return Piece(callback is not None, self.tuples, _seconds(query), used)

    @contextmanager
    def _started(self, callback: OnTally | None, into: str) -> Iterator[StreamingQuery]:
        spark, settings, stage = self.spark, self.settings, self.stage
        frame = stage_frame(spark, settings, stage, self._topic_id, starting="earliest", on_tally=callback)
        with tempfile.TemporaryDirectory(dir=self.folder) as checkpoint:
            writer: Any = frame.writeStream.queryName(f"{settings.query.name} {stage}").outputMode("append")
            writer = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
            if stage == "combine":
                write = into_kafka(topic_options(settings, into))
            else:
                write = sink_of(settings).writer(settings, Start(spark=spark, run="bench", epoch=1))
            writer = writer.foreachBatch(checked(write, lambda: None))
            # The checkpoint must outlive the stream, so the caller waits for its end within the block of
            # `with`.
            yield writer.start()


def _seconds(query: StreamingQuery) -> float:
    """Seconds of the stream's micro-batches with rows. So few micro-batches run that Spark remembers all
    of them.
    """
    batches = [batch for batch in query.recentProgress if batch["numInputRows"]]
    return sum(batch["durationMs"]["triggerExecution"] for batch in batches) / 1000
