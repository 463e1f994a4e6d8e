"""Streams of Kafka records: committed ones only, from the beginning, and never past a gap."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from evenflow.settings import Settings
from evenflow.settings.kafka import spark_options

_FETCH_BYTES = str(32 * 1024 * 1024)


def records(spark: SparkSession, settings: Settings, topic: str, *, starting: str = "earliest") -> DataFrame:
    """Records of a topic as (partition, offset, value).

    starting: Spark's `startingOffsets`, which Spark uses only if there is no checkpoint.
    """
    ours = {
        "subscribe": topic,
        "startingOffsets": starting,
        "failOnDataLoss": "true",
        "maxOffsetsPerTrigger": str(settings.frames_per_batch),
        "fetchOffset.numRetries": "10",
        "kafka.isolation.level": "read_committed",
        "kafka.max.partition.fetch.bytes": _FETCH_BYTES,
        "kafka.fetch.max.bytes": _FETCH_BYTES,
        "kafka.receive.buffer.bytes": "1048576",
        "kafka.max.poll.records": "500",
        "kafka.fetch.max.wait.ms": "5",  # a transaction marker at the end of a range costs one such wait
        "kafka.check.crcs": "true",
    }
    reader = spark.readStream.format("kafka").options(**ours).options(**spark_options(settings.kafka))
    return reader.load().select("partition", "offset", "value")
