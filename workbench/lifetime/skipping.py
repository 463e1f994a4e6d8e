"""Gives the order to go past records that cannot be fetched, and waits for what becomes of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evenflow.errors import ConfigError, IncompatibleStateError, ServiceError
from evenflow.settings import Settings
from evenflow.text.strict_json import NotStrict
from partitioner_service.kafka.committed_state import committed_states, state_reader
from topics import clients
from topics.admin import describe, topic_names
from topics.batches.batch_extent import BadBatch, bad_batch
from topics.batches.bombs import unreadable_at
from topics.follower import Follower
from topics.query.audit import who, write_entry
from topics.query.input_topic import missing_input
from topics.query.record import read_beginning, refuse_changed, with_lookup_content
from topics.query.skip_orders import LONGEST_WORDS, MOST_SKIPPED, ORDERS, SkipAnswer, SkipOrder, answer_key

_LOG = logging.getLogger("evenflow.skip")
_LOOK_SECONDS = 0.5
_ANSWER_SECONDS = 10.0
"""How long the answer may take once the offsets are behind the partitioner.
It is written right behind the commit.
"""


@dataclass(frozen=True)
class Outcome:
    """What became of an order."""

    order: SkipOrder
    """The order: which offsets to skip, and who asked for it."""
    done: bool | None
    """Whether the order was obeyed. None while nobody has obeyed or refused it."""
    words: str
    """The outcome as a sentence."""

    def as_json(self) -> dict[str, Any]:
        """The outcome as plain JSON."""
        return {
            "partition": self.order.partition,
            "offset": self.order.offset,
            "through": self.order.through,
            "skipped": self.order.count if self.done else 0,
            "done": self.done,
            "words": self.words,
        }


def skip(
    settings: Settings,
    partition: int,
    offset: int,
    *,
    because: str,
    through: int | None = None,
    patience: float = 60.0,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Order the owner of the partition to go past this offset, and wait at most `patience` seconds for it.

    through: the last offset to skip. It has to be the last one of the batch. Raises ConfigError for an order
    that cannot be meant, above all for an offset that can be fetched, IncompatibleStateError if the query has
    not begun, ServiceError if Kafka does not answer or refuses us.
    """
    _check_words(because)
    settings = _settled(settings, partition)
    _check_place(settings, partition, offset)
    batch = _bad(settings, partition, offset)
    through = _through(partition, offset, through, batch)
    order = SkipOrder(
        partition=partition,
        offset=offset,
        through=through,
        because=because,
        who=who()[:LONGEST_WORDS],
        at=round(time.time() * 1000),
    )
    offsets = f"partition {partition}, offsets {offset} to {through}"
    write_entry(settings, "skip", offsets, because=because)
    answers = Follower(settings, ORDERS, newest=0)
    try:
        _write(settings, order)
        outcome = _wait(settings, order, answers, clock() + patience, clock)
    finally:
        answers.close()
    if outcome.done is not None:
        done = "done" if outcome.done else "not done"
        try:
            write_entry(settings, "skip", f"{offsets}: {done}: {outcome.words}", because=because)
        except ServiceError as error:  # the outcome must be heard all the same
            _LOG.warning("the audit log lacks the outcome: %s", error.message)
    return outcome


def _check_words(because: str) -> None:
    if not because.strip() or len(because) > LONGEST_WORDS or not because.isprintable():
        raise ConfigError(f"--because must say why, in 1 to {LONGEST_WORDS} printable characters")


def _settled(settings: Settings, partition: int) -> Settings:
    topic = settings.topic("input")
    state = describe(settings.kafka, [topic]).get(topic)
    if state is None:
        raise missing_input(settings, topic_names(settings.kafka))
    if partition not in state.begin:
        raise ConfigError(f"topic {topic} has no partition {partition}: it has {state.partitions}")
    settings = settings.with_input_partitions(state.partitions)
    refuse_changed(settings)
    return with_lookup_content(settings, read_beginning(settings))


def _check_place(settings: Settings, partition: int, offset: int) -> None:
    reader = state_reader(settings)
    try:
        state = committed_states(reader, settings).get(partition)
    finally:
        reader.close()
    where = f"{settings.topic('input')}[{partition}]"
    if state is None:
        raise IncompatibleStateError(
            f"nothing was committed for {where}: query {settings.query.name} has not begun",
            hint="an order is for a query that runs and is stuck: see `evenflow status`",
        )
    if offset < state.offset:
        raise ConfigError(
            f"offset {offset} of {where} is behind us: everything below"
            f" {state.offset} has been read or skipped",
            hint="`evenflow status` names the offset that cannot be fetched",
        )


def _bad(settings: Settings, partition: int, offset: int) -> BadBatch:
    topic = settings.topic("input")
    end = describe(settings.kafka, [topic])[topic].end[partition]
    if offset >= end:
        raise ConfigError(f"{topic}[{partition}] has no offset {offset} yet: it ends at {end}")
    try:  # first: a plain consumer decompresses a bomb, whatever it grows into
        raw = unreadable_at(settings.kafka, topic, partition, offset)
    except ServiceError as error:
        _LOG.warning("the batch is read by a plain consumer: %s", error.message)
    else:
        if raw is not None:
            return BadBatch(*raw)
    batch = bad_batch(settings.kafka, topic, partition, offset, end=end)
    if batch is None:
        raise ConfigError(
            f"offset {offset} of {topic}[{partition}] can be read: there is no reason to skip it",
            hint=(
                "a record that is read and makes no sense is rejected without an order; see `evenflow status`"
            ),
        )
    return batch


def _through(partition: int, offset: int, through: int | None, batch: BadBatch) -> int:
    if batch.last - offset >= MOST_SKIPPED:
        raise ConfigError(f"the batch has more than {MOST_SKIPPED:,} offsets, which no order skips")
    if through == batch.last or (through is None and batch.last == offset):
        return batch.last
    raise ConfigError(
        f"offset {offset} of partition {partition} stands in a batch that ends at offset {batch.last} and"
        f" cannot be fetched ({batch.why}): only the whole batch can be skipped",
        hint=f"say --through {batch.last} to skip {batch.last - offset + 1:,} offsets",
    )


def _write(settings: Settings, order: SkipOrder) -> None:
    producer = clients.producer(settings.kafka)
    errors: list[Any] = []
    producer.produce(
        settings.topic(ORDERS),
        key=order.key,
        value=order.encode(),
        on_delivery=lambda error, _: errors.append(error) if error is not None else None,
    )
    clients.flush(producer, settings.kafka)
    if errors:
        raise clients.service_error(
            errors[0], settings.kafka, f"writing the order to {settings.topic(ORDERS)}"
        )


def _wait(
    settings: Settings, order: SkipOrder, answers: Follower, deadline: float, clock: Callable[[], float]
) -> Outcome:
    reader = state_reader(settings)
    passed: float | None = None
    try:
        while clock() < (deadline if passed is None else passed + _ANSWER_SECONDS):
            for record in answers.new(_LOOK_SECONDS):
                if record.key() == answer_key(order):
                    try:
                        answer = SkipAnswer.decode(record.value())
                    except NotStrict:
                        continue
                    return Outcome(order, answer.done, answer.words)
            # Offsets that were passed need not have been skipped: the partitioner tries such a batch again.
            state = committed_states(reader, settings).get(order.partition)
            if passed is None and state is not None and state.offset > order.through:
                passed = clock()
    finally:
        reader.close()
    if passed is not None:
        return Outcome(
            order,
            False,
            "the partitioner has gone past these offsets and does not say that it skipped them: the batch"
            " was read after all. Only if the partitioner ended right behind the skip is its answer lost:"
            f" then {settings.topic('rejected')} has a record of it, with the reason `skipped`",
        )
    return Outcome(
        order,
        None,
        "nobody has obeyed the order yet; it stays, and the owner of the partition obeys it once it is stuck"
        " at this offset. Does a partitioner run? See `evenflow status`",
    )
