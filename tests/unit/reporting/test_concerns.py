"""At once, then rarely while it lasts, and one line when it is over."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from evenflow.reporting import Concern, Concerns
from tests.unit.reporting.clock import Clock

LOG = logging.getLogger("test.concerns")
DRY = Concern(name="dry", text="no water", over="water again", fields={"litres": 0})


@pytest.fixture(autouse=True)
def _heard(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.INFO, LOG.name):
        yield


def test_what_lasts_is_said_at_once_then_every_five_minutes_and_when_it_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    concerns = Concerns(LOG, clock=clock)
    for _ in range(700):
        concerns.now([DRY])
        clock.now += 1
    assert caplog.messages == ["no water"] * 3
    assert concerns.lasting[0].seconds == 699
    concerns.now([])
    concerns.now([])
    assert caplog.messages[3:] == ["water again"]
    assert concerns.lasting == []


def test_what_comes_and_goes_is_said_no_more_often_than_what_stays(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    concerns = Concerns(LOG, clock=clock)
    for second in range(300):
        concerns.now([DRY] if second % 2 == 0 else [])
        clock.now += 1
    assert caplog.messages == ["no water", "water again"]
    concerns.now([DRY])
    assert caplog.messages[2:] == ["no water"]


def test_what_is_over_before_its_time_is_never_said(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    concerns = Concerns(LOG, clock=clock)
    slow = Concern(name="slow", text="slow", over="fast", after=10)
    for _ in range(5):
        concerns.now([slow])
        clock.now += 9
        concerns.now([])
        clock.now += 9
    assert caplog.messages == []
    concerns.now([slow])
    clock.now += 10
    concerns.now([slow])
    assert caplog.messages == ["slow"]


def test_what_had_lasted_before_it_was_handed_in_counts() -> None:
    clock = Clock()
    concerns = Concerns(LOG, clock=clock)
    concerns.now([Concern(name="old", text="old", already=60)])
    clock.now += 5
    concerns.now([Concern(name="old", text="old", already=65)])
    assert [lasting.seconds for lasting in concerns.lasting] == [65]


def test_concerns_of_names_that_come_and_go_take_no_memory() -> None:
    now = [0.0]
    concerns = Concerns(logging.getLogger("rarely"), clock=lambda: now[0])
    for number in range(2_000):
        now[0] += 10
        concerns.now([Concern(name=f"instance {number}", text="silent")])
    assert len(concerns._said_at) <= 31
