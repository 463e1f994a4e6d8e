"""Gives a query another name, with all that it has read: frames, rejected records, plans,
learned state and offsets.

Kafka cannot rename a topic, so the records are copied. Results are not copied: the Spark stages compute all
of them again from the copied frames. The last step is one transaction that commits the offsets with their
state. Before this step nothing of the new name counts: if the renaming is cut off, the next one recognises
the copies and makes them anew. After this step only the old name is left to be removed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from confluent_kafka import KafkaException, TopicPartition

from evenflow.errors import ConfigError, DataLossError, IncompatibleStateError
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from evenflow.settings.beginning import IDENTITY_KEY, as_begun
from evenflow.settings.views import TopicRole, queries
from partitioner_service.begin.claim import commit_first, lock
from partitioner_service.kafka.committed_state import TopicIds, all_states, check_continues
from partitioner_service.kafka.watchdog import Watchdog
from topics import clients
from topics.admin import delete_topics, describe, ensure_topics, pipeline_topics
from topics.query.input_topic import admitted, with_topic_partitions
from topics.query.record import read_beginning, with_lookup_content
from topics.records import Record
from topics.state import TopicSpec, TopicState
from workbench.lifetime.copying import Copier
from workbench.lifetime.remains import refuse_while_alive
from workbench.query_folders import folder_at

COPIED: tuple[TopicRole, ...] = ("routed", "rejected", "plan", "snapshots", "controller")
"""Roles of the topics that are copied. The Spark stages write their topics anew."""
# These two must hold all records from the first one on.
_FIRST_HAVE: tuple[TopicRole, ...] = ("routed", "rejected")


@dataclass(frozen=True, kw_only=True)
class Renaming:
    """A renaming that is possible."""

    before: Settings
    """Settings of the query under its old name."""
    after: Settings
    """The same settings with the new name."""
    sources: dict[TopicRole, TopicState]
    """Role -> topic to copy."""
    states: dict[int, PartitionState]
    """Input partition -> its committed state."""

    def lines(self) -> list[str]:
        """A line for each topic that is copied."""
        return [
            f"{topic.name} -> {self.after.topic(role)}: {topic.records:,} offsets"
            for role, topic in self.sources.items()
        ]


def examine(
    before: Settings,
    after: Settings,
    *,
    now: Callable[[], float] = time.time,
    waiting: Callable[[str], None] = lambda line: None,
) -> Renaming:
    """Check everything that the renaming depends on. Nothing is made.

    after: the same query under its new name and with the same input topic. now, waiting: as
    `refuse_while_alive` takes them. Raises IncompatibleStateError if a service of the query runs, if the
    query has not begun, or if the new name is taken. Raises ConfigError if the name is the same, and
    DataLossError if the frames are not all there.
    """
    before = admitted(before)
    after = with_topic_partitions(after).with_input_partitions(before.input_partitions)
    beginning = read_beginning(before)
    after = with_lookup_content(as_begun(after, beginning), beginning)
    if before.query.name == after.query.name:
        raise ConfigError(f"the query is called {after.query.name} already", hint="give it another name")
    assert before.fingerprint == after.fingerprint, "only the name may differ"
    refuse_while_alive(before, "copied", now=now, waiting=waiting)
    states = _begun(before)
    sources = _whole(before, states)
    _refuse_taken(after)
    return Renaming(before=before, after=after, sources=sources, states=states)


def carry_out(renaming: Renaming, *, progress: Callable[[int], None]) -> None:
    """Copy, check, and commit the offsets under the new name. The old name's topics and checkpoints stay.

    progress: called with the number of records copied so far. Raises IncompatibleStateError if a partitioner
    has read on meanwhile, and ServiceError if the broker refuses or another process begins the new name.
    """
    before, after = renaming.before, renaming.after
    watchdog = Watchdog()
    watchdog.start()
    try:
        # The lock fences any process that was beginning the new name. One that has begun it since `examine`
        # is found here.
        producer = lock(after, watchdog)
        _refuse_taken(after)
        copies = _empty_topics(renaming)
        copier = Copier(before.kafka, progress=progress)
        for role, source in renaming.sources.items():
            copier.copy(source.name, after.topic(role), predicate=_goes_along)
        # After the copy: whatever a partitioner routed meanwhile is not in it.
        if all_states(before, stable=True) != renaming.states:
            raise IncompatibleStateError(
                f"query {before.query.name} has read on while it was copied",
                hint="stop its partitioners, and run it again: the copies are made anew",
            )
        begun = read_beginning(before)
        commit_first(
            after,
            watchdog,
            producer,
            _moved(renaming, copies),
            began_at=None if begun is None else begun.began_at,
        )
    except KafkaException as error:
        raise clients.service_error(error, before.kafka, f"beginning {after.query.name}") from None
    finally:
        watchdog.stop()


def _begun(settings: Settings) -> dict[int, PartitionState]:
    states = all_states(settings, stable=True)
    if len(states) != settings.input_partitions:
        raise IncompatibleStateError(
            f"query {settings.query.name} has not begun, or its committed offsets are"
            " gone: there is nothing to take along",
            hint="set query.name to the new name; `evenflow reset` removes what there is of the old one",
        )
    return states


def _whole(settings: Settings, states: dict[int, PartitionState]) -> dict[TopicRole, TopicState]:
    """Role -> topic to copy. Raises DataLossError if a topic is missing,
    or not all that was written to it is there.
    """
    names = {role: settings.topic(role) for role in ("input", *COPIED)}
    topics = describe(settings.kafka, names.values())
    missing = [names[role] for role in ("input", *_FIRST_HAVE) if names[role] not in topics]
    if missing:
        raise DataLossError(
            f"there is no topic {missing[0]}",
            hint="see 'Rebuild after data loss' in docs/operations/data-loss.md",
        )
    ids = TopicIds(*(topics[names[role]].topic_id for role in ("input", *_FIRST_HAVE)))
    for partition, state in states.items():
        check_continues(settings, state, ids, f"{names['input']}[{partition}]")
    for role in _FIRST_HAVE:
        trimmed = [partition for partition, first in topics[names[role]].begin.items() if first > 0]
        if trimmed:
            raise DataLossError(
                f"{names[role]} no longer has its first records in partitions"
                f" {trimmed}: results cannot be computed again",
                hint="retention deleted them: keep the name, or begin a query of another name at the input",
            )
    return {role: topics[names[role]] for role in COPIED if names[role] in topics}


def _refuse_taken(after: Settings) -> None:
    """Raise IncompatibleStateError if the new name has begun,
    or if an earlier query has left something under it.

    Copies that an earlier renaming left are no reason: they are made anew.
    """
    name = after.query.name
    reset = f"`evenflow reset` with query.name = '{name}' removes what there is under that name"
    if all_states(after, stable=True):
        raise IncompatibleStateError(
            f"query {name} has begun already",
            hint=(
                "if a renaming was cut off as it removed the old name,"
                f" `evenflow reset` does the rest; else {reset}"
            ),
        )
    written = describe(
        after.kafka,
        [
            f"{query_settings.query.name}.{role}"
            for query_settings in queries(after)
            for role in ("telemetry", "partials", "results", "combiner", "reducer")
        ],
    )
    left = [topic.name for topic in written.values() if topic.records]
    if read_beginning(after) is not None or left:
        raise IncompatibleStateError(
            f"an earlier query {name} has left topics ({', '.join(left) or after.topic('snapshots')})",
            hint=reset,
        )
    checkpoints = (
        folder_at(query_settings, query_settings.query_checkpoint) for query_settings in queries(after)
    )
    checkpoint = next((place for place in checkpoints if place is not None and place.exists()), None)
    if checkpoint is not None:
        raise IncompatibleStateError(
            f"an earlier query {name} has left the checkpoint {checkpoint.place}", hint=reset
        )


def _empty_topics(renaming: Renaming) -> dict[str, TopicState]:
    """Role -> topic of the new name. The topics are made anew, with the configuration of the old ones."""
    after, specs = renaming.after, pipeline_topics(renaming.after)
    delete_topics(after.kafka, [after.topic(role) for role in COPIED])
    specs_by_role = {role: _like(specs[role], renaming.sources.get(role)) for role in COPIED}
    states = ensure_topics(after.kafka, specs_by_role.values())
    return {role: states[spec.name] for role, spec in specs_by_role.items()}


def _like(spec: TopicSpec, source: TopicState | None) -> TopicSpec:
    """The specification, with the values that the old topic has for the same settings."""
    known = {} if source is None else source.config
    return replace(spec, config={name: known.get(name, value) for name, value in spec.config.items()})


def _goes_along(message: Record) -> bool:
    """Whether a record is copied.

    The records that say that the old name has begun, and where its results are, are not: 0.1.0 wrote them
    into the same topic.
    """
    key = message.key() or b""
    return key != IDENTITY_KEY and not key.startswith(b"spark/")


def _moved(renaming: Renaming, copies: dict[str, TopicState]) -> list[TopicPartition]:
    """The same offsets and states, but naming the copies as their topics."""
    routed, rejected = (copies[role].topic_id for role in _FIRST_HAVE)
    topic = renaming.after.topic("input")
    return [
        TopicPartition(
            topic, partition, state.offset, replace(state, routed_id=routed, rejected_id=rejected).encode()
        )
        for partition, state in sorted(renaming.states.items())
    ]
