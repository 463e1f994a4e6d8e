"""A second process of an instance's name: it is refused while the first one works,
so that nobody is fenced by mistake.

The first one is alive if its consumer is a member of the query's group and it reports to the telemetry topic.
A process that was killed stays a member for a while, but it is silent. So who starts in its place listens for
some of its reports, and goes on as soon as the group forgets the member. No clocks of two machines are
compared.

This is courtesy, not safety: results rest on Kafka's fencing (`sink.py`). Two processes that start at the
same moment do not see each other, and the later one fences the other.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from typing import Protocol

from evenflow.errors import ConfigError, ServiceError
from evenflow.settings import Settings
from evenflow.telemetry import PartitionerRecord, parse
from partitioner_service.kafka.committed_state import data_plane_group
from partitioner_service.kafka.source import client_id
from partitioner_service.reports.telemetry import longest_silence
from topics.follower import Follower
from topics.groups import members
from topics.records import Record

log = logging.getLogger(__name__)

_REPORTS = 3
"""So many reports must be missing until a member of the group counts as dead."""
_STEP_SECONDS = 0.25


class TelemetryReader(Protocol):
    """New telemetry records. A `Follower`, but in unit tests."""

    def new(self, timeout: float) -> list[Record]:
        """Those since the last call. timeout: s until the first."""
        ...


def refuse_live_namesake(settings: Settings, *, clock: Callable[[], float] = time.monotonic) -> None:
    """Raise ConfigError if another process is this instance and works.

    Waits for a few reports if such a process may have been killed a moment ago. clock: s.
    """
    if not _is_member(settings):
        return
    patience = _REPORTS * longest_silence(settings)
    log.info(
        "instance %s was at work a moment ago: waiting up to %g s to see whether it still is",
        settings.partitioner.instance,
        patience,
    )
    follower = Follower(settings, "telemetry", newest=0, isolation="read_uncommitted")
    try:
        record = next_report(settings, follower, patience, lambda: _is_member(settings), clock=clock)
    finally:
        follower.close()
    if record is not None:
        where = f", its pages are at http://{record.pages}/" if record.pages else ""
        name = settings.partitioner.instance
        raise ConfigError(
            f"instance {name} of query {settings.query.name} is at work in another process{where}",
            hint=(
                "a further instance needs a name of its own: --instance NAME (partitioner.instance), and"
                " partitioner.instances says how many there are. To replace that process, stop it first, or"
                " give --take-over, which ends it"
            ),
        )
    log.info("instance %s is silent: this process goes on in its place", settings.partitioner.instance)


def next_report(
    settings: Settings,
    telemetry: TelemetryReader,
    patience: float,
    is_member: Callable[[], bool],
    *,
    clock: Callable[[], float],
) -> PartitionerRecord | None:
    """The first record of this instance within `patience` s.
    None if none comes, or once it is no member any more.
    """
    deadline = clock() + patience
    while clock() < deadline:
        for record in _own(settings, telemetry.new(_STEP_SECONDS)):
            return record
        if not is_member():
            return None
    return None


def _own(settings: Settings, messages: Iterable[Record]) -> Iterable[PartitionerRecord]:
    for message in messages:
        try:
            record = parse(message.value())
        except ValueError:
            continue
        if isinstance(record, PartitionerRecord) and record.instance == settings.partitioner.instance:
            yield record


def _is_member(settings: Settings) -> bool:
    """Whether a consumer of this name is in the group. A broker that does not say lets the reports
    decide.
    """
    try:
        names = {member.client_id for member in members(settings.kafka, data_plane_group(settings))}
    except ServiceError as error:
        log.debug("who is in the group is not known: %s", error)
        return True
    return client_id(settings) in names
