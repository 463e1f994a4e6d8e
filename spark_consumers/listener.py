"""One JSON record per finished micro-batch to `<query>.telemetry`: for people and controllers, not for results."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaException
from pyspark import Accumulator, SparkContext

from evenflow.errors import EvenflowError
from evenflow.settings import Settings
from topics.clients import producer

_LOG = logging.getLogger("evenflow.spark")


class Telemetry:
    """Publishes what Spark says of each micro-batch. A lost record is logged: telemetry never stops a job.

    A listener for `spark.streams` without its usual base class, whose side of Spark is the costly one.
    unfit: result values that are null because they do not fit their type, added to by the Python workers.
    """

    def __init__(self, settings: Settings, unfit: Accumulator[int]) -> None:
        self.unfit = unfit
        self._unfit_before = 0
        self._topic = settings.topic("telemetry")
        self._interval = settings.spark.batch_interval
        self._producer = producer(settings.kafka)
        self._spark_side: Any = None

    @property
    def _jlistener(self) -> Any:
        """What Spark calls. pyspark's own asks the JVM for every field of every event, some 0.06 CPU seconds each time."""
        if self._spark_side is None:
            jvm: Any = SparkContext._jvm
            self._spark_side = jvm.PythonStreamingQueryListenerWrapper(_Events(self._publish))
        return self._spark_side

    def _publish(self, progress: str) -> None:
        """One record for this progress of a query (JSON), if the micro-batch had rows."""
        record = telemetry_record(json.loads(progress), self._interval)
        if record["rows"] == 0:
            return
        record["unfit"] = self._newly_unfit()
        try:
            self._producer.produce(self._topic, key=record["stage"], value=json.dumps(record))
            self._producer.poll(0)
        except (KafkaException, BufferError, EvenflowError) as error:
            _LOG.warning("telemetry of batch %s is lost: %s", record["batch"], error)

    def _newly_unfit(self) -> int:
        """Values since the last record that are null because they do not fit; the first ones are logged."""
        before, self._unfit_before = self._unfit_before, self.unfit.value
        if self._unfit_before and not before:
            _LOG.warning(
                "%d result values do not fit int64 and are null; declare the column as float64 in [query.types] under a "
                "new query name, or scale it down. Further ones are counted in telemetry (unfit)",
                self._unfit_before,
            )
        return self._unfit_before - before

    def close(self) -> None:
        """Deliver what is waiting, for at most five seconds."""
        self._producer.flush(5)


class _Events:
    """Spark's Java interface of a listener. Only progress is published; the application reports how a query ended."""

    def __init__(self, publish: Callable[[str], None]) -> None:
        self._publish = publish

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        self._publish(event.progress().json())

    def onQueryStarted(self, event: Any) -> None: ...  # noqa: N802

    def onQueryIdle(self, event: Any) -> None: ...  # noqa: N802

    def onQueryTerminated(self, event: Any) -> None: ...  # noqa: N802

    class Java:
        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


def telemetry_record(progress: dict[str, Any], interval: int) -> dict[str, Any]:
    """The record of one micro-batch. `load` is W: processing time over batch interval, null without interval."""
    durations = progress.get("durationMs", {})
    took = durations.get("triggerExecution", progress.get("batchDuration", 0))
    return {
        "source": "spark",
        "stage": str(progress.get("name") or "").rsplit(" ", 1)[-1],
        "batch": progress["batchId"],
        "time": progress["timestamp"],
        "rows": progress["numInputRows"],
        "duration_ms": took,
        "durations_ms": durations,
        "batch_interval_ms": interval,
        "load": took / interval if interval else None,
        "offsets": [source.get("endOffset") for source in progress.get("sources", [])],
    }
