"""What the sinks that write to the results topic have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evenflow.errors import ConfigError, IncompatibleStateError, ServiceError
from evenflow.limits import MAX_RECORD_BYTES
from evenflow.settings import Settings
from evenflow.settings.kafka import spark_options
from spark_consumers.checkpoints.results_note import IF_LOST
from spark_consumers.sinks.base import Position, ResultSink, Start, StartFacts
from spark_consumers.stage_output import Write, into_kafka
from topics import reader
from topics.admin import ROLES, describe
from topics.records import Record

_PRODUCER = {
    "kafka.acks": "all",
    "kafka.enable.idempotence": "true",
    "kafka.max.request.size": str(MAX_RECORD_BYTES),
    "kafka.buffer.memory": str(2 * MAX_RECORD_BYTES),
    "kafka.compression.type": "lz4",
    "kafka.batch.size": "262144",
    "kafka.linger.ms": "5",
}


class TopicSink(ResultSink):
    """Writes records to the query's results topic, which has a partition per bucket."""

    topics = frozenset({"results"})

    def check(self, settings: Settings) -> None:
        """Raise ConfigError if the results would go to another topic of this query, such as its input."""
        super().check(settings)
        topic = settings.topic("results")
        for role in ROLES:
            if role != "results" and settings.topic(role) == topic:
                raise ConfigError(
                    f"results.topic is {topic}, the query's own {role} topic",
                    hint="give the results a topic of their own",
                )

    def place(self, settings: Settings) -> str:
        return f"{self.name} {settings.topic('results')}"

    def admit(self, settings: Settings, contents: StartFacts) -> None:
        """Refuse to start over in a topic that already holds results of this query.

        In the query's own topic, any record means that. A topic that the user names may hold rows of other
        queries. So there only the query's note counts, which says that the query has begun to write to this
        topic (`checkpoints/results_note.py`).
        """
        topic = settings.topic("results")
        own = topic == f"{settings.query.name}.results"
        if contents.planned is not None or not contents.written(topic) or not (own or contents.begun):
            return
        raise IncompatibleStateError(
            f"{topic} already holds results of query {settings.query.name}, but its checkpoint is not there"
            + (f" (it was {contents.begun})" if contents.begun else "")
            + ": a start from the beginning would emit what is left of the input once more",
            hint=(
                f"restore the checkpoint or set spark.checkpoint to where it is; {IF_LOST}; to begin anew"
                " give the query a new name, or set results.topic to a topic of its own"
                " (docs/operations/refusals.md)"
            ),
        )

    def writer(self, settings: Settings, start: Start) -> Write:
        return into_kafka(self.options(settings))

    def options(self, settings: Settings) -> dict[str, str]:
        """Options of Spark's writer to Kafka."""
        return topic_options(settings, settings.topic("results"))

    def position(self, settings: Settings) -> Position:
        return results_end(settings)

    def records(
        self, settings: Settings, after: Position | None, until: Position | None
    ) -> Iterator[list[Record]]:
        """The records of the topic between two positions, in offset order within each partition."""
        assert not isinstance(after, frozenset)
        assert not isinstance(until, frozenset)
        end = results_end(settings) if until is None else until
        return reader.read_range(settings.kafka, settings.topic("results"), begin=after, end=end)

    def begins(self, settings: Settings) -> Mapping[int, int]:
        topic = settings.topic("results")
        state = describe(settings.kafka, [topic]).get(topic)
        return {} if state is None else state.begin


def topic_options(settings: Settings, topic: str, **producer: str) -> dict[str, str]:
    """Options of Spark's format `kafka` that write a stream to this topic.

    producer: options of Kafka's producer, with `_` for each dot. They win over the usual ones.
    """
    ours = _PRODUCER | {f"kafka.{name.replace('_', '.')}": value for name, value in producer.items()}
    # The user's connection comes last. Settings refuse extras on which exactness rests.
    return {"topic": topic} | ours | spark_options(settings.kafka)


def results_end(settings: Settings) -> Mapping[int, int]:
    """End of each partition of the results topic as it is now (partition -> offset).

    Raises ServiceError if there is no such topic.
    """
    topic = settings.topic("results")
    state = describe(settings.kafka, [topic]).get(topic)
    if state is None:
        raise ServiceError(f"topic {topic} does not exist", hint="has the Spark job been started?")
    return state.end
