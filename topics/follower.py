"""Following a topic of one partition: the records from some offset on, then each new record."""

from __future__ import annotations

from typing import Literal, cast

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from evenflow.errors import ServiceError
from evenflow.settings import Settings
from evenflow.settings.views import TopicRole
from topics.admin import describe
from topics.clients import consumer, seconds, service_error
from topics.offsets import stable_ends
from topics.records import Record

_BATCH = 100
_STEP_SECONDS = 0.5
_PASSING = frozenset({KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT})
_TRIMMED = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})


class Follower:
    """A reader of a topic with one partition.

    It commits nothing, so every follower begins where it is told to.
    """

    def __init__(
        self,
        settings: Settings,
        role: TopicRole,
        *,
        newest: int | None = None,
        isolation: Literal["read_committed", "read_uncommitted"] = "read_committed",
    ) -> None:
        """role: role of the topic.

        newest: begin at most so many offsets before the end, None at the beginning.

        Raises ServiceError if the broker does not answer or the topic does not exist.
        """
        self._kafka = settings.kafka
        self.topic = settings.topic(role)
        state = describe(settings.kafka, [self.topic]).get(self.topic)
        if state is None:
            raise ServiceError(
                f"topic {self.topic} does not exist",
                hint="`evenflow partition` makes it; see `evenflow doctor`",
            )
        self.state = state
        committed = isolation == "read_committed"
        self.end = stable_ends(settings.kafka, state)[0] if committed else state.end[0]
        """Offset behind the records that were there when the follower was made."""
        self._position = state.begin[0] if newest is None else max(state.begin[0], self.end - newest)
        self._reader = consumer(
            settings.kafka,
            group=f"{settings.query.name}.{role}-reader",
            isolation_level=isolation,
            enable_partition_eof=True,
        )
        self._seek(self._position)

    def all_so_far(self) -> list[Record]:
        """Every record that was there when the follower was made.

        Raises ServiceError if the broker does not hand them over within `kafka.request_timeout`.
        """
        records: list[Record] = []
        tries = 0
        # Counted by position, not by record: the last offsets may be markers of transactions, which are no
        # records.
        while self._position < self.end:
            before = self._position
            records += self.new(_STEP_SECONDS)
            tries = 0 if self._position > before else tries + 1
            if tries * _STEP_SECONDS > seconds(self._kafka):
                raise ServiceError(f"reading {self.topic} makes no progress at offset {self._position}")
        return records

    def new(self, timeout: float = 0.0) -> list[Record]:
        """Records that were written since the last call, waiting for at most `timeout` s for the first."""
        try:
            messages = cast(list[Record], self._reader.consume(_BATCH, timeout=timeout))
        except KafkaException as error:
            raise service_error(error, self._kafka, f"reading {self.topic}") from None
        return [message for message in messages if self._took(message)]

    def log_end(self) -> int:
        """Offset behind the last record that is written now.

        Raises ServiceError if the broker does not say.
        """
        try:
            ends = self._reader.get_watermark_offsets(
                TopicPartition(self.topic, 0), timeout=seconds(self._kafka)
            )
        except KafkaException as error:
            raise service_error(error, self._kafka, f"asking for the end of {self.topic}") from None
        return int(ends[1])

    def close(self) -> None:
        """Close the connection to the broker."""
        self._reader.close()

    def _took(self, message: Record) -> bool:
        """Whether this message is a record. The position moves with events, too."""
        error = message.error()
        if error is None:
            self._position = offset_of(message) + 1
        elif error.code() == KafkaError._PARTITION_EOF:
            # The end lies behind markers of transactions, so it can be further than the last record.
            self._position = max(self._position, offset_of(message))
        elif error.code() in _TRIMMED:
            self._seek(self._oldest())
        elif not error.retriable() and error.code() not in _PASSING:
            raise service_error(error, self._kafka, f"reading {self.topic}")
        return error is None

    def _oldest(self) -> int:
        """Offset at which the log begins now.

        A reader that was away for long has missed the records before it.
        """
        state = describe(self._kafka, [self.topic]).get(self.topic)
        if state is None:
            raise ServiceError(f"topic {self.topic} was deleted while it was read")
        return state.begin[0]

    def _seek(self, offset: int) -> None:
        self._position = offset
        self._reader.assign([TopicPartition(self.topic, 0, offset)])


def offset_of(message: Record) -> int:
    """The offset of a record, or of the end of a log. Both always have an offset."""
    offset = message.offset()
    assert offset is not None
    return offset
