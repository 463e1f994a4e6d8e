"""What Spark says of each micro-batch: a record in `<query>.telemetry`, and what the application says of its work."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaException
from pyspark import Accumulator, AccumulatorParam, SparkContext

from evenflow.errors import EvenflowError
from evenflow.settings import Settings
from evenflow.twostep import Tally
from spark_consumers.talk import Talk
from topics.clients import producer

_LOG = logging.getLogger("evenflow.spark")


class Tallies(AccumulatorParam[Tally]):
    """How Spark adds up what its Python workers tell."""

    def zero(self, value: Tally) -> Tally:
        """Nothing yet."""
        return Tally()

    def addInPlace(self, value1: Tally, value2: Tally) -> Tally:  # noqa: N802
        """Their sum; the later one's stands win."""
        return value1 + value2


class Telemetry:
    """Publishes what Spark says of each micro-batch. A lost record is logged: telemetry never stops a job.

    A listener for `spark.streams` without its usual base class, whose side of Spark is the costly one.
    tally: added to by the Python workers.
    """

    def __init__(self, settings: Settings, tally: Accumulator[Tally], talk: Talk) -> None:
        self.tally = tally
        self._talk = talk
        self._before = Tally()
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
        tally = self.tally.value
        record |= told_since(self._before, tally)
        self._warn_of_the_unfit(tally)
        self._before = tally
        self._talk.progress(record, tally)
        try:
            self._producer.produce(self._topic, key=record["stage"], value=json.dumps(record))
            self._producer.poll(0)
        except (KafkaException, BufferError, EvenflowError) as error:
            _LOG.warning("telemetry of batch %s is lost: %s", record["batch"], error)

    def _warn_of_the_unfit(self, tally: Tally) -> None:
        """Of the first values that are null because they do not fit."""
        if tally.unfit and not self._before.unfit:
            _LOG.warning(
                "%d result values do not fit int64 and are null; declare the column as float64 in [query.types] under a "
                "new query name, or scale it down. Further ones are counted in telemetry (unfit)",
                tally.unfit,
            )

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
    """The record of one micro-batch. `load` is W: processing time over batch interval, null without interval.

    backlog: frames (or blobs) that lay behind the micro-batch when it was planned.
    """
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
        "backlog": sum(_backlog(source) for source in progress.get("sources", [])),
    }


def _backlog(source: dict[str, Any]) -> int:
    ends, latest = source.get("endOffset") or {}, source.get("latestOffset") or {}
    return sum(
        max(0, end - ends.get(topic, {}).get(partition, end))
        for topic, partitions in latest.items()
        for partition, end in partitions.items()
    )


def told_since(before: Tally, now: Tally) -> dict[str, Any]:
    """What the workers told between two tallies, and where the windows stand (times in ms)."""
    stand = now.stand
    return {
        "tuples": now.tuples - before.tuples,
        "rows_out": now.rows - before.rows,
        "windows_closed": now.windows - before.windows,
        "unfit": now.unfit - before.unfit,
        "last_window_end": max(now.emitted.values(), default=None),
        "open_windows": None if stand is None else stand.windows,
        "next_window_end": None if stand is None else stand.next_end,
        "marks": None if stand is None else list(stand.marks),
    }
