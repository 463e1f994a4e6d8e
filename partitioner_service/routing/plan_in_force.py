"""Which plan this instance follows: records of the plan topic go in, the number of workers comes out.

Everything here is called from the data plane's thread, except `PlanLog.offer`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from queue import SimpleQueue

import numpy as np

from evenflow.numeric.arrays import Int64s
from evenflow.partitioners import Partitioner
from evenflow.plans import Plan, Schedule, Upcoming
from evenflow.progress import PartitionState
from evenflow.reporting import on_every_line
from evenflow.reporting.words import moment
from evenflow.settings import Settings
from evenflow.windows import NO_MARK
from topics.query.plans import Plans, read_plans

log = logging.getLogger(__name__)


class PlanLog:
    """The plan topic as this instance reads it: all of it at the start, then the plan agent's records.

    The agent may begin at the start of the topic as well. A record that it hands over is passed over if it
    was read at the start, so each record counts once.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._reading = Plans(settings)
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
            # The agent may begin at the start of the topic: what lies below `next_offset` was read by `published`.
            plan = self._reading.of_value(value, offset) if offset >= self._reading.next_offset else None
            if plan is not None:
                plans.append(plan)
        return plans


class InForce:
    """The partitioner under the plan in force.

    epoch: the epoch of that plan, 0 before the first plan. The epoch never goes back. Tuples that an aborted
    transaction routed under a plan are routed under that plan or a later one again, and so are those after a
    restart.
    """

    def __init__(self, settings: Settings, partitioner: Partitioner, *, epoch: int = 0) -> None:
        self.partitioner = partitioner
        self.epoch = epoch
        on_every_line(epoch=epoch)
        self._topic = settings.topic("plan")
        self._schedule = Schedule(slide_ms=settings.query.slide_ms, newest=epoch)

    @property
    def upcoming(self) -> Upcoming | None:
        """The plan that takes over next. None if no later plan is known."""
        return self._schedule.upcoming[0] if self._schedule.upcoming else None

    def learn(self, plan: Plan, *, reached: int | None) -> None:
        """Take in the next plan of the log.

        reached: largest event time (ms) routed so far, None at the start.
        """
        self._schedule.learn(plan, reached=reached)

    def learn_published(self, plans: list[Plan]) -> None:
        """Take in all plans of the log, at the start of the instance."""
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
        """Put the plan in force that is due after an assignment of input partitions.

        reached: event time (ms) of the furthest of these partitions, None if none has had a tuple.
        """
        if reached is not None:
            self.pass_to(reached)

    def stretches(self, times: Int64s) -> Iterator[slice]:
        """Cut tuples where a plan takes over. times: their event times (ms), ascending, shape (n,).

        While the caller holds a stretch, `partitioner` and `epoch` are those of the stretch's plan. So a
        stretch must be assigned before the next one is asked for.
        """
        start = 0
        while start < len(times):
            self.pass_to(int(times[start]))
            begins = self._schedule.next_begins()
            stop = len(times) if begins is None else int(np.searchsorted(times, begins))
            yield slice(start, stop)  # the caller assigns these before the next plan takes over
            start = stop

    def pass_to(self, time: int) -> None:
        """Put the plan in force that is due at this event time (ms), if it is another one."""
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
    """Largest event time (ms) of these input partitions. None before the first tuple."""
    return max((state.max_time for state in states.values() if state.max_time is not None), default=None)
