"""Obeys orders to go past a batch that cannot be fetched (`evenflow skip`).

Orders are looked for only while a partition is stuck. An order counts if it names the very offset at which
its partition is stuck. Any other order for that partition is refused, with the reason.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from evenflow.errors import ServiceError
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from partitioner_service.kafka.side_records import SideRecords
from partitioner_service.kafka.unfetchable import Unfetchable
from topics.follower import Follower
from topics.query.skip_orders import LONGEST_WORDS, ORDERS, SkipAnswer, SkipOrder, answer_key, open_orders
from topics.records import Record

log = logging.getLogger(__name__)

_LOOK_EVERY = 1.0
"""Seconds between two looks at the orders."""


class SkipOrders:
    """The orders for the partitions that this instance owns."""

    def __init__(
        self, settings: Settings, side: SideRecords, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings, self._side, self._clock = settings, side, clock
        self._follower: Follower | None = None
        self._records: dict[bytes, Record] = {}
        self._looked_at = clock() - _LOOK_EVERY

    def due(self, stuck: Mapping[int, Unfetchable]) -> list[SkipOrder]:
        """The orders to obey now, at most one for each partition. stuck: where partitions are stuck.

        An order for a stuck partition at another offset is answered with a refusal.
        """
        if not stuck:
            self.close()
            return []
        if self._clock() - self._looked_at < _LOOK_EVERY:
            return []
        self._looked_at = self._clock()
        obeyed = []
        try:
            orders = open_orders(self._look())
        except ServiceError as error:  # the data plane goes on without orders
            log.warning("orders to skip records cannot be read now: %s", error)
            self.close()  # what was read before the error is gone, so the next look reads everything
            return []
        for order in orders:
            at = stuck.get(order.partition)
            if at is None:
                continue
            if order.offset == at.offset:
                obeyed.append(order)
            else:
                self.answer(
                    order, SkipAnswer(False, f"the partition is stuck at offset {at.offset}: {at.why}")
                )
        return obeyed

    def answer(self, order: SkipOrder, answer: SkipAnswer) -> None:
        """Say what became of an order."""
        log.warning(
            "order of %s to skip %d[%d..%d] %s",
            *(order.who, order.partition, order.offset, order.through),
            "was obeyed" if answer.done else f"is refused: {answer.words}",
        )
        words = "".join(char if char.isprintable() else " " for char in answer.words)[:LONGEST_WORDS]
        self._records.pop(order.key, None)
        self._side.note(answer_key(order), SkipAnswer(answer.done, words).encode())

    def close(self) -> None:
        """Stop following the topic."""
        if self._follower is not None:
            self._follower.close()
            self._follower = None
            self._records.clear()

    def _look(self) -> list[Record]:
        """The newest record of each key that concerns orders."""
        if self._follower is None:
            self._follower = Follower(self._settings, ORDERS)
            news = self._follower.all_so_far()
        else:
            news = self._follower.new()
        for record in news:
            key = record.key() or b""
            if key.startswith(b"skip/"):
                self._records.pop(key, None)  # so that the newest comes last
                self._records[key] = record
        return list(self._records.values())


def behind(state: PartitionState, order: SkipOrder) -> PartitionState:
    """The state of the partition after this order:
    each skipped offset counts as one record that was rejected.
    """
    return replace(
        state,
        offset=order.through + 1,
        read=state.read + order.count,
        rejected=state.rejected + order.count,
    )
