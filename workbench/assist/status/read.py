"""One look at a query, by bounded reads of its topics.
The look makes no topic, joins no group and writes nothing.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TypeVar

from evenflow.due_windows import ResultDelays
from evenflow.errors import EvenflowError, IncompatibleStateError
from evenflow.plans import Plan
from evenflow.progress import PartitionState
from evenflow.reporting import Trouble
from evenflow.settings import Settings
from evenflow.settings.beginning import as_begun
from evenflow.settings.places import local_folder
from evenflow.settings.views import queries
from evenflow.telemetry import BatchRecord, HeartbeatRecord
from evenflow.windows import NO_MARK
from partitioner_service.kafka.committed_state import all_states
from partitioner_service.kafka.leaps import Leaps
from partitioner_service.kafka.sink import REASON
from partitioner_service.reports.rejections import EVERY_REASON
from spark_consumers.checkpoints.results_note import begun_at
from spark_consumers.sinks import sink_of
from topics.admin import describe, topic_names
from topics.certificates import ending_soon
from topics.query.input_topic import missing_input
from topics.query.plan_topic import plan_in
from topics.query.record import read_beginning, with_lookup_content
from topics.reader import read_newest
from topics.records import Record
from topics.state import TopicState
from workbench.assist.activity import Part, read_activity
from workbench.assist.status.answer import hasty
from workbench.assist.status.checkpoint import stages
from workbench.assist.status.facts import (
    Facts,
    PartitionFacts,
    PlanFacts,
    RejectedCounts,
    ViewFacts,
    WindowFacts,
    windows_of,
)
from workbench.assist.status.results import can_look, newest_written

_REJECTED = 10_000
"""How many of the newest offsets of the rejected topic are read, shared out evenly among its partitions."""
_PLANS = 1_000
"""How many of the newest offsets of each partition of the plan topic are read."""
_T = TypeVar("_T")


def read(settings: Settings, *, now: Callable[[], float] = time.time) -> Facts:
    """What the topics say. Raises ServiceError if the broker does not answer.
    Any other trouble is in the facts.

    now: seconds since 1970.
    """
    topic = settings.topic("input")
    # Later requests may have to wait for a transaction of a partitioner that died, so they get their full
    # time.
    state = describe(hasty(settings.kafka), [topic]).get(topic)
    troubles: list[str] = []
    if state is None:
        troubles.append(missing_input(settings, topic_names(settings.kafka)).message)
    else:
        settings = settings.with_input_partitions(state.partitions)
    begun = None if state is None else _answer_or(troubles, lambda: read_beginning(settings), None)
    # Partitions that were added to the topic, and that the query has not taken in yet, hold no window back.
    if begun is not None and len(begun.begin) < settings.input_partitions:
        settings = settings.with_input_partitions(len(begun.begin))
    settings = with_lookup_content(as_begun(settings, begun), begun)
    partitions = () if state is None else _partitions(settings, state, troubles)
    activity, at_work = read_activity(settings), tuple(stages(settings))
    aggregated = bool(at_work) or any(part.is_spark for part in activity.parts)
    every_query = queries(settings)
    return Facts(
        query=settings.query.name,
        topic=topic,
        now=round(now() * 1000),
        recorded=begun is not None,
        changed=() if begun is None else tuple(settings.changes_since(begun.identity)),
        partitions=partitions,
        rejected=_rejected(settings, len(partitions)),
        windows=_windows(settings, partitions),
        workers=settings.partitioner.workers,
        plan=_plan(settings),
        members=activity.members,
        parts=activity.parts,
        ignored=activity.ignored,
        unfit=activity.unfit,
        stages=at_work,
        troubles=tuple(troubles),
        idle_timeout=settings.partitioner.idle_timeout,
        added=0 if state is None else state.partitions - len(partitions),
        leap=leap_of(settings, partitions),
        delays=ResultDelays.of(settings.query),
        missing=_missing_topics(settings, aggregated=aggregated)
        if any(partition.state for partition in partitions)
        else (),
        losses=tuple(losses(every_query, checkpoint=bool(at_work), parts=activity.parts, begun=_has_begun)),
        ending=tuple(certificate.left(now()) for certificate in ending_soon(settings, now=now)),
        views=tuple(_view(view_settings, partitions) for view_settings in every_query[1:]),
    )


def _missing_topics(settings: Settings, *, aggregated: bool) -> tuple[str, ...]:
    """Topics of a query that has begun, and that are not there. aggregated: whether Spark has ever run."""
    topics = {settings.topic("routed")}
    if aggregated:
        topics |= {
            query_settings.topic(role)
            for query_settings in queries(settings)
            for role in sink_of(query_settings).topics
        }
    return tuple(sorted(topics.difference(topic_names(settings.kafka))))


def losses(
    every_query: Iterable[Settings],
    *,
    checkpoint: bool,
    parts: Iterable[Part],
    begun: Callable[[Settings], bool],
) -> Iterator[Trouble]:
    """What is gone of the results of the query and of its views. Nothing is before a micro-batch has ended.

    checkpoint: whether micro-batches are in a checkpoint that is seen from here. parts: as telemetry tells
    them. begun: returns whether the query has noted that it writes to the place of these settings.
    """
    batch_ended = any(
        part.telemetry.batch is not None
        for part in parts
        if isinstance(part.telemetry, BatchRecord | HeartbeatRecord)
    )
    for query_settings in every_query:
        folder = (
            None if query_settings.results.folder is None else local_folder(query_settings.results.folder)
        )
        # A folder of the machine on which Spark runs is not missing because it is not on this one.
        if not checkpoint and (folder is not None or not batch_ended):
            continue
        try:
            text = sink_of(query_settings).loss(query_settings)
            # A relative path may name another folder here than where Spark runs. The note has the whole path.
            if text is not None and begun(query_settings):
                yield Trouble("wrong", text)
        except EvenflowError as error:
            yield Trouble("warning", f"whether the results are there is not known: {error.message}")


def _has_begun(settings: Settings) -> bool:
    return begun_at(settings, sink_of(settings).place(settings)) is not None


def leap_of(settings: Settings, partitions: Sequence[PartitionFacts]) -> str | None:
    """Says, in words, that one partition has leapt and that no other is left to hold windows back
    but idle ones.

    None if this is not so, or if no partition becomes idle.
    """
    everyone = {
        partition.partition: partition.state for partition in partitions if partition.state is not None
    }
    waiting = {partition.partition for partition in partitions if not partition.ended}
    reached = {p: time for p in waiting & everyone.keys() if (time := everyone[p].max_time) is not None}
    if settings.partitioner.idle_timeout is None or not reached or len(everyone) < len(partitions):
        return None
    furthest = max(reached, key=lambda p: reached[p])
    leaps = Leaps(settings, everyone)
    others = sorted(waiting - {furthest})
    idle = all(partition.lag == 0 for partition in partitions if partition.partition in others)
    if not others or not idle or any(leaps.followed_by(furthest, p) for p in others):
        return None
    return leaps.words(furthest, others)


def _windows(settings: Settings, partitions: tuple[PartitionFacts, ...]) -> WindowFacts:
    looked = can_look(settings)
    try:
        written = newest_written(settings) if looked else None
    except EvenflowError:
        if not settings.results.on_server:
            raise
        looked, written = False, None  # the server does not answer: `losses` says so
    return windows_of(settings.query, partitions, written, looked=looked)


def _view(settings: Settings, partitions: tuple[PartitionFacts, ...]) -> ViewFacts:
    return ViewFacts(
        name=settings.query.view_name or "",
        windows=_windows(settings, partitions),
        stages=tuple(stages(settings)),
    )


def _answer_or(troubles: list[str], ask: Callable[[], _T], otherwise: _T) -> _T:
    """What `ask` returns. If it raises IncompatibleStateError, that is added to `troubles`, and
    `otherwise` is returned.
    """
    try:
        return ask()
    except IncompatibleStateError as error:
        troubles.append(error.message)
        return otherwise


def _partitions(settings: Settings, topic: TopicState, troubles: list[str]) -> tuple[PartitionFacts, ...]:
    none: dict[int, PartitionState] = {}
    states = _answer_or(troubles, lambda: all_states(settings), none)
    if any(state.topic_id != topic.topic_id for state in states.values()):
        troubles.append(f"{topic.name} was deleted and created again since the query began")
    return tuple(
        PartitionFacts.of(
            settings.query, partition, (topic.begin[partition], topic.end[partition]), states.get(partition)
        )
        for partition in range(settings.input_partitions)
    )


def _rejected(settings: Settings, partitions: int) -> RejectedCounts:
    topic = settings.topic("rejected")
    each = max(1, _REJECTED // max(1, partitions))
    messages = read_newest(settings.kafka, topic, each)
    reasons = [_reason(message) for message in messages]
    state = describe(settings.kafka, [topic]).get(topic)
    spans = [] if state is None else [end - state.begin[number] for number, end in state.end.items()]
    return RejectedCounts(
        by_reason=dict(Counter(reasons).most_common()), whole=all(span <= each for span in spans)
    )


def _reason(message: Record) -> str:
    """Why a record was rejected. A question mark if no partitioner has written the record."""
    reason = dict(message.headers() or ()).get(REASON)
    known = {name.encode(): name for name in EVERY_REASON}
    return known.get(reason, "?") if isinstance(reason, bytes) else "?"


def _plan(settings: Settings) -> PlanFacts | None:
    plans: list[Plan] = []
    for message in read_newest(settings.kafka, settings.topic("plan"), _PLANS):
        with suppress(ValueError):  # partitioners ignore such a record as well, and say so
            plans.append(plan_in(message.value(), settings))
    newest = max(plans, key=lambda plan: plan.epoch, default=None)
    if newest is None:
        return None
    since = None if newest.effective_from == NO_MARK else newest.effective_from
    return PlanFacts(epoch=newest.epoch, workers=newest.p, reducers=newest.r, effective_from=since)
