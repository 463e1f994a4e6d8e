"""Bytes per second of the exchange, by a clock that the test sets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitioner_service.exchange.byte_rate import LATELY, ByteRate
from tests.examples import examples
from tests.unit.partitioner_service.exchange.instances import SLIDE, Group, telling


@dataclass
class Clock:
    """A clock that stands still. now: in s."""

    now: float = 50.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def _telling() -> Iterator[None]:
    with telling():
        yield


def test_a_rate_is_of_all_seconds_at_first_and_of_the_last_minute_later() -> None:
    clock = Clock()
    rate = ByteRate(clock=clock)
    rate.add(600)
    assert rate.per_second() is None, "nothing is known of a part of a second"
    clock.now += 1
    assert rate.per_second() == 600
    clock.now += 29
    assert rate.per_second() == 20
    rate.add(1_200)
    clock.now += 29.5
    assert rate.per_second() == pytest.approx(1_800 / 59.5)
    clock.now += 0.5
    assert rate.per_second() == pytest.approx(1_200 / 59), "the first second has left, as a whole"
    clock.now += 30
    assert rate.per_second() == 0


@examples(60)
@given(st.lists(st.tuples(st.floats(0, 40), st.integers(0, 10**9)), max_size=30), st.floats(1, 90))
def test_a_rate_times_its_seconds_is_what_came_in_them(steps: list[tuple[float, int]], rest: float) -> None:
    clock = Clock(0.0)
    rate, came = ByteRate(clock=clock), list[tuple[float, int]]()
    for pause, size in steps:
        clock.now += pause
        rate.add(size)
        came.append((clock.now, size))
    clock.now += rest
    begin = max(0, int(clock.now) - LATELY + 1)
    expected = sum(size for at, size in came if at >= begin) / (clock.now - begin)
    assert rate.per_second() == pytest.approx(expected)
    assert len(rate._seconds) <= LATELY


def test_instances_show_what_they_tell_and_hear_in_a_second_and_that_it_has_ended() -> None:
    group = Group(2)
    group.step(0, seconds=0.5)
    assert [instance.shown["rate_out"] for instance in group.instances] == [None, None]
    for slide in range(1, 20):
        group.step(slide * SLIDE, seconds=0.5)
    first, other = (instance.shown for instance in group.instances)
    assert first["rate_out"] == pytest.approx(first["bytes_out"] / 10, abs=0.06)
    assert first["rate_in"] == pytest.approx(first["bytes_in"] / 10, abs=0.06)
    assert first["rate_out"] > other["rate_out"] > 0, "the first one makes the tables"
    told = group.instances[0].channel.figures.state()
    assert (told.rate_in, told.rate_out) == (first["rate_in"], first["rate_out"])
    group.clock += LATELY + 1
    assert [instance.shown["rate_in"] for instance in group.instances] == [0, 0]
