"""A partitioner instance without its process: the real loop, source, sink, router and taking-in over a
small Kafka.
"""

from __future__ import annotations

from threading import Event
from types import SimpleNamespace
from typing import Any

from evenflow.partitioners import create
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from partitioner_service.begin.added_partitions import AddedPartitions
from partitioner_service.kafka.committed_state import TopicIds
from partitioner_service.kafka.sink import Sink
from partitioner_service.kafka.source import Source
from partitioner_service.kafka.watchdog import Watchdog
from partitioner_service.plane.loop import Loop
from partitioner_service.plane.opening import Parts
from partitioner_service.routing.batches import gate
from partitioner_service.routing.router import Router
from partitioner_service.routing.session import Session
from tests.unit.partitioner_service.small_kafka import Consumer, Kafka, Producer

NOTHING = SimpleNamespace(
    arrived=list,  # the plan log
    note=lambda *words, **more: None,  # reports
    due=False,
    answer_one=lambda explain: None,  # questions
    progressed=lambda: None,  # what other threads see
    asleep=dict,  # pace
    hold_back_the_hasty=lambda: None,
    held_back=False,
    save_when_due=lambda *words: None,  # learned state
)
"""Stands for the parts that have no say in what is committed."""


class QuietLoop(Loop):
    """Tells nobody how it goes."""

    def _refresh_status(self) -> None:
        """No status page."""

    def _report(self) -> None:
        """No telemetry."""


class Member:
    """One instance. number: of its session."""

    def __init__(self, settings: Settings, kafka: Kafka, number: int) -> None:
        def clock() -> float:
            return kafka.now

        self.session = Session(settings.routed_partitions, number=number)
        partitioner = create("hashing", workers=settings.partitioner.workers)
        self.router = Router(settings, partitioner, session=self.session)
        self.source = Source(
            settings,
            topic_ids=TopicIds("t", "", ""),
            needs_key=False,
            needs_timestamp=False,
            stopping=lambda: False,
            clock=clock,
        )
        self.sink = Sink(
            settings, session=self.session, rejected_limit=10_000, watchdog=Watchdog(clock=clock), clock=clock
        )
        watch: Any = SimpleNamespace(
            partitions=lambda topic: len(kafka.input), check=lambda: None, servers="b:9092", unanswered=0.0
        )
        self.added = AddedPartitions(settings, self.source, self.router, self.sink, watch=watch, clock=clock)
        nothing: Any = NOTHING
        skips: Any = SimpleNamespace(due=lambda stuck: [])
        parts = Parts(
            side=nothing,
            learned=nothing,
            router=self.router,
            gate=gate(settings, self.router, clock=clock),
            sink=self.sink,
            source=self.source,
            pace=nothing,
            skips=skips,
            added=self.added,
            watch=watch,
            member=None,
            speeds=None,
        )
        self.loop = QuietLoop(
            settings,
            parts,
            plan_inbox=nothing,
            reports=nothing,
            questions=nothing,
            talk=nothing,
            latest=nothing,
            stop=Event(),
            clock=clock,
            onlooker=None,
        )
        self.source.subscribe(self.loop.settle)

    @property
    def consumer(self) -> Consumer:
        """Its client, which is a member of the group."""
        client: Any = self.source._consumer
        assert isinstance(client, Consumer)
        return client

    @property
    def producer(self) -> Producer:
        """Its client that writes."""
        client: Any = self.sink._client.producer
        assert isinstance(client, Producer)
        return client

    @property
    def states(self) -> dict[int, PartitionState]:
        """Its working states."""
        return self.source.states
