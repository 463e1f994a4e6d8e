"""What looks on at committed states: growth of the input, and marks that idle partitions were given."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evenflow.progress import PartitionState
from tests.faults.checks.history import History
from tests.faults.processes.given_marks import GivenMarks
from tests.faults.processes.growth import Growth
from tests.faults.processes.world import World
from tests.faults.schedules.drawing import drawn
from tests.faults.schedules.schedule import BASE, FUTURE
from tests.faults.schedules.settings import settings_of

FAR = BASE + FUTURE
HONEST = BASE + 5_000
EMPTY = PartitionState(fingerprint="f", topic_id="t", offset=0)
ENDED = replace(EMPTY, ended_producers=("w",), announced=1)


def at(time: int) -> PartitionState:
    return replace(EMPTY, first_time=time, max_time=time, steady_from=time)


@pytest.fixture
def world() -> World:
    return World(0, [], History())


@pytest.fixture
def growth(world: World) -> Growth:
    watched = Growth(settings_of(drawn(0).shape, 0).query, world)
    watched.committed({0: EMPTY, 1: at(BASE)})
    watched.add(2)
    return watched


def test_a_partition_that_nobody_takes_in_is_left_out(growth: Growth, world: World) -> None:
    world.now = 16.0
    growth.committed({0: ENDED, 1: ENDED})
    assert growth.left_out() == growth.refused("p0") != []


@pytest.mark.parametrize("last_fault", [0.0, 5.0])
def test_a_partition_that_is_added_shortly_before_the_end_may_come_too_late(
    growth: Growth, world: World, last_fault: float
) -> None:
    world.now, world.last_fault = 14.0 + last_fault, last_fault
    growth.committed({0: ENDED, 1: ENDED})
    assert growth.left_out() == growth.refused("p0") == []


def test_nobody_may_say_that_partitions_came_too_late_before_the_end_or_after_they_were_taken_in(
    growth: Growth,
) -> None:
    growth.committed({0: ENDED})
    assert growth.refused("p0")
    growth.committed({2: EMPTY})
    growth.committed({1: ENDED, 2: ENDED})
    assert growth.refused("p0")


def test_a_partition_is_taken_in_with_the_mark_of_the_slowest(growth: Growth) -> None:
    growth.committed({2: EMPTY})
    assert growth.wrong == []
    growth.add(3)
    growth.committed({3: replace(EMPTY, idle_mark=BASE)})
    assert len(growth.wrong) == 1


def test_who_has_no_tuple_may_follow_the_first_one_of_the_whole_input_however_far_it_is(world: World) -> None:
    marks = GivenMarks(HONEST, world)
    marks.committed({0: at(FAR), 1: EMPTY})
    marks.committed({1: replace(EMPTY, idle_mark=FAR)})
    assert marks.wrong == []
    assert marks.astray == {1}


def test_the_partition_whose_tuple_is_from_far_ahead_may_sleep_there(world: World) -> None:
    marks = GivenMarks(HONEST, world)
    marks.committed({0: at(BASE), 1: at(FAR)})
    marks.committed({1: replace(at(FAR), idle_mark=FAR - 1_000, asleep=True)})
    assert marks.wrong == []


def test_who_has_a_tuple_or_a_mark_never_follows_one_from_far_ahead(world: World) -> None:
    marks = GivenMarks(HONEST, world)
    marks.committed({0: at(FAR), 1: at(BASE), 2: replace(EMPTY, idle_mark=BASE)})
    marks.committed({1: replace(at(BASE), idle_mark=FAR)})
    marks.committed({2: replace(EMPTY, idle_mark=FAR)})
    assert len(marks.wrong) == 2


def test_nobody_follows_a_tuple_from_far_ahead_once_another_partition_has_tuples(world: World) -> None:
    marks = GivenMarks(HONEST, world)
    marks.committed({0: at(FAR), 1: at(BASE), 2: EMPTY})
    world.now = 11.0
    marks.committed({2: replace(EMPTY, idle_mark=FAR)})
    assert len(marks.wrong) == 1
