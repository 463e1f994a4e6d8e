"""One JSON record per finished micro-batch to `<query>.telemetry`: for people and controllers, not for results."""

from __future__ import annotations

import json
import logging
from typing import Any

from confluent_kafka import KafkaException
from pyspark.sql.streaming import StreamingQueryListener

from evenflow.errors import EvenflowError
from evenflow.settings import Settings
from topics.clients import producer

_LOG = logging.getLogger("evenflow.spark")


class Telemetry(StreamingQueryListener):
    """Publishes what Spark says of each micro-batch. A lost record is logged: telemetry never stops a job."""

    def __init__(self, settings: Settings) -> None:
        self._topic = settings.topic("telemetry")
        self._interval = settings.spark.batch_interval
        self._producer = producer(settings.kafka)

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Nothing to publish."""

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Nothing to publish."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Nothing to publish; the application reports how a query ended."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """One record per micro-batch that had rows."""
        record = telemetry_record(json.loads(event.progress.json), self._interval)
        if record["rows"] == 0:
            return
        try:
            self._producer.produce(self._topic, key=record["stage"], value=json.dumps(record))
            self._producer.poll(0)
        except (KafkaException, BufferError, EvenflowError) as error:
            _LOG.warning("telemetry of batch %s is lost: %s", record["batch"], error)

    def close(self) -> None:
        """Deliver what is waiting, for at most five seconds."""
        self._producer.flush(5)


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
