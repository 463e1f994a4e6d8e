"""What the Spark stages report, to `<query>.telemetry` and to the code that logs and measures."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from confluent_kafka import KafkaException
from pyspark import Accumulator, SparkContext

from evenflow.errors import EvenflowError
from evenflow.settings import Settings
from evenflow.telemetry import LONGEST_WORDS, BatchRecord, HeartbeatRecord, Record, Stage
from evenflow.twostep import Tally
from evenflow.windows import END_MARK
from spark_consumers.cluster.executors import ExecutorState
from spark_consumers.reports.batch_limits import BatchLimits
from spark_consumers.reports.log_lines import LogLines
from spark_consumers.reports.micro_batches import batch_record, query_of, stage_of
from spark_consumers.reports.pulse import Beat, Pulse
from topics.clients import producer

_LOG = logging.getLogger("evenflow.spark")
_IDLE_SECONDS = 60.0  # without input for so long, nothing is left to work off


class ProgressObserver(Protocol):
    """Gets every record that the stages publish. Its methods are called from several threads."""

    def batch(self, record: BatchRecord) -> None:
        """A micro-batch that had rows has ended."""
        ...

    def heartbeat(self, record: HeartbeatRecord) -> None:
        """A stage lives, but has finished no micro-batch for a while."""
        ...


class Telemetry:
    """Publishes a record of each micro-batch that had rows, and heartbeats of stages that finish none.

    There is one for the query and one for each view. A lost record is logged: telemetry never stops a job.
    This is a listener for `spark.streams`, but without the usual base class, which is slow (see
    `_jlistener`). tally: the accumulator to which Python workers add. standing: of the application. limits:
    of the micro-batches of each stage.
    """

    def __init__(
        self,
        settings: Settings,
        stages: Iterable[Stage],
        tally: Accumulator[Tally],
        talk: LogLines,
        standing: Callable[[], ExecutorState],
        onlookers: Sequence[ProgressObserver] = (),
        *,
        limits: Mapping[Stage, BatchLimits] | None = None,
    ) -> None:
        self.tally = tally
        self._onlookers = onlookers
        self._settings = settings
        self._talk = talk
        self._standing = standing
        self._limits = limits or {}
        self._before = dict.fromkeys(stages, Tally())
        self._pulses = {stage: Pulse(settings.spark.batch_interval) for stage in self._before}
        self._topic = settings.topic("telemetry")
        self._producer = producer(settings.kafka)
        self._spark_side: Any = None
        self._over = False

    @property
    def _jlistener(self) -> Any:
        """The Java object that Spark calls.

        pyspark's own listener asks the JVM for every field of every event, which costs some 0.06 CPU seconds
        each time. This one asks only for the report as JSON.
        """
        if self._spark_side is None:
            jvm: Any = SparkContext._jvm
            self._spark_side = jvm.PythonStreamingQueryListenerWrapper(_Events(self._finished))
        return self._spark_side

    def _finished(self, text: str) -> None:
        """Publish a record of this progress report (JSON) if it is of this query and had rows."""
        progress = json.loads(text)
        if progress["numInputRows"] == 0 or query_of(progress) != self._settings.query.name:
            return
        stage, now = stage_of(progress), self.tally.value
        self._pulses[stage].finished(progress["batchId"])
        before, self._before[stage] = self._before[stage], now
        self._warn_of_the_unfit(before, now)
        try:
            record = batch_record(
                progress,
                self._settings,
                before=before,
                now=now,
                standing=self._standing(),
                limits=self._limits.get(stage, BatchLimits()),
                run=self._pulses[stage].run,
            )
        except ValueError as error:
            _LOG.warning("telemetry of micro-batch %s of %s is lost: %s", progress["batchId"], stage, error)
            return
        self._talk.progress(record, now)
        self._publish(stage, record)
        self._look_on(lambda onlooker: onlooker.batch(record))

    def look(self, running: Mapping[Stage, Callable[[], bool]]) -> None:
        """Publish the heartbeats that are due.

        running: stage -> function that says whether a micro-batch is running.
        """
        for stage, runs in running.items():
            beat = self._pulses[stage].due(runs)
            if beat is not None:
                self._beat(stage, self._heartbeat(stage, beat))

    def last_word(self, why: str) -> None:
        """Say that the application has ended by itself. Nothing is published afterwards."""
        if self._over:
            return
        for stage, pulse in self._pulses.items():
            last = self._heartbeat(stage, Beat(batch=pulse.last, running_ms=None))
            self._publish(stage, last.model_copy(update={"ended": why[:LONGEST_WORDS]}))
        self._over = True

    def _beat(self, stage: Stage, record: HeartbeatRecord) -> None:
        self._publish(stage, record)
        self._look_on(lambda onlooker: onlooker.heartbeat(record))

    def _look_on(self, tell: Callable[[ProgressObserver], None]) -> None:
        """Tell every onlooker.

        The job goes on even if an onlooker fails, which is why every exception is caught.
        """
        for onlooker in self._onlookers:
            try:
                tell(onlooker)
            except Exception:
                _LOG.exception("metrics miss a record")

    def _heartbeat(self, stage: Stage, beat: Beat) -> HeartbeatRecord:
        standing, settings = self._standing(), self._settings
        return HeartbeatRecord(
            query=settings.query.name,
            fingerprint=settings.fingerprint,
            time=int(time.time() * 1000),
            stage=stage,
            batch=beat.batch,
            running_ms=beat.running_ms,
            batch_interval_ms=settings.spark.batch_interval,
            slots=standing.slots,
            executors=standing.executors,
            epoch=standing.epoch,
            **self._limits.get(stage, BatchLimits())._asdict(),
            **self._pulses[stage].run._asdict(),
        )

    def reached(self) -> int | None:
        """Event time (ms) up to which all is worked off. None before the first micro-batch.

        After a minute without input nothing is left, so the answer is END_MARK.
        """
        if all(pulse.idle_seconds >= _IDLE_SECONDS for pulse in self._pulses.values()):
            return END_MARK
        return self.tally.value.mark

    def _publish(self, stage: Stage, record: Record) -> None:
        if self._over:
            return
        try:
            self._producer.produce(self._topic, key=stage, value=record.encode())
            self._producer.poll(0)  # serves delivery reports, which would fill the producer's queue otherwise
        except (KafkaException, BufferError, EvenflowError) as error:
            _LOG.warning("a record of %s in %s is lost: %s", stage, self._topic, error)

    def _warn_of_the_unfit(self, before: Tally, now: Tally) -> None:
        """Warn once, of the first values that are null because they do not fit their type."""
        if now.unfit and not before.unfit:
            _LOG.warning(
                "%d result values do not fit int64 or their room (docs/aggregates.md) and are null. Under a"
                " new query name declare the column of a sum as float64 in [query.types], or raise"
                " max_result_bytes or max_state_bytes. Further ones are counted in telemetry (unfit)",
                now.unfit,
            )

    def close(self, *, patience: float = 5.0) -> None:
        """Deliver the waiting records. patience: seconds that this takes at most."""
        self._producer.flush(patience)


class _Events:
    """Spark's Java interface of a listener.

    Only progress is published: the application itself notices a query's end.
    """

    def __init__(self, publish: Callable[[str], None]) -> None:
        self._publish = publish

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        self._publish(event.progress().json())

    def onQueryStarted(self, event: Any) -> None: ...  # noqa: N802

    def onQueryIdle(self, event: Any) -> None: ...  # noqa: N802

    def onQueryTerminated(self, event: Any) -> None: ...  # noqa: N802

    class Java:  # py4j reads this name: the Java interface that a Python object implements
        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)
