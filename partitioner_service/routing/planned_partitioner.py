"""The partitioner and the plan that it follows: plans go in, the number of workers and the epoch come out."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from evenflow.numeric.arrays import Int64s
from evenflow.partitioners import Partitioner
from evenflow.plans import Plan, Schedule, UpcomingPlan
from evenflow.progress import PartitionState
from evenflow.reporting import on_every_line
from evenflow.reporting.words import moment
from evenflow.settings import Settings
from evenflow.windows import NO_MARK

log = logging.getLogger(__name__)


class PlanStretch(NamedTuple):
    """Tuples of a block that one plan assigns, and what to assign them with."""

    tuples: slice
    """Which tuples, in order of event time."""
    partitioner: Partitioner
    """The partitioner, scaled as the plan says until the next stretch is asked for."""
    epoch: int
    """Epoch of the plan, 0 before the first plan."""


class PlannedPartitioner:
    """The partitioner under the plan in force.

    The epoch never goes back. Tuples that an aborted transaction routed under a plan are routed under that
    plan or a later one again, and so are those after a restart.
    """

    def __init__(self, settings: Settings, partitioner: Partitioner, *, epoch: int = 0) -> None:
        self.partitioner = partitioner
        """The partitioner, with as many workers as the plan in force says."""
        self.epoch = epoch
        """Epoch of the plan in force. 0 before the first plan."""
        on_every_line(epoch=epoch)
        self._topic = settings.topic("plan")
        self._schedule = Schedule(slide_ms=settings.query.slide_ms, newest=epoch)

    @property
    def upcoming(self) -> UpcomingPlan | None:
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

    def stretches(self, times: Int64s) -> Iterator[PlanStretch]:
        """Cut tuples where a plan takes over. times: their event times (ms), ascending, shape (n,).

        A partitioner is rescaled in place, so a stretch must be assigned before the next one is asked for.
        """
        start = 0
        while start < len(times):
            self.pass_to(int(times[start]))
            begins = self._schedule.next_begins()
            stop = len(times) if begins is None else int(np.searchsorted(times, begins))
            yield PlanStretch(slice(start, stop), self.partitioner, self.epoch)
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
