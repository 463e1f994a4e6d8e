"""Executors follow plans: what a cluster manager is asked for, when, and what is said when it does not
give it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest

from evenflow.errors import ServiceError
from evenflow.plans import Plan
from evenflow.settings import load_settings
from evenflow.windows import END_MARK
from spark_consumers.cluster.executors import Executors, ExecutorState
from spark_consumers.cluster.manager import RequestRefused
from tests.unit.reporting.clock import Clock

SETTINGS = load_settings(
    query={"name": "q", "window": "10s", "slide": "5s"},
    partitioner={"workers": 1, "routed_partitions": 8},
    spark={"master": "spark://127.0.0.1:7077", "partitions_per_slot": 1, "buckets": 1},
)


class Manager:
    """A cluster manager with room for so many, which gives at once what is asked. Records what it is
    asked.
    """

    def __init__(self, room: int) -> None:
        self.room = room
        self.asked: list[int] = []
        self.released: list[list[str]] = []
        self.refuses: str | None = None
        self.keeps: str | None = None
        self._running: list[str] = []
        self._started = 0
        self._target = 0

    def executors(self) -> list[str]:
        return list(self._running)

    def ask(self, total: int) -> None:
        self.asked.append(total)
        if self.refuses is not None:
            raise RequestRefused(self.refuses)
        self._target = total
        self.give()

    def release(self, executors: Sequence[str]) -> None:
        self.released.append(list(executors))
        if self.keeps is not None:
            raise RequestRefused(self.keeps)
        self._running = [each for each in self._running if each not in executors]

    def give(self) -> None:
        while len(self._running) < min(self.room, self._target):
            self._running.append(str(self._started))
            self._started += 1


class Topic:
    """Plans that were published."""

    def __init__(self, *plans: Plan) -> None:
        self._first, self._later = list(plans), list[Plan]()
        self.closed = False

    def publish(self, plan: Plan) -> None:
        self._later.append(plan)

    def all_so_far(self) -> list[Plan]:
        return self._first

    def new(self, timeout: float = 0.0) -> list[Plan]:
        came, self._later = self._later, []
        return came

    def close(self) -> None:
        self.closed = True


class Application:
    """The thing under test in its surroundings."""

    def __init__(self, manager: Manager | None, *plans: Plan, settings: Any = SETTINGS) -> None:
        self.topic = Topic(*plans)
        self.clock = Clock()
        self.mark: int | None = None
        self.fails: str | None = None
        self.follows = 0
        self.warmed: list[int] = []
        self.executors = Executors(
            settings,
            ("fused",),
            manager,
            follow=self._follow,
            reached=lambda: self.mark,
            slots=None if manager else 2,
            warm=self.warmed.append,
            clock=self.clock,
        )

    def _follow(self) -> Topic:
        self.follows += 1
        if self.fails:
            raise ServiceError(self.fails)
        return self.topic

    def wait(self, seconds: float = 0.5) -> ExecutorState:
        for _ in range(round(2 * seconds)):
            self.clock.now += 0.5
            self.executors.look()
        return self.executors.standing


def _with(**spark: Any) -> Any:
    """The settings with others of Spark."""
    return SETTINGS.model_copy(update={"spark": SETTINGS.spark.model_copy(update=spark)})


def plan(epoch: int, p: int, effective_from: int | None = None) -> Plan:
    return Plan(epoch=epoch, p=p, r=1) if effective_from is None else Plan(
        epoch=epoch, p=p, r=1, effective_from=effective_from
    )  # fmt: skip


def standing(*, slots: int, executors: int, epoch: int) -> ExecutorState:
    """Of an application that follows a plan of this epoch: 0 for the settings."""
    reducers = 1 if epoch else SETTINGS.reducers
    return ExecutorState(slots=slots, executors=executors, epoch=epoch, reducers=reducers)


@pytest.fixture(autouse=True)
def _heard(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "evenflow.spark")


def test_each_change_is_asked_for_once_and_the_newest_executors_leave_first() -> None:
    manager = Manager(room=8)
    application = Application(manager)
    assert application.wait(5) == standing(slots=1, executors=1, epoch=0)
    application.topic.publish(plan(1, 3))
    assert application.wait(5) == standing(slots=3, executors=3, epoch=1)
    application.topic.publish(plan(2, 2))
    assert application.wait(5) == standing(slots=2, executors=2, epoch=2)
    assert (manager.asked, manager.released) == ([1, 3, 2], [["2"]])


def test_more_executors_are_asked_for_at_once_and_fewer_only_when_the_plan_is_in_force() -> None:
    manager = Manager(room=8)
    application = Application(manager)
    application.wait()
    application.mark = 2_000
    application.topic.publish(plan(1, 4, effective_from=20_000))
    assert application.wait() == standing(slots=4, executors=4, epoch=0), "early does no harm"
    application.topic.publish(plan(2, 1, effective_from=40_000))
    application.mark = 39_999
    assert application.wait() == standing(slots=4, executors=4, epoch=1)
    application.mark = 40_000
    assert application.wait() == standing(slots=1, executors=1, epoch=2)
    application.topic.publish(plan(3, 3, effective_from=60_000))
    application.topic.publish(plan(4, 2, effective_from=55_000))
    assert application.wait().executors == 2, "an amended plan replaces what it makes void"
    assert manager.asked == [1, 4, 1, 2]


def test_all_slots_are_warmed_once_whenever_executors_have_registered() -> None:
    manager = Manager(room=8)
    application = Application(manager, settings=_with(executor_cores=2, reserve_executors=1))
    application.wait(5)
    assert application.warmed == [4], "two executors of two cores, one of them the reserve"
    application.topic.publish(plan(1, 3))
    application.wait(5)
    assert application.warmed == [4, 6]
    application.topic.publish(plan(2, 1))
    application.wait(5)
    assert application.warmed == [4, 6], "nobody is warmed when executors leave"


def test_without_a_cluster_manager_no_executor_is_warmed() -> None:
    application = Application(None)
    application.wait(5)
    assert application.warmed == []


def test_the_log_says_how_many_executors_are_a_reserve(caplog: pytest.LogCaptureFixture) -> None:
    Application(Manager(room=8), settings=_with(reserve_executors=2)).wait()
    assert "the settings want 3 executors of 1 cores, 2 of them in reserve" in caplog.text
    Application(Manager(room=8), plan(1, 3), settings=_with(reserve_executors=2, max_executors=4)).wait()
    assert "plan 1 (p 3, r 1) wants 4 executors of 1 cores, 1 of them in reserve" in caplog.text


def test_an_application_that_starts_follows_the_newest_plan_at_once() -> None:
    manager = Manager(room=8)
    application = Application(manager, plan(1, 8, 5_000), plan(2, 3, 10_000))
    assert application.wait() == standing(slots=3, executors=3, epoch=2)
    assert manager.asked == [3]


def test_without_input_for_long_the_newest_plan_counts() -> None:
    manager = Manager(room=8)
    application = Application(manager, plan(1, 4))
    application.topic.publish(plan(2, 1, 1_000_000))
    assert application.wait().executors == 4
    application.mark = END_MARK
    assert application.wait() == standing(slots=1, executors=1, epoch=2)


def test_a_cluster_manager_with_too_little_room_is_asked_once_and_said_to_be_short(
    caplog: pytest.LogCaptureFixture,
) -> None:
    manager = Manager(room=2)
    application = Application(manager, plan(1, 3))
    assert application.wait(200) == standing(slots=2, executors=2, epoch=1)
    assert manager.asked == [3]
    (said,) = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert said.startswith(
        "3 executors are wanted, and the cluster manager (spark://127.0.0.1:7077) has given 2; is there"
    )
    manager.room = 3
    manager.give()
    application.wait()
    assert caplog.messages[-1] == "the cluster manager has given the executors that are wanted"


def test_a_cluster_manager_that_refuses_is_asked_later_and_later_and_the_plan_stays(
    caplog: pytest.LogCaptureFixture,
) -> None:
    manager = Manager(room=8)
    application = Application(manager)
    application.wait()
    manager.refuses = "the master is gone"
    application.topic.publish(plan(1, 3))
    assert application.wait(300) == standing(slots=1, executors=1, epoch=1)
    assert 5 <= manager.asked.count(3) <= 9, "no spinning"
    (said,) = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert "has given 1; it refuses (the master is gone). The plan stays as it is" in said
    manager.refuses = None
    assert application.wait(61) == standing(slots=3, executors=3, epoch=1)


def test_a_cluster_manager_that_lets_nobody_go_is_asked_later_and_later() -> None:
    manager = Manager(room=8)
    application = Application(manager, Plan(epoch=1, p=4, r=1))
    application.wait()
    application.mark = END_MARK
    application.topic.publish(Plan(epoch=2, p=1, r=1))
    manager.keeps = "not now"
    application.wait(120)
    assert 2 <= len(manager.released) <= 6


def test_without_a_cluster_manager_a_plan_is_followed_and_said_once_to_change_p_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    local = SETTINGS.model_copy(update={"spark": SETTINGS.spark.model_copy(update={"master": "local[2]"})})
    application = Application(None, settings=local)
    application.wait()
    for epoch in (1, 2):
        application.topic.publish(plan(epoch, 3))
        assert application.wait() == ExecutorState(
            slots=2, executors=None, epoch=epoch, reducers=local.reducers
        )
    assert caplog.messages == [
        "spark.master is local[2]: a plan changes the workers in use (p) only; this application has 2 cores"
        " whatever it says"
    ]


def test_plans_that_cannot_be_read_are_tried_again_and_named_after_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    application = Application(Manager(room=8), plan(1, 2))
    application.fails = "no right to read"
    assert application.wait(50).executors == 1
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]
    application.wait(50)
    (said,) = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert said == "plans cannot be read (no right to read): executors stay as they are"
    assert application.follows < 10
    application.fails = None
    assert application.wait(61) == standing(slots=2, executors=2, epoch=1)
    application.executors.close()
    assert application.topic.closed
