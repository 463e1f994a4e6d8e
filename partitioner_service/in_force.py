"""Which plan this instance follows: records of the plan topic in, the partitioner's number of workers out.

Everything in here is called from the data plane's thread, but for `PlanLog.offer`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from queue import SimpleQueue

import numpy as np

from evenflow.arrays import Int64s
from evenflow.partitioners import Partitioner
from evenflow.plans import Plan, Schedule, Upcoming
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from evenflow.talking import on_every_line
from evenflow.talking.words import moment
from evenflow.windows import NO_MARK
from topics.plans import Plans, read_plans

log = logging.getLogger(__name__)


class PlanLog:
    """The plan topic as this instance reads it: all of it at the start, then what the plan agent hands over.

    The agent begins at the topic's start as well, so what was read before is passed over: each record counts once.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._reading = Plans(settings)
        self._arrived: SimpleQueue[tuple[int, bytes | None]] = SimpleQueue()

    @property
    def ignored(self) -> int:
        """Records so far that were no plan of this query."""
        return self._reading.ignored

    def offer(self, offset: int, value: bytes | None) -> None:
        """A committed record of the topic. From any thread."""
        self._arrived.put((offset, value))

    def published(self) -> list[Plan]:
        """Every plan that is committed now, in order. Bounded, because the topic is."""
        return read_plans(self._settings, self._reading)

    def arrived(self) -> list[Plan]:
        """The plans that were offered since, in order."""
        found = []
        while not self._arrived.empty():
            offset, value = self._arrived.get()
            plan = self._reading.of_value(value, offset) if offset >= self._reading.next_offset else None
            if plan is not None:
                found.append(plan)
        return found


class InForce:
    """The partitioner under the plan in force.

    epoch: of that plan, 0 before the first. It never goes back: what an aborted transaction routed with a plan is routed
    with it again, and so is what a restart goes on with.
    """

    def __init__(self, settings: Settings, partitioner: Partitioner, *, epoch: int = 0) -> None:
        self.partitioner = partitioner
        self.epoch = epoch
        on_every_line(epoch=epoch)
        self._topic = settings.topic("plan")
        self._schedule = Schedule(slide_ms=settings.query.slide_ms, newest=epoch)

    @property
    def upcoming(self) -> Upcoming | None:
        """The plan that takes over next."""
        return self._schedule.upcoming[0] if self._schedule.upcoming else None

    def learn(self, plan: Plan, *, reached: int | None) -> None:
        """The next plan of the log. reached: largest event time (ms) routed so far, None at the start."""
        self._schedule.learn(plan, reached=reached)

    def learn_published(self, plans: list[Plan]) -> None:
        """All plans of the log, at the start."""
        newest = max((plan.epoch for plan in plans), default=0)
        if newest < self.epoch:
            log.warning(
                "%s holds no plan of epoch %d, which was in force before: plans count from epoch %d on",
                self._topic,
                self.epoch,
                self.epoch + 1,
            )
        for plan in plans:
            self.learn(plan, reached=None)

    def continue_from(self, reached: int | None) -> None:
        """Input partitions were assigned, the furthest of which stands at this event time (ms): what is due is in force."""
        if reached is not None:
            self._pass_to(reached)

    def stretches(self, times: Int64s) -> Iterator[slice]:
        """Tuples in order of event time (ms), cut where a plan takes over. Its stretch is in hand while it is in force."""
        start = 0
        while start < len(times):
            self._pass_to(int(times[start]))
            begins = self._schedule.next_begins()
            stop = len(times) if begins is None else int(np.searchsorted(times, begins))
            yield slice(start, stop)
            start = stop

    def _pass_to(self, time: int) -> None:
        begins = {entry.plan.epoch: entry.begins for entry in self._schedule.upcoming}
        plan = self._schedule.pass_to(time)
        if plan is None:
            return
        before = self.partitioner.workers
        self.epoch = plan.epoch
        on_every_line(epoch=plan.epoch)
        self.partitioner.rescale(workers=plan.p)
        log.info(
            "plan epoch %d takes over %s: %s",
            plan.epoch,
            "from now on" if begins[plan.epoch] == NO_MARK else f"from {moment(begins[plan.epoch])} on",
            f"{plan.p} workers" if plan.p == before else f"{plan.p} workers instead of {before}",
        )


def furthest(states: Mapping[int, PartitionState]) -> int | None:
    """Largest event time (ms) of these input partitions, None before the first tuple."""
    return max((state.max_time for state in states.values() if state.max_time is not None), default=None)
