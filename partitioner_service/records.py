"""Records beside the data plane: telemetry and snapshots of learned state.

Both are matters of quality and of people, never of correctness: written without transactions,
and a lost one costs nothing but itself.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaException

from evenflow.plans import LAST_EPOCH
from evenflow.settings import Settings
from evenflow.settings.views import TopicRole
from evenflow.strict_json import shown
from topics import clients, reader

log = logging.getLogger(__name__)

_EPOCH = "evenflow-epoch"
_LARGEST_SNAPSHOT = 30_000_000
_EPOCH_DIGITS = re.compile(rb"[0-9]{1,%d}" % len(str(LAST_EPOCH)))


class SideRecords:
    """Writes telemetry and snapshots of one instance. Reads its last snapshot."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._identity = settings.partitioner.instance
        self._producer = clients.producer(settings.kafka, **{"linger.ms": 50})

    def telemetry(self, record: bytes) -> None:
        """One record for people and controllers."""
        self._produce("telemetry", key=self._identity, value=record)

    def save_snapshot(self, snapshot: bytes, epoch: int, *, kept: Callable[[], None] = lambda: None) -> None:
        """Learned state of this instance, and the epoch of the plan that it followed.

        kept: called once the broker has it.
        """
        if len(snapshot) > _LARGEST_SNAPSHOT:
            log.warning(
                "learned state of %d bytes is too large to save; a restart begins without", len(snapshot)
            )
            return

        def answered(error: object, _: object) -> None:
            if error is None:
                kept()
            else:
                log.warning("learned state was not saved (quality only): %s", error)

        self._produce(
            "snapshots",
            key=self._identity,
            value=snapshot,
            headers=[(_EPOCH, str(epoch).encode())],
            on_delivery=answered,
        )

    def snapshot(self) -> tuple[bytes, int] | None:
        """The last snapshot of this instance and its plan epoch. None when there is none.

        The snapshot itself says of which partitioner and options it is, so `restore` refuses one that does not fit.
        """
        last = reader.read_last(
            self._settings.kafka, self._settings.topic("snapshots"), self._identity.encode()
        )
        kept = None if last is None else last.value()
        if last is None or kept is None:
            return None
        epoch = dict(last.headers() or ()).get(_EPOCH)
        try:
            return kept, parse_epoch(epoch if isinstance(epoch, bytes) else None)
        except ValueError as error:
            log.warning("learned state is not usable, starting without (quality only): %s", error)
            return None

    def close(self) -> None:
        """Hand over what is still buffered, for a few seconds at most."""
        self._producer.flush(5)

    def _produce(self, role: TopicRole, **record: Any) -> None:
        try:
            self._producer.produce(self._settings.topic(role), **record)
            self._producer.poll(0)
        except (BufferError, KafkaException) as error:
            log.warning("a %s record was not written: %s", role, error)


def parse_epoch(header: bytes | None) -> int:
    """The plan epoch in a snapshot's header. Raises ValueError when it is none."""
    if header is None or not _EPOCH_DIGITS.fullmatch(header):
        raise ValueError(f"no plan epoch: {shown(header)}")
    return int(header)
