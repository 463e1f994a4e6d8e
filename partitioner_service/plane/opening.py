"""What the data plane's loop works with, opened in the one order that is right."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from evenflow.partitioners import Partitioner
from evenflow.settings import Settings
from partitioner_service.begin.added_partitions import AddedPartitions
from partitioner_service.begin.claim import claim
from partitioner_service.begin.run_note import RunNote
from partitioner_service.exchange.channel import Channel
from partitioner_service.exchange.member import Member
from partitioner_service.kafka.committed_state import TopicIds, committed_states, state_reader
from partitioner_service.kafka.idle_and_ahead import Pace
from partitioner_service.kafka.learned_state import LearnedState
from partitioner_service.kafka.side_records import SideRecords
from partitioner_service.kafka.sink import Sink
from partitioner_service.kafka.source import Source
from partitioner_service.kafka.watchdog import Watchdog
from partitioner_service.plane.closing import Closing
from partitioner_service.plane.skips import SkipOrders
from partitioner_service.routing.batches import gate
from partitioner_service.routing.gate import Gate
from partitioner_service.routing.plan_inbox import PlanInbox
from partitioner_service.routing.router import Router
from partitioner_service.routing.session import Session
from partitioner_service.routing.speeds import MeasuredSpeeds
from topics import admin as topic_admin
from topics.batches.bombs import Lookahead, bombs_ahead
from topics.watch import TopicWatch

log = logging.getLogger(__name__)

_REJECTED_LIMIT = 1_048_588
"""Kafka's own default of `max.message.bytes` (bytes), for a broker that does not tell its value."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The parts of a data plane, all open. The source has not joined its group yet."""

    side: SideRecords
    """Writes what stands beside the data: telemetry, notes, snapshots."""
    learned: LearnedState
    """Keeps what the partitioner has learned."""
    router: Router
    """Makes frames and rejections of blocks."""
    gate: Gate
    """Stands between reading and routing."""
    sink: Sink
    """Writes frames and rejected records, and commits."""
    source: Source
    """Reads the input topic, and owns the states of its partitions."""
    pace: Pace
    """Says which partitions fall asleep, and which are paused."""
    skips: SkipOrders
    """The orders to go past what cannot be fetched."""
    added: AddedPartitions
    """Takes in partitions that are added to the input topic."""
    watch: TopicWatch
    """Sees whether the topics are still those of the start."""
    member: Member | None
    """What this instance tells the others, and hears of them. None if it tells nothing."""
    speeds: MeasuredSpeeds | None
    """How fast the workers are. None if no speeds are measured."""


def open_parts(
    closing: Closing,
    settings: Settings,
    *,
    plan_inbox: PlanInbox,
    channel: Channel | None,
    speeds: MeasuredSpeeds | None,
    watchdog: Watchdog,
    stopping: Callable[[], bool],
    clock: Callable[[], float],
) -> Parts:
    """Claim the query, then open every part.

    `closing` closes the parts in this order: the source, the pace, the side records. Before it closes the
    side records, it saves what the partitioner has learned.
    """
    # First: the source takes a partition without committed state for a loss of data.
    claim(settings, watchdog)
    names = [settings.topic(role) for role in ("input", "routed", "rejected")]
    topics = topic_admin.describe(settings.kafka, names)
    side = SideRecords(settings, clock=clock)
    closing.when_over(side.close)
    learned = LearnedState(settings, side, clock=clock)
    partitioner, epoch = learned.restored()
    warn_of_homes(settings, partitioner)
    session = Session(settings.routed_partitions)
    router = Router(settings, partitioner, epoch=epoch, session=session)
    closing.when_over(lambda: learned.save(router.plans.partitioner, router.plans.epoch))
    router.plans.learn_published(plan_inbox.published())
    if channel is not None:
        channel.begin()
    rejected_limit = int(topics[names[2]].config.get("max.message.bytes", _REJECTED_LIMIT))
    sink = Sink(
        settings,
        session=session,
        rejected_limit=rejected_limit,
        rejected_partitions=topics[names[2]].partitions,
        watchdog=watchdog,
        clock=clock,
    )
    # `closing` closes in reverse order. The pace is opened after the source and must be closed after it too,
    # so its place is taken now.
    after_the_source = closing.enter_context(ExitStack())
    source = Source(
        settings,
        topic_ids=TopicIds(*(topics[name].topic_id for name in names)),
        needs_key=router.parser.needs_key,
        needs_timestamp=router.parser.needs_timestamp,
        stopping=stopping,
        clock=clock,
    )
    closing.when_over(source.close)
    run_note = RunNote(settings, side)
    offsets = _committed(settings)
    ahead = _bombs(settings, run_note, offsets, stopping)
    source.go_around({**ahead.suspects, **ahead.bombs})
    run_note.looked({**ahead.unfinished, **source.bombs})
    closing.when_over(lambda: run_note.ends({**ahead.unfinished, **source.bombs}))
    pace = Pace(settings, source, clock=clock)
    after_the_source.callback(closing.quietly, pace.close)
    watch = TopicWatch(settings.kafka, topics.values(), clock=clock)
    skips = SkipOrders(settings, side, clock=clock)
    after_the_source.callback(closing.quietly, skips.close)
    return Parts(
        side=side,
        learned=learned,
        router=router,
        gate=gate(settings, router, clock=clock),
        sink=sink,
        source=source,
        pace=pace,
        skips=skips,
        added=AddedPartitions(settings, source, router, sink, watch=watch, clock=clock),
        watch=watch,
        member=None if channel is None else channel.member(side),
        speeds=speeds,
    )


def warn_of_homes(settings: Settings, partitioner: Partitioner) -> None:
    """Log a warning if forwarding is on and this partitioner's homes of keys are not F_1."""
    if settings.partitioner.forwarding == "on" and not partitioner.homes_are_hashed:
        log.warning(
            "partitioner.forwarding is on, and brings little with %s: its homes of keys are not F_1, by which"
            " reduce buckets go then. Take hashing, dalton, or evenflow with tail = 'hash'. Results stay the"
            " same",
            partitioner.name,
        )


def _bombs(
    settings: Settings, run_note: RunNote, offsets: Mapping[int, int], stopping: Callable[[], bool]
) -> Lookahead:
    """The decompression bombs, and the suspects, before which partitions stand that killed the last run."""
    where = {partition: offsets[partition] for partition in run_note.begins(offsets)}
    if not where:
        return Lookahead({}, {}, {})
    topic = settings.topic("input")
    ahead = bombs_ahead(settings.kafka, topic, where, repeated=run_note.repeated, stopping=stopping)
    for partition, suspect in sorted(ahead.suspects.items()):
        log.warning(
            "%s[%d] is read batch by batch from offset %d on: %s. Several batches together may need more"
            " memory than there is",
            *(topic, partition, suspect.first),
            (
                "more than one run in a row ended there, and no decompression bomb is known"
                if partition in run_note.repeated
                else "the last run ended there, and there was no time to look for decompression bombs"
            ),
        )
    for partition, bomb in sorted(ahead.bombs.items()):
        log.error(
            "%s[%d] will be read to offset %d, and no further: %s; see 'A record that cannot be fetched' in "
            "docs/operations/rejected-records.md",
            *(topic, partition, bomb.first, bomb.why),
        )
    return ahead


def _committed(settings: Settings) -> dict[int, int]:
    """The committed offset of each input partition."""
    reader = state_reader(settings)
    try:
        return {partition: state.offset for partition, state in committed_states(reader, settings).items()}
    finally:
        reader.close()
