"""One streaming query with its checkpoint: admitted, started, ended between two micro-batches."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, cast

from pyspark import Accumulator
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.streaming import StreamingQuery

from evenflow.errors import EvenflowError, ServiceError
from evenflow.grammar.spark_types import spark_types
from evenflow.settings import Settings
from evenflow.telemetry import Stage
from evenflow.twostep import Tally
from spark_consumers import combiner, reduce_tasks, reducer
from spark_consumers.admission import Admission, read_by
from spark_consumers.checkpoints.epoch import StageEpoch
from spark_consumers.checkpoints.folders import Folder
from spark_consumers.checkpoints.notes import (
    Checkpoint,
    stage_location,
)
from spark_consumers.checkpoints.relocation import correct_paths
from spark_consumers.checkpoints.run_folder import make_run
from spark_consumers.checkpoints.run_watch import RunWatch
from spark_consumers.checkpoints.runs import newest_epoch
from spark_consumers.checkpoints.storage import storage_errors
from spark_consumers.end_of_stream import EndOfTopic, check_complete, reads_on
from spark_consumers.labels import bucket_labels
from spark_consumers.layout import Layout
from spark_consumers.reports.batch_limits import BatchLimits, say_limits
from spark_consumers.reports.failures import python_too_slow, translated
from spark_consumers.reports.log_lines import say_where_it_begins
from spark_consumers.sinks import sink_of
from spark_consumers.sinks.base import Start
from spark_consumers.sinks.topic import topic_options
from spark_consumers.sources import records
from spark_consumers.stage_output import Write, checked, into_kafka
from spark_consumers.tasks import OnTally
from topics.state import TopicState

_LOG = logging.getLogger("evenflow.spark")
_GRACE_SECONDS = 20
_STEP_SECONDS = 1
_STARTS = 12  # of a query whose Python process is slow to start: for two to three minutes


class RunningStage:
    """One streaming query with its checkpoint. It runs as soon as it is made.

    name: the stage. topics: role -> state of each topic that the stage reads or writes. tally: the
    accumulator to which the Python workers add what they have done. Raises an EvenflowError when the start is
    refused.
    """

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        name: Stage,
        topics: Mapping[str, TopicState],
        *,
        tally: Accumulator[Tally],
    ) -> None:
        self._spark = spark
        self._settings = settings
        self.name = name
        view = settings.query.view_name
        self._label = name if view is None else f"{name} of view {view}"
        role = read_by(name)
        folder = Folder(spark, stage_location(settings, name))
        admission = Admission(spark, settings, name, topics)
        # What is refused must be refused before the epoch is taken: it must not end a driver that is at work.
        admission.look(lambda: Checkpoint.newest(spark, settings, name))
        self._epoch = StageEpoch(settings, name, above=newest_epoch(folder.names()))
        run = make_run(folder, self._epoch.number, self._epoch.check)
        self._checkpoint = Checkpoint(spark=spark, settings=settings, stage=name, within=run)
        begun = self._checkpoint.planned
        try:
            starting = admission.admit(self._checkpoint)
        except EvenflowError:
            # To a driver that was fenced meanwhile, the results of the newer one look like those of a
            # stranger.
            self._epoch.check()
            raise
        correct_paths(spark, self._checkpoint.location)
        # Between the note and the sink's own marker: a driver that is fenced here has left nothing outside of
        # its run.
        self._epoch.check()
        self._end = EndOfTopic(settings, role)
        self._tally = tally
        self._watch = RunWatch(folder, self._epoch, self._checkpoint)
        frame = stage_frame(
            spark, settings, name, topics["routed"].topic_id, starting=starting, on_tally=tally.add
        )
        self._starts, self._frame = 0, frame
        self.query: StreamingQuery = self._start()
        writes = settings.topic("partials") if name == "combine" else sink_of(settings).place(settings)
        say_where_it_begins(settings, name, reads=role, writes=writes, before=begun)
        say_limits(
            settings, name, BatchLimits.of(settings, name, cores=spark.sparkContext.defaultParallelism)
        )

    def _start(self) -> StreamingQuery:
        """Start the query from its checkpoint."""
        self._starts += 1
        pool = f"{self._settings.query.name} {self.name}"
        writer: Any = (
            self._frame.writeStream.queryName(pool)
            .outputMode("append")
            .option("checkpointLocation", self._checkpoint.location)
            .trigger(processingTime=f"{self._settings.spark.batch_interval} milliseconds")
        )
        # Each query has a pool of its own: within one pool, a job would wait for all jobs that came earlier.
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)
        with storage_errors(self._checkpoint.location):
            query: StreamingQuery = writer.foreachBatch(checked(self._write(), self._epoch.check)).start()
        return query

    def _write(self) -> Write:
        """What writes the rows of each micro-batch."""
        settings = self._settings
        if self.name == "combine":
            return into_kafka(topic_options(settings, settings.topic("partials")))
        run = self._checkpoint.run
        assert run is not None  # `admit` has written it
        start = Start(spark=self._spark, run=run, epoch=self._epoch.number)
        return sink_of(settings).writer(settings, start)

    @property
    def failed(self) -> bool:
        """Whether the query stopped by itself, and `look` will not start it again."""
        return not self.query.isActive and not self._too_slow()

    def _too_slow(self) -> bool:
        """Whether the query ended because a Python process did not start in time, and may be started
        again.
        """
        if self.query.isActive or self._starts >= _STARTS:
            return False
        return python_too_slow(str(self.query.exception()))

    def runs(self) -> bool:
        """Whether a micro-batch is under way."""
        status = self.query.status
        return bool(status["isTriggerActive"] and status["isDataAvailable"])

    def over(self) -> bool:
        """Whether the stage has committed the whole input, up to the end of every lane.

        Raises DataLossError if what it has read is not what the topic holds.
        """
        committed = self._checkpoint.committed()
        if not self._end.reached_by(committed):
            return False
        tally = self._tally.value
        if reads_on(tally, committed, stage=self.name):
            return False
        check_complete(self._settings, tally, committed, stage=self.name)
        return True

    def look(self) -> None:
        """Every few seconds: notice that another driver has taken over, and remove what older runs have left.

        A driver without new input would not notice it otherwise. A query that ended because the machine was
        too busy to start a Python process is started again. Raises FencedError.
        """
        self._watch.look()
        if self._starts > 1 and self.query.isActive and self.query.lastProgress is not None:
            self._starts = 1  # it works again: only failures in a row count
        if self._too_slow():
            _LOG.warning(
                "%s: Spark waits 10 s for a Python process to start, and it took longer: the machine is too"
                " busy. The query starts again (start %d of %d)",
                self._label,
                self._starts + 1,
                _STARTS,
            )
            self.query = self._start()

    def finish(self, *, in_vain: Callable[[], bool]) -> None:
        """Let the running micro-batch end, then end the query.

        in_vain: whether the micro-batch cannot end. Then it is interrupted, and repeated after the next
        start.
        """
        if self.query.isActive:
            _end_after_this_batch(self._spark, self.query, in_vain)

    def raise_failure(self, *, ask: bool = True) -> None:
        """Raise what stopped the query, if anything did.

        ask: whether to ask Kafka for a newer driver. Raises FencedError if another driver has taken over: it
        explains whatever went wrong here.
        """
        error = self.query.exception()
        if error is None:
            return
        if ask:
            with suppress(ServiceError):
                self._epoch.check()
        java: Any = self._spark._jvm
        # pyspark's exception leaves most causes out. Spark's full trace has them.
        trace = str(java.org.apache.spark.util.Utils.exceptionString(self.query._jsq.exception().get()))
        folder = self._settings.spark.checkpoint_folder
        raise translated(self._label, str(error), trace=trace, folder=folder) from None


def stage_frame(
    spark: SparkSession,
    settings: Settings,
    stage: Stage,
    topic_id: str,
    *,
    starting: str,
    on_tally: OnTally | None,
) -> DataFrame:
    """The rows that the stage is to write: blobs for `combine`, the sink's columns for `reduce` and `fused`.

    topic_id: of the routed topic. starting: Spark's `startingOffsets`. on_tally: is handed the tally of each
    task, None if nobody listens.
    """
    layout = Layout.from_settings(settings, topic_id)
    if stage == "reduce":
        labels = ", ".join(str(label) for label in bucket_labels(settings.bucket_count))
        # A partition of the partials topic is a bucket, so the label is looked up by the partition's number.
        source = records(spark, settings, settings.topic("partials"), starting=starting)
        blobs = source.selectExpr(f"array({labels})[partition] AS label", "value AS blob")
        return _reduced(blobs, settings, layout, on_tally)
    source = records(spark, settings, settings.topic("routed"), starting=starting)
    blobs = combiner.combined(
        source,
        layout,
        tasks=settings.combine_tasks(spark.sparkContext.defaultParallelism),
        on_tally=on_tally,
        wait_us=settings.spark.combine_wait,
        measured=settings.partitioner.speeds == "measured",
    )
    if stage == "combine":
        return blobs.select(
            col("bucket").alias("partition"), col("identity").alias("key"), col("blob").alias("value")
        )
    if layout.reduce_tasks is not None:
        blobs = reduce_tasks.pieces(blobs, layout, on_tally=on_tally)
    return _reduced(blobs.select("label", "blob"), settings, layout, on_tally)


def _reduced(blobs: DataFrame, settings: Settings, layout: Layout, on_tally: OnTally | None) -> DataFrame:
    sink = sink_of(settings)
    schema = spark_types(sink.schema(settings))
    return reducer.reduced(blobs, layout, schema=schema, shape=sink.shaper(settings), on_tally=on_tally)


def _end_after_this_batch(spark: SparkSession, query: StreamingQuery, in_vain: Callable[[], bool]) -> None:
    """End the query's loop without the interrupt that `query.stop()` sends into a running micro-batch.

    Spark's loop checks its state before every micro-batch. `stop()` sets this state and interrupts. This
    function only sets the state. A later Spark without that field gets the ordinary stop: the micro-batch is
    then repeated after the next start, and results stay exact.
    """
    try:
        # PySpark declares that there may be no JVM. A running query has one.
        terminated = getattr(
            getattr(cast(Any, spark._jvm).org.apache.spark.sql.execution.streaming, "TERMINATED$"), "MODULE$"
        )
        query._jsq.streamingQuery().state().set(terminated)
        if not query.status["isTriggerActive"]:
            query.stop()  # the loop sleeps until its next trigger, so the interrupt hits no micro-batch
        waited = 0
        while not query.awaitTermination(_STEP_SECONDS):
            waited += _STEP_SECONDS
            if in_vain():
                raise TimeoutError("the micro-batch cannot end without Kafka")
            if waited >= _GRACE_SECONDS:
                raise TimeoutError(f"the micro-batch has not ended within {_GRACE_SECONDS} s")
    except PySparkException:
        return  # the query failed meanwhile: raise_failure reports it
    except Exception as error:  # private parts of Spark were used: whatever fails there, the query must end
        _LOG.warning("stopping within a micro-batch, which will be repeated: %s", error)
        try:
            query.stop()
        except Exception as unheard:  # Py4J's own class of errors, or Spark's: the process ends anyway
            _LOG.warning(
                "the micro-batch hears no interrupt, and ends with the process: %s", _first_line(unheard)
            )


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
