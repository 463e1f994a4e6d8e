"""Somebody who watches what the instances tell, and orders them to go past batches that cannot be fetched."""

from __future__ import annotations

import json

from tests.faults.model.broker import Broker
from tests.faults.model.log import Entry
from tests.faults.processes.world import World
from topics.query.skip_orders import SkipOrder

_EVERY = 1.0
_AGAIN = 8.0
"""Seconds after which an order is given again, because the partition is stuck still."""


class Operator:
    """Knows of a stuck partition what telemetry says, and of its batch where it ends. topics: telemetry,
    orders.
    """

    def __init__(self, world: World, broker: Broker, topics: tuple[str, str]) -> None:
        self._world, self._broker = world, broker
        self._telemetry, self._orders = topics
        self._read = 0
        self._ordered: dict[tuple[int, int], float] = {}
        world.at(_EVERY, self._look)

    def _look(self) -> None:
        log = self._broker.log(self._telemetry, 0)
        entries = [] if log is None else log.entries[self._read :]
        self._read += len(entries)
        for entry in entries:
            for stuck in json.loads(entry.value or b"{}").get("stuck", ()):
                self._order(stuck["partition"], stuck["offset"])
        self._world.at(_EVERY, self._look)

    def _order(self, partition: int, offset: int) -> None:
        now, held = self._world.now, self._broker.log("in", partition)
        batch = held.entries[offset].batch if held is not None and offset < held.end else None
        if batch is None or now < self._ordered.get((partition, offset), -_AGAIN) + _AGAIN:
            return
        self._ordered[partition, offset] = now
        order = SkipOrder(
            partition=partition,
            offset=offset,
            through=batch.last,
            because="nobody can read it",
            who="the operator",
            at=round(self._world.wall() * 1000),
        )
        self._world.at(self._world.random.uniform(0.0, 3.0), lambda: self._write(order))

    def _write(self, order: SkipOrder) -> None:
        log = self._broker.log(self._orders, 0)
        assert log is not None
        log.append(Entry(order.key, order.encode(), None, order.at, None))
        self._broker.note("ORDER", f"skip {order.offset} to {order.through} of in[{order.partition}]")
