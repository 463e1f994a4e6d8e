"""Streams of Kafka records: committed ones only, from the beginning, and never past a gap."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from evenflow.settings import Settings
from evenflow.settings.kafka import spark_options

_FETCH_BYTES = str(32 * 1024 * 1024)
_ANSWER_MS = 15_000
_TRIES = 40
"""A driver asks so often, a second apart, where topics end, before its query fails: for ten minutes."""


def records(spark: SparkSession, settings: Settings, topic: str, *, starting: str = "earliest") -> DataFrame:
    """Records of a topic as (partition, offset, value).

    starting: Spark's `startingOffsets`, which Spark uses only if there is no checkpoint.
    """
    reader = spark.readStream.format("kafka").options(**source_options(settings, topic, starting))
    return reader.load().select("partition", "offset", "value")


def source_options(settings: Settings, topic: str, starting: str) -> dict[str, str]:
    """Options of Spark's Kafka source. `kafka.extras.java` wins over ours."""
    ours = {
        "subscribe": topic,
        "startingOffsets": starting,
        "failOnDataLoss": "true",
        "maxOffsetsPerTrigger": str(settings.frames_per_batch),
        "fetchOffset.numRetries": str(_TRIES),
        "kafka.isolation.level": "read_committed",
        "kafka.max.partition.fetch.bytes": _FETCH_BYTES,
        "kafka.fetch.max.bytes": _FETCH_BYTES,
        "kafka.receive.buffer.bytes": "1048576",
        "kafka.max.poll.records": "500",
        "kafka.fetch.max.wait.ms": "5",  # a transaction marker at the end of a range costs one such wait
        "kafka.check.crcs": "true",
        **_answers(settings),
    }
    return ours | spark_options(settings.kafka)


def _answers(settings: Settings) -> dict[str, str]:
    """How long a request may take, and a call of the client with all its requests.

    Kafka's admin client asks a broker that has died until the call ends, after 60 s by default, although
    others lead its partitions by then. Spark's next try finds those. A call may not be shorter than a
    request, so who sets one of both in `kafka.extras.java` sets the other one, too.
    """
    names = ("request.timeout.ms", "default.api.timeout.ms")
    if any(name in settings.kafka.extras.java for name in names):
        return {}
    return {f"kafka.{name}": str(_ANSWER_MS) for name in names}
