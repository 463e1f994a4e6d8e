"""JSON rows in a Kafka topic, keyed by key.

Idempotent, not transactional: a repeated micro-batch appends equal rows once more, and (window, key)
determines the value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from evenflow.aggregates import AggregatePlan
from evenflow.errors import ConfigError, IncompatibleStateError, ServiceError
from evenflow.settings import Settings
from evenflow.settings.kafka import spark_options
from evenflow.twostep import json_rows
from spark_consumers.sinks.base import JSON_RECORDS, Found, ResultSink
from topics import reader
from topics.admin import describe, pipeline_topics
from topics.clients import MAX_RECORD_BYTES

_PRODUCER = {
    "kafka.acks": "all",
    "kafka.enable.idempotence": "true",
    "kafka.max.request.size": str(MAX_RECORD_BYTES),
    "kafka.buffer.memory": str(2 * MAX_RECORD_BYTES),
    "kafka.compression.type": "lz4",
    "kafka.batch.size": "262144",
    "kafka.linger.ms": "5",
}
_ROWS = pa.schema([("key", pa.binary()), ("value", pa.string())])


class KafkaRows(ResultSink):
    """The raw key, and one JSON object a row."""

    name = "kafka"
    topics = frozenset({"results"})

    def check(self, settings: Settings) -> None:
        """Results that came back as input, or as anything else of this query, would be its ruin."""
        super().check(settings)
        topic = settings.topic("results")
        for role in pipeline_topics(settings):
            if role != "results" and settings.topic(role) == topic:
                raise ConfigError(
                    f"results.topic is {topic}, the query's own {role} topic",
                    hint="give the results a topic of their own",
                )

    def place(self, settings: Settings) -> str:
        return f"kafka {settings.topic('results')}"

    def admit(self, settings: Settings, found: Found) -> None:
        """Refuse to start over in a topic that holds what this query has emitted already.

        In the query's own topic every record counts; in a topic of the user's, which may hold rows of others, this
        query must have begun there before.
        """
        topic = settings.topic("results")
        own = topic == f"{settings.query.name}.results"
        if found.planned is not None or not found.written(topic) or not (own or found.begun):
            return
        raise IncompatibleStateError(
            f"{topic} already holds results of query {settings.query.name}, but its checkpoint is not there"
            + (f" (it was {found.begun})" if found.begun else "")
            + ": a start from the beginning would emit what is left of the input once more",
            hint="restore the checkpoint or set spark.checkpoint to where it is; to begin anew give the query a new "
            "name, or set results.topic to a topic of its own (docs/operations.md)",
        )

    def schema(self, plan: AggregatePlan) -> pa.Schema:
        return _ROWS

    def shape(self, table: pa.Table) -> pa.Table:
        return pa.table({"key": table["key"], "value": json_rows(table)})

    def writer(self, settings: Settings) -> tuple[str, dict[str, str]]:
        return topic_writer(settings, settings.topic("results"))

    def read_back(self, settings: Settings) -> pa.RecordBatchReader:
        topic = settings.topic("results")
        state = describe(settings.kafka, [topic]).get(topic)
        if state is None:
            raise ServiceError(f"topic {topic} does not exist", hint="has the Spark job been started?")
        return pa.RecordBatchReader.from_batches(JSON_RECORDS, _records(settings, topic, state.end))


def topic_writer(settings: Settings, topic: str) -> tuple[str, dict[str, str]]:
    """Format and options that write a stream to this topic."""
    return "kafka", {"topic": topic} | _PRODUCER | spark_options(settings.kafka)


def _records(settings: Settings, topic: str, end: Mapping[int, int]) -> Iterator[pa.RecordBatch]:
    blocks = reader.read_range(settings.kafka, topic, end=end)
    return reader.record_batches(
        blocks, JSON_RECORDS, lambda record: (record.partition(), record.offset(), record.value())
    )


SINK = KafkaRows()
