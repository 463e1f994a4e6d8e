"""A queue of micro-batches in virtual time, with a real policy and the controller's planner.

Batch n (from 1) covers the event time from n - 1 to n intervals and is complete at n. Work on it begins when
it is complete and the batch before is done. After each batch the policy sees W, and the planner gives a plan
or none, as in `controller/decide.py`. A plan holds from an event time on that no partitioner has reached when
it is published. So a batch gets the p that is in force at its beginning.

Work takes the cost of scheduling and the data over p. A group shares the cost of scheduling one batch. An
amendment costs the batches nothing, because workers take it while they work.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evenflow.elasticity.groups import GroupPlanner
from evenflow.elasticity.observation import Observation, StageObservation
from evenflow.elasticity.policy import Policy
from evenflow.numeric.arrays import Float64s, Int64s
from evenflow.plans import Plan, Schedule

INTERVAL_MS = 1_000
Way = Literal["one at a time", "group", "group ahead"]
WAYS: tuple[Way, ...] = ("one at a time", "group", "group ahead")
_KEYS = 1_000.0
"""Distinct keys of every batch: only the rate moves."""


def throughput(cost: float, group: int) -> float:
    """Data per interval at the stability line, relative to one batch at a time. cost: in batch intervals.

    Infinite if scheduling one batch takes the whole interval.
    """
    return (1 - cost / group) / (1 - cost) if cost < 1 else math.inf


@dataclass(frozen=True)
class Scheduling:
    """How batches are scheduled."""

    way: Way
    """One at a time, in groups, or in groups that a decision may amend."""
    group: int
    """Batches of a group."""
    cost: float
    """Time that scheduling one batch or one group takes, in batch intervals."""

    @property
    def share(self) -> float:
        """What a batch pays for scheduling, in intervals."""
        return self.cost / self.size

    @property
    def size(self) -> int:
        """Batches that are scheduled at once."""
        return 1 if self.way == "one at a time" else self.group

    def planner(self) -> GroupPlanner:
        """The controller's planner. One at a time, a decision holds with the next batch."""
        if self.way == "one at a time":
            return GroupPlanner(slide_ms=INTERVAL_MS, group=1, lead=0)
        return GroupPlanner(slide_ms=INTERVAL_MS, group=self.group, amend=self.way == "group ahead")

    def load(self, data: float, p: int) -> float:
        """W of a batch, its processing time in intervals. data: what one worker takes in so many
        intervals.
        """
        return self.share + data / p


@dataclass(frozen=True, eq=False)
class QueueCourse:
    """The batches. Arrays of shape (batches,)."""

    loads: Float64s
    """W, processing time over the interval."""
    delays: Float64s
    """Time from a batch's completion to the end of its work, in intervals."""
    p: Int64s
    """Workers of each batch."""


def play(data: Float64s, scheduling: Scheduling, policy: Policy, *, p: int) -> QueueCourse:
    """Play these batches. data: shape (batches,), as `Scheduling.load` takes it. p: workers at the
    beginning.
    """
    planner, schedule = scheduling.planner(), Schedule(INTERVAL_MS)
    course = QueueCourse(np.empty(len(data)), np.empty(len(data)), np.empty(len(data), np.int64))
    free = 0.0
    for at, amount in enumerate(data.tolist()):
        number = at + 1
        due_plan = schedule.pass_to(at * INTERVAL_MS)
        if due_plan is not None:
            p = due_plan.p
        load = scheduling.load(amount, p)
        free = max(free, float(number)) + load
        course.loads[at], course.delays[at], course.p[at] = load, free - number, p
        plan = _judged(policy, planner, schedule, number=number, p=p, load=load, free=free, rate=amount)
        if plan is not None:
            planner.learn(plan)
            schedule.learn(plan, reached=int(free * INTERVAL_MS))
    return course


def _judged(
    policy: Policy,
    planner: GroupPlanner,
    schedule: Schedule,
    *,
    number: int,
    p: int,
    load: float,
    free: float,
    rate: float,
) -> Plan | None:
    """The plan after this batch, None if none is needed. free: when the batch is done, in intervals."""
    observation = Observation(
        step=number,
        interval_ms=INTERVAL_MS,
        p=p,
        r=1,
        load=load,
        rate=rate,
        keys=_KEYS,
        backlog_ms=(free - number) * INTERVAL_MS,
        stages={"combine": StageObservation(load=load)},
        # A plan is realised once a batch with it is done.
        settling=planner.pending or bool(schedule.upcoming),
    )
    decision = policy.decide(observation)
    return planner.step(
        batch=number,
        target=None if decision.held else (decision.p, decision.r),
        in_force=(p, 1),
        reason=decision.reason,
        reached=int(free * INTERVAL_MS),
        batch_ms=INTERVAL_MS,
    )
