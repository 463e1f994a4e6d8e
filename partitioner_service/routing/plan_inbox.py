"""Records of the plan topic go in, plans come out: what this instance has heard of plans.

Everything here is called from the data plane's thread, except `PlanInbox.offer`.
"""

from __future__ import annotations

from queue import SimpleQueue

from evenflow.plans import Plan
from evenflow.settings import Settings
from topics.query.plan_topic import PlanRecords, read_plans


class PlanInbox:
    """The plan topic as this instance reads it: all of it at the start, then the plan agent's records.

    The agent may begin at the start of the topic as well. A record that it hands over is passed over if it
    was read at the start, so each record counts once.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._reading = PlanRecords(settings)
        self._arrived: SimpleQueue[tuple[int, bytes | None]] = SimpleQueue()

    @property
    def ignored(self) -> int:
        """Number of records so far that were no plan of this query."""
        return self._reading.ignored

    def offer(self, offset: int, value: bytes | None) -> None:
        """Take a committed record of the plan topic. May be called from any thread."""
        self._arrived.put((offset, value))

    def published(self) -> list[Plan]:
        """Every plan that is committed now, in the order of the log.

        The plan topic is compacted, so the list is short.
        """
        return read_plans(self._settings, self._reading)

    def arrived(self) -> list[Plan]:
        """The plans that were offered since the last call, in the order of the log."""
        plans = []
        while not self._arrived.empty():
            offset, value = self._arrived.get()
            # The agent may begin at the start of the topic: what lies below `next_offset` was read by
            # `published`.
            plan = self._reading.of_value(value, offset) if offset >= self._reading.next_offset else None
            if plan is not None:
                plans.append(plan)
        return plans
