"""What the Spark stages say of themselves in `<query>.telemetry`, and to who speaks for the application."""

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
from evenflow.telemetry import BatchRecord, HeartbeatRecord, Record, Stage
from evenflow.twostep import Tally
from evenflow.windows import END_MARK
from spark_consumers.executors import Standing
from spark_consumers.micro_batches import batch_record, query_of, stage_of
from spark_consumers.pulse import Beat, Pulse
from spark_consumers.talk import Talk
from topics.clients import producer

_LOG = logging.getLogger("evenflow.spark")
_IDLE_SECONDS = 60.0


class Onlooker(Protocol):
    """Is told what the stages tell, from several threads."""

    def batch(self, record: BatchRecord) -> None:
        """A micro-batch that had rows has ended."""
        ...

    def heartbeat(self, record: HeartbeatRecord) -> None:
        """A stage lives and has finished none for a while."""
        ...


class Telemetry:
    """Publishes a record of each micro-batch that had rows, and heartbeats of stages that finish none.

    One for the query and one for each view. A lost record is logged: telemetry never stops a job. A listener for
    `spark.streams` without its usual base class, whose side of Spark is the costly one. tally: added to by the Python
    workers. standing: of the application.
    """

    def __init__(
        self,
        settings: Settings,
        stages: Iterable[Stage],
        tally: Accumulator[Tally],
        talk: Talk,
        standing: Callable[[], Standing],
        onlookers: Sequence[Onlooker] = (),
    ) -> None:
        self.tally = tally
        self._onlookers = onlookers
        self._settings = settings
        self._talk = talk
        self._standing = standing
        self._before = dict.fromkeys(stages, Tally())
        self._pulses = {stage: Pulse(settings.spark.batch_interval) for stage in self._before}
        self._topic = settings.topic("telemetry")
        self._producer = producer(settings.kafka)
        self._spark_side: Any = None

    @property
    def _jlistener(self) -> Any:
        """What Spark calls. pyspark's own asks the JVM for every field of every event, some 0.06 CPU seconds each time."""
        if self._spark_side is None:
            jvm: Any = SparkContext._jvm
            self._spark_side = jvm.PythonStreamingQueryListenerWrapper(_Events(self._finished))
        return self._spark_side

    def _finished(self, text: str) -> None:
        """One record for this progress of a query (JSON), if the micro-batch had rows."""
        progress = json.loads(text)
        if progress["numInputRows"] == 0 or query_of(progress) != self._settings.query.name:
            return
        stage, now = stage_of(progress), self.tally.value
        self._pulses[stage].finished(progress["batchId"])
        before, self._before[stage] = self._before[stage], now
        self._warn_of_the_unfit(before, now)
        try:
            record = batch_record(progress, self._settings, before=before, now=now, standing=self._standing())
        except ValueError as error:
            _LOG.warning("telemetry of micro-batch %s of %s is lost: %s", progress["batchId"], stage, error)
            return
        self._talk.progress(record, now)
        self._publish(stage, record)
        self._look_on(lambda onlooker: onlooker.batch(record))

    def look(self, running: Mapping[Stage, Callable[[], bool]]) -> None:
        """Publish the heartbeats that are due. running: by stage, whether a micro-batch is under way."""
        for stage, runs in running.items():
            beat = self._pulses[stage].due(runs)
            if beat is not None:
                self._beat(stage, self._heartbeat(stage, beat))

    def _beat(self, stage: Stage, record: HeartbeatRecord) -> None:
        self._publish(stage, record)
        self._look_on(lambda onlooker: onlooker.heartbeat(record))

    def _look_on(self, tell: Callable[[Onlooker], None]) -> None:
        """Whatever an onlooker does, the job goes on."""
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
        )

    def reached(self) -> int | None:
        """Event time (ms) up to which all is worked off. Nothing is left after a minute without input."""
        if all(pulse.idle_seconds >= _IDLE_SECONDS for pulse in self._pulses.values()):
            return END_MARK
        return self.tally.value.mark

    def _publish(self, stage: Stage, record: Record) -> None:
        try:
            self._producer.produce(self._topic, key=stage, value=record.encode())
            self._producer.poll(0)
        except (KafkaException, BufferError, EvenflowError) as error:
            _LOG.warning("a record of %s in %s is lost: %s", stage, self._topic, error)

    def _warn_of_the_unfit(self, before: Tally, now: Tally) -> None:
        """Of the first values that are null because they do not fit."""
        if now.unfit and not before.unfit:
            _LOG.warning(
                "%d result values do not fit int64 and are null; declare the column as float64 in [query.types] under a "
                "new query name, or scale it down. Further ones are counted in telemetry (unfit)",
                now.unfit,
            )

    def close(self) -> None:
        """Deliver what is waiting, for at most five seconds."""
        self._producer.flush(5)


class _Events:
    """Spark's Java interface of a listener. Only progress is published. The application reports how a query ended."""

    def __init__(self, publish: Callable[[str], None]) -> None:
        self._publish = publish

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        self._publish(event.progress().json())

    def onQueryStarted(self, event: Any) -> None: ...  # noqa: N802

    def onQueryIdle(self, event: Any) -> None: ...  # noqa: N802

    def onQueryTerminated(self, event: Any) -> None: ...  # noqa: N802

    class Java:
        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)
