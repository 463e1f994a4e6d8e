"""The control plane's half of the exchange: what stands in the sync topic reaches the instances, late,
twice or never.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from partitioner_service.plane.data_plane import DataPlane
from tests.faults.model.broker import Broker
from tests.faults.processes.world import Crash, World

_EVERY = 0.2
_SLOWEST = 1.0
_LOST, _TWICE, _DAMAGED = 0.15, 0.1, 0.05


class Sync:
    """Hands records of the sync topic to the planes that live. planes: by name, as they are at each
    moment.
    """

    def __init__(self, world: World, broker: Broker, planes: Mapping[str, DataPlane], topic: str) -> None:
        self._world, self._broker, self._planes, self._topic = world, broker, planes, topic
        self._read = 0
        self.tables: set[int] = set()
        """Rounds of which an instance has heard a table."""
        world.at(_EVERY, self._look)

    def _look(self) -> None:
        log = self._broker.log(self._topic, 0)
        entries = [] if log is None else log.entries[self._read :]
        self._read += len(entries)
        for entry in entries:
            for name in list(self._planes):
                self._deliver(name, entry.value)
        for plane in list(self._planes.values()):
            if plane.channel is not None:
                with suppress(Crash):
                    plane.channel.tick()
                number = plane.channel.figures.shown()["round"]
                if number is not None:
                    self.tables.add(number)
        self._world.at(_EVERY, self._look)

    def _deliver(self, name: str, value: bytes | None) -> None:
        draw = self._world.random
        chance = draw.random()
        if chance < _LOST:
            return
        if chance > 1 - _DAMAGED and value:
            at = draw.randrange(len(value))
            value = value[:at] + bytes([draw.randrange(256)]) + value[at + 1 :]
        for _ in range(2 if chance < _LOST + _TWICE else 1):
            self._world.at(draw.uniform(0.0, _SLOWEST), lambda: self._offer(name, value))

    def _offer(self, name: str, value: bytes | None) -> None:
        plane = self._planes.get(name)
        if plane is not None and plane.channel is not None:
            with suppress(Crash):
                plane.channel.offer(value)
