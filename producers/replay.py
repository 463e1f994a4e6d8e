"""Sends a source to the input topic: each tuple when its profile says, then the end of the stream.

This order must hold: topic checked and not ended -> tuples -> flush without a failure -> one end-of-stream
marker per partition with the number of tuples delivered to it -> flush. Any failed delivery ends the replay
without markers. So consumers never take an incomplete stream for a complete one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from evenflow.errors import ConfigError, ServiceError
from evenflow.grammar import paths
from evenflow.reporting.words import moment
from evenflow.settings import Settings
from evenflow.settings.durations import format_duration
from evenflow.sources.event_time import render_times
from evenflow.sources.source import Batch, Source
from evenflow.wire.markers import EndOfStream
from producers.clock import Clock, SystemClock
from producers.delivery import Delivery
from producers.partitioning import PartitionBy, partitions_of
from producers.profiles import FullSpeed, Profile
from producers.records import ValuesAtAnyTime, values_of
from producers.registered import RegisteredValues
from producers.topic_end import refuse_ended
from producers.writers import Sending
from topics.admin import describe, ensure_topics, input_topic
from topics.state import TopicState

log = logging.getLogger(__name__)

_MOST_AT_ONCE = 20_000  # tuples in a chunk
_LONGEST_WAIT = 0.1  # s: so soon a stop or a failure is noticed
_SHORTEST_WAIT = 0.001
_TICK = 0.02
"""Seconds between two chunks of a paced replay. Each chunk costs something, however few tuples it holds."""
_LATEST = 253_402_300_799_999
"""End of the year 9999, in ms since 1970 UTC."""

Progress = Callable[[int, int | None], None]
"""Called with the number of tuples handed over so far and with their total (None: endless)."""


@dataclass(frozen=True, kw_only=True)
class ReplaySummary:
    """What a replay did."""

    tuples: int
    """Delivered tuples."""
    per_partition: tuple[int, ...]
    """Delivered tuples of each input partition."""
    failed: int
    """Tuples that were handed over but not delivered."""
    unsent: int | None
    """None: the source is endless."""
    seconds: float
    """Wall time from the start of sending to the end of the last flush."""
    ended: bool
    """Whether every partition got its end-of-stream marker."""
    interrupted: bool
    """Whether `stop` ended the replay before the source's end."""
    sending: Sending
    """How records were handed to Kafka's client."""

    @property
    def tuples_per_second(self) -> float:
        """Delivered tuples per second, from the start of sending to the end of the last flush."""
        return self.tuples / self.seconds if self.seconds > 0 else 0.0

    def as_json(self) -> dict[str, Any]:
        """The object that `evenflow replay --json` prints, but for its provenance."""
        return {
            "tuples": self.tuples,
            "partitions": len(self.per_partition),
            "seconds": round(self.seconds, 3),
            "tuples_per_second": round(self.tuples_per_second, 1),
            "failed": self.failed,
            "unsent": self.unsent,
            "per_partition": list(self.per_partition),
            "ended": self.ended,
            "interrupted": self.interrupted,
            "sending": self.sending,
        }


class DeliveryError(ServiceError):
    """Deliveries failed. The replay stopped there and wrote no end-of-stream marker, or not all of them."""

    def __init__(self, topic: str, summary: ReplaySummary, reasons: list[str]) -> None:
        unsent = "an endless rest" if summary.unsent is None else f"{summary.unsent:,}"
        super().__init__(
            f"replay into {topic} failed: {summary.tuples:,} tuples delivered, {summary.failed:,} failed, "
            f"{unsent} not sent\n  " + "\n  ".join(reasons),
            hint=(
                "no end of stream was written. Remove the cause, then replay the whole source into a new "
                "topic: this one holds a part of it"
            ),
        )
        self.summary = summary


def replay(
    settings: Settings,
    source: Source,
    *,
    profile: Profile | None = None,
    producer_id: str = "replay",
    partition_by: PartitionBy = "round-robin",
    limit: int | None = None,
    live: bool = False,
    end: bool = True,
    create_topic: bool = True,
    progress: Progress | None = None,
    stop: Callable[[], bool] | None = None,
    clock: Clock | None = None,
    sending: Sending = "arrays",
) -> ReplaySummary:
    """Write the source to the input topic. Returns what was delivered.

    profile: when tuples are due, by default at once. producer_id: name of this producer in its end-of-stream
    markers. limit: send only the first tuples. live: the event time of a tuple is the wall clock when it is
    sent. end: whether to write end-of-stream markers. stop: when it returns true, the replay stops, flushes
    and writes no marker. sending: how records are handed to Kafka's client; the summary says how they were.

    Raises DeliveryError if a delivery failed, IncompatibleStateError if the topic has ended, ConfigError if
    the source does not fit the query, and ServiceError without a broker. Each is raised within about
    kafka.request_timeout.
    """
    return Replay(
        settings,
        source,
        profile=profile or FullSpeed(),
        producer_id=producer_id,
        partition_by=partition_by,
        limit=limit,
        live=live,
        progress=progress or (lambda sent, total: None),
        stop=stop or (lambda: False),
        clock=clock or SystemClock(),
        sending=sending,
    ).run(end=end, create_topic=create_topic)


class Replay:
    """One replay. `run` may be called once. The arguments are those of the function `replay`."""

    def __init__(
        self,
        settings: Settings,
        source: Source,
        *,
        profile: Profile,
        producer_id: str,
        partition_by: PartitionBy,
        limit: int | None,
        live: bool,
        progress: Progress,
        stop: Callable[[], bool],
        clock: Clock,
        sending: Sending = "arrays",
    ) -> None:
        check_source(settings, source)
        if limit is not None and limit < 0:
            raise ConfigError(f"a limit of {limit} tuples is negative")
        # A wrong producer id must be noticed now, not after all tuples were sent.
        try:
            EndOfStream(producer=producer_id, tuples=0, producers=settings.input.producers)
        except Exception as error:
            raise ConfigError(str(error), hint="choose another --producer-id") from None
        self._settings, self._source, self._profile = settings, source, profile
        self._producer_id, self._by = producer_id, partition_by
        self._live, self._progress, self._stop, self._clock = live, progress, stop, clock
        self._sending = sending
        self._total = min((n for n in (source.rows, limit) if n is not None), default=None)
        self._registered = RegisteredValues(settings) if settings.input.registered else None
        self._sent = 0
        self._largest_time = 0
        self._warned = False
        self._due_so_far = 0.0
        self._start = 0.0
        self._next_tick = 0.0
        self._first_time: int | None = None

    def run(self, *, end: bool, create_topic: bool) -> ReplaySummary:
        """Check the topic, send the tuples, and end the stream. Raises what `replay` raises."""
        topic = self._topic(create_topic)
        refuse_ended(self._settings, topic, producer=self._producer_id)
        with closing(
            Delivery(self._settings.kafka, topic.name, topic.partitions, sending=self._sending)
        ) as delivery:
            return self._delivered(delivery, topic, end=end)

    def _delivered(self, delivery: Delivery, topic: TopicState, *, end: bool) -> ReplaySummary:
        self._start = self._clock.monotonic()
        try:
            self._send_all(delivery)
        finally:
            delivery.flush()
        interrupted = self._stop() and self._sent != self._total
        summary = self._summary(delivery, ended=False, interrupted=interrupted)
        if delivery.stopped:
            raise DeliveryError(topic.name, summary, delivery.reasons)
        if not end or interrupted:
            return summary
        self._end(delivery, summary)
        # Each partition got one marker, which is no tuple.
        return self._summary(delivery, ended=True, interrupted=False, markers=1)

    def _send_all(self, delivery: Delivery) -> None:
        for batch in self._limited():
            self._send_batch(delivery, batch)
            if delivery.stopped or self._stop():
                return

    def _topic(self, create: bool) -> TopicState:
        kafka, spec = self._settings.kafka, input_topic(self._settings)
        topic = describe(kafka, [spec.name]).get(spec.name)
        if topic is None and create:
            topic = ensure_topics(kafka, [spec])[spec.name]
        if topic is None:
            raise ServiceError(
                f"topic {spec.name} does not exist", hint="leave --no-create-topic out to create it"
            )
        if self._settings.input.partitions not in (None, topic.partitions):
            raise ConfigError(
                f"topic {topic.name} has {topic.partitions} partitions, "
                f"but input.partitions is set to {self._settings.input.partitions}",
                hint="take input.partitions out of the settings: the number is read from the topic",
            )
        written_over = topic.config.get("message.timestamp.type") == "LogAppendTime"
        if written_over and self._settings.query.time == "@timestamp":
            raise ConfigError(
                f"topic {topic.name} replaces record timestamps (LogAppendTime), "
                "but query.time is '@timestamp'",
                hint="set message.timestamp.type=CreateTime on the topic, or read the time from a column",
            )
        return topic

    def _limited(self) -> Iterator[Batch]:
        left = self._total
        for batch in self._source.batches():
            if left is not None:
                if left <= 0:
                    return
                batch = batch.slice(0, min(left, len(batch)))
                left -= len(batch)
            yield batch

    def _send_batch(self, delivery: Delivery, batch: Batch) -> None:
        if self._first_time is None:
            self._first_time = int(batch.times[0])
        due = self._profile.send_times(self._sent, batch.times, self._first_time)
        ready: _Records | _LiveRecords = (
            self._rendered_live(batch, self._sent, delivery)
            if self._live
            else self._rendered(batch, self._sent, delivery)
        )
        if due is not None:
            # Tuples leave in order: a tuple waits for the one before it.
            due = np.maximum(np.maximum.accumulate(due), self._due_so_far)
            self._due_so_far = float(due[-1])
        done = 0
        while done < len(batch) and not delivery.stopped and not self._stop():
            stop = self._wait_until_due(delivery, due, done, len(batch))
            if stop == done:
                continue
            chunk = ready[done:stop]
            count = delivery.send(chunk.values, chunk.keys, chunk.partitions, chunk.times)
            done += count
            self._sent += count
            self._progress(self._sent, self._total)

    def _wait_until_due(self, delivery: Delivery, due: np.ndarray | None, done: int, size: int) -> int:
        """Up to which row the batch is to be sent now.

        If nothing is due: waits a little and returns `done`.
        """
        most = min(done + _MOST_AT_ONCE, size)
        if due is None:
            return most
        elapsed = self._clock.monotonic() - self._start
        stop = int(np.searchsorted(due, elapsed, side="right"))
        if stop >= most:
            return most
        # At most one chunk per tick: sending each tuple as soon
        # as it is due would be a busy loop of small chunks.
        if stop > done and elapsed >= self._next_tick:
            self._next_tick = elapsed + _TICK
            return stop
        delivery.poll()
        pause = max(float(due[done]), self._next_tick) - elapsed
        self._clock.sleep(min(max(pause, _SHORTEST_WAIT), _LONGEST_WAIT))
        return done

    def _rendered_live(self, batch: Batch, first: int, delivery: Delivery) -> _LiveRecords:
        """As `_rendered`, but event times are those at which a part of the records is taken."""
        column, unit, form = self._source.time, self._source.time_unit, self._settings.input
        if column is not None and ValuesAtAnyTime.applies(batch.columns, form, time=column):
            around = ValuesAtAnyTime(batch.columns, form, time=column)

            def values(low: int, high: int, now: int) -> pa.Array:
                return around.at(low, high, render_times(np.array([now]), unit))
        else:

            def values(low: int, high: int, now: int) -> pa.Array:
                part = batch.slice(low, high).at(now, column=column, unit=unit)
                return self._values_of(part).cast(pa.large_binary())

        return _LiveRecords(
            values_at=values,
            keys=batch.keys.cast(pa.large_binary()),
            partitions=partitions_of(batch.keys, first, len(delivery.sent), self._by),
            time=self._time_of_sending,
        )

    def _time_of_sending(self) -> int:
        """The clock's time as an event time (ms), which is noted."""
        now = self._clock.wall_ms()
        self._largest_time = max(self._largest_time, now)
        return int(self._timestamps(np.array([now]), self._sent)[0])

    def _rendered(self, batch: Batch, first: int, delivery: Delivery) -> _Records:
        self._largest_time = max(self._largest_time, int(batch.times.max()))
        self._warn_of_the_future()
        return _Records(
            values=self._values_of(batch).cast(pa.large_binary()),
            keys=batch.keys.cast(pa.large_binary()),
            partitions=partitions_of(batch.keys, first, len(delivery.sent), self._by),
            times=self._timestamps(batch.times, first),
        )

    def _warn_of_the_future(self) -> None:
        """Say once that the partitioners will reject tuples that are too far ahead of the clock."""
        most = self._settings.query.max_ahead_of_clock
        now = self._clock.wall_ms()
        if self._warned or most is None or self._largest_time <= now + most:
            return
        self._warned = True
        log.warning(
            "tuples of %s are ahead of the clock by more than query.max_ahead_of_clock (%s), so partitioners"
            " reject them. For data with times of the future set it to 'off' before the query begins",
            moment(self._largest_time),
            format_duration(most),
        )

    def _values_of(self, batch: Batch) -> pa.Array:
        if self._registered is not None:
            return self._registered.values_of(batch.columns)
        return values_of(batch, self._settings.input, key=self._source.key)

    def _timestamps(self, times: np.ndarray, first: int) -> np.ndarray:
        """Event times (ms) as record timestamps.

        Raises ConfigError for a time before 1970 or after the year 9999. librdkafka takes the timestamp 0 for
        "now", so 0 becomes 1. If the query reads its event time from the record timestamp, that would change
        results. So 0 is refused then, too.
        """
        needs_zero = self._settings.query.time == "@timestamp"
        wrong = (times < (1 if needs_zero else 0)) | (times > _LATEST)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ConfigError(
                f"{self._source.name}: event time {int(times[row])} ms of tuple {first + row + 1} cannot be "
                f"a Kafka record timestamp ({'1' if needs_zero else '0'} to {_LATEST} ms since 1970 UTC)",
                hint="check --time-unit (s, ms, us, iso); events before 1970 are not supported",
            )
        return np.maximum(times, 1)

    def _end(self, delivery: Delivery, tuples: ReplaySummary) -> None:
        for partition, count in enumerate(tuples.per_partition):
            marker = EndOfStream(
                producer=self._producer_id, tuples=count, producers=self._settings.input.producers
            )
            delivery.send_marker(partition, marker.headers(), max(self._largest_time, 1))
        delivery.flush()
        if delivery.stopped:
            raise DeliveryError(
                delivery.topic, tuples, ["end-of-stream markers: " + ", ".join(delivery.reasons)]
            )

    def _summary(
        self, delivery: Delivery, *, ended: bool, interrupted: bool, markers: int = 0
    ) -> ReplaySummary:
        delivered = tuple(int(count) - markers for count in delivery.delivered())
        return ReplaySummary(
            tuples=sum(delivered),
            per_partition=delivered,
            failed=delivery.failed,
            unsent=None if self._total is None else self._total - self._sent,
            seconds=self._clock.monotonic() - self._start,
            ended=ended,
            interrupted=interrupted,
            sending=delivery.sending,
        )


@dataclass(frozen=True)
class _Records:
    """Tuples as `Delivery.send` takes them."""

    values: pa.LargeBinaryArray
    """Value of each record, as it is sent."""
    keys: pa.LargeBinaryArray
    """Key of each record. Null: a record without a key."""
    partitions: np.ndarray
    """The input partition of each record, int32, shape (n,)."""
    times: np.ndarray
    """Event time of each record in ms since 1970, int64, shape (n,)."""

    def __getitem__(self, part: slice) -> _Records:
        return _Records(self.values[part], self.keys[part], self.partitions[part], self.times[part])


@dataclass(frozen=True)
class _LiveRecords:
    """Tuples that get their event time when a part of them is taken."""

    values_at: Callable[[int, int, int], pa.LargeBinaryArray]
    """Called with the first tuple, the one behind the last, and the event time (ms) of all: their values."""
    keys: pa.LargeBinaryArray
    """Key of each record. Null: a record without a key."""
    partitions: np.ndarray
    """The input partition of each record, int32, shape (n,)."""
    time: Callable[[], int]
    """The event time of what is taken now, ms since 1970."""

    def __getitem__(self, part: slice) -> _Records:
        low, high, _ = part.indices(len(self.partitions))
        now = self.time()
        return _Records(
            self.values_at(low, high, now),
            self.keys[part],
            self.partitions[part],
            np.full(high - low, now, np.int64),
        )


def check_source(settings: Settings, source: Source) -> None:
    """Raise ConfigError if the source's records lack a column that the query reads,
    or if the time units differ.
    """
    form, query = settings.input, settings.query
    sends = form.columns if form.format == "csv" else source.column_names
    if form.format == "text":
        return
    missing = [name for name in settings.needed_columns if name not in sends]
    if form.format != "csv":  # a path such as a.b needs only the column a, which holds the field
        missing = [name for name in missing if paths.segments(name)[0] not in sends]
    cost = settings.cost
    if cost is not None and form.format != "csv":  # of csv, the settings are checked against input.columns
        missing += [name for name in cost.of_record if paths.segments(name)[0] not in sends]
    if missing:
        raise ConfigError(
            f"the query reads {', '.join(map(repr, missing))}, which records of {source.name} do not carry",
            hint=(
                f"they carry {', '.join(sends)}: change query.key, query.time, the aggregates,"
                " partitioner.cost or --columns"
            ),
        )
    if query.time == source.time and query.time_unit != source.time_unit:
        raise ConfigError(
            f"{source.time!r} of {source.name} is in {source.time_unit}, "
            f"but query.time_unit is {query.time_unit}",
            hint=f"set query.time_unit = '{source.time_unit}'",
        )
