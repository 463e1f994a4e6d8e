"""Records beside the data plane: telemetry, snapshots of learned state, and what instances tell each other.

Telemetry is for people and controllers. Snapshots and the exchange are a matter of quality. None of them
affects results, so all are written without transactions, and a lost record does no further harm.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from confluent_kafka import KafkaException

from evenflow.plans import LAST_EPOCH
from evenflow.settings import Settings
from evenflow.settings.views import TopicRole
from evenflow.text.strict_json import shown
from topics import clients, reader
from topics.records import Record

log = logging.getLogger(__name__)

_EPOCH = "evenflow-epoch"
_CLOSING = 5.0  # s
_LARGEST_SNAPSHOT = 30_000_000
"""Bytes. Below the largest record that a producer sends (`clients.MAX_RECORD_BYTES`)."""
_EPOCH_DIGITS = re.compile(rb"[0-9]{1,%d}" % len(str(LAST_EPOCH)))


class StoredSnapshot(NamedTuple):
    """A snapshot as it was read back."""

    snapshot: bytes
    """State of a partitioner, in its own encoding."""
    epoch: int
    """Epoch of the plan that was in force."""
    own: bool
    """Whether this instance made the snapshot."""


class SideRecords:
    """Writes the telemetry, the snapshots and the sync records of one instance,
    and reads the snapshot to begin with.
    """

    def __init__(self, settings: Settings, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._deadline: float | None = None
        self._settings = settings
        self._identity = settings.partitioner.instance
        self._producer = clients.producer(settings.kafka, **{"linger.ms": 50})

    def telemetry(self, record: bytes) -> None:
        """Write a telemetry record."""
        self._produce("telemetry", key=self._identity, value=record)

    def note(self, key: bytes, value: bytes) -> None:
        """Write a record beside the snapshots to `<query>.snapshots`."""

        def answered(error: object, _: object) -> None:
            if error is not None:
                log.warning("the note %s was not written: %s", key.decode(errors="replace"), error)

        self._produce("snapshots", key=key, value=value, on_delivery=answered)

    def sync(self, record: bytes, *, answered: Callable[[str | None], None]) -> None:
        """Write a record to `<query>.sync`. It may be called from any thread.

        answered: is called once, with the error or with None. That is not before the next other record is
        written.
        """

        def delivered(error: object, _: object) -> None:
            answered(None if error is None else str(error))

        topic = self._settings.topic("sync")
        try:
            # Without `poll`: what that raises belongs into the data plane's thread.
            self._producer.produce(topic, key=self._identity, value=record, on_delivery=delivered)
        except (BufferError, KafkaException) as error:
            answered(str(error))

    def save_snapshot(
        self, snapshot: bytes, epoch: int, *, on_saved: Callable[[], None] = lambda: None
    ) -> None:
        """Write the learned state of this instance, with the epoch of the plan that it follows.

        A snapshot that is too large is not written. on_saved: is called once the broker has the snapshot.
        """
        if len(snapshot) > _LARGEST_SNAPSHOT:
            log.warning(
                "learned state of %d bytes is too large to save; a restart begins without", len(snapshot)
            )
            return

        def answered(error: object, _: object) -> None:
            if error is None:
                on_saved()
            else:
                log.warning("learned state was not saved (quality only): %s", error)

        self._produce(
            "snapshots",
            key=self._identity,
            value=snapshot,
            headers=[(_EPOCH, str(epoch).encode())],
            on_delivery=answered,
        )

    def snapshot(self) -> StoredSnapshot | None:
        """The last snapshot of this instance. If it has none, the newest one of another instance.

        None if there is none, or none that is usable. A snapshot names its partitioner and options, so
        `partitioners.restore` refuses a snapshot that does not fit.
        """
        kafka, topic = self._settings.kafka, self._settings.topic("snapshots")
        last: Record | None = None
        others: Record | None = None
        for record in reader.read_all(kafka, topic):
            if record.key() == self._identity.encode():
                last = record
            elif record.value() is not None and _epoch_of(record) is not None:
                others = record
        best = others if last is None or last.value() is None else last
        value = None if best is None else best.value()
        if best is None or value is None:
            return None
        try:
            return StoredSnapshot(value, parse_epoch(_epoch_of(best)), own=best is last)
        except ValueError as error:
            log.warning("learned state is not usable, starting without (quality only): %s", error)
            return None

    def stop_within(self, seconds: float) -> None:
        """From now on `close` is over after about this long at most. The first call counts."""
        if self._deadline is None:
            self._deadline = self._clock() + seconds

    def close(self) -> None:
        """Hand buffered records to the broker, for a few seconds at most.

        If the end of the data plane has waited for the broker in vain, another wait would be in vain as well.
        """
        left = _CLOSING if self._deadline is None else self._deadline - self._clock()
        self._producer.flush(max(0.1, min(_CLOSING, left)))

    def _produce(self, role: TopicRole, **record: Any) -> None:
        try:
            self._producer.produce(self._settings.topic(role), **record)
            self._producer.poll(0)  # runs the delivery callbacks of earlier records
        except (BufferError, KafkaException) as error:  # dropped: the data plane must not wait for it
            log.warning("a %s record was not written: %s", role, error)


def _epoch_of(record: Record) -> bytes | None:
    """The header with the plan epoch, which snapshots have and notes do not."""
    epoch = dict(record.headers() or ()).get(_EPOCH)
    return epoch if isinstance(epoch, bytes) else None


def parse_epoch(header: bytes | None) -> int:
    """The plan epoch in the header of a snapshot. Raises ValueError if the header holds no epoch."""
    if header is None or not _EPOCH_DIGITS.fullmatch(header):
        raise ValueError(f"no plan epoch: {shown(header)}")
    return int(header)
