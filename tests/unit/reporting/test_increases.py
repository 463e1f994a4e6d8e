"""A line every ten seconds in which something has happened, and none in which nothing has."""

from __future__ import annotations

from evenflow.reporting import Increases
from tests.unit.reporting.clock import Clock


def test_an_increase_is_due_every_ten_seconds_and_says_what_has_grown() -> None:
    clock = Clock()
    increases = Increases(clock=clock)
    assert increases.due({"read": 5}) is None
    clock.now += 10
    increase = increases.due({"read": 50})
    assert increase is not None
    assert (increase.grown, increase.per_second("read")) == ({"read": 50}, 5.0)
    clock.now += 9
    assert increases.due({"read": 500}) is None
    clock.now += 1
    assert increases.due({"read": 500}).grown == {"read": 450}  # type: ignore[union-attr]


def test_nothing_is_said_while_nothing_happens_and_rates_do_not_count_the_silence() -> None:
    clock = Clock()
    increases = Increases(clock=clock)
    for _ in range(1_000):
        clock.now += 1
        assert increases.due({"read": 0}) is None
    clock.now += 10
    assert increases.due({"read": 100}).per_second("read") == 10.0  # type: ignore[union-attr]


def test_the_last_line_does_not_wait() -> None:
    clock = Clock()
    increases = Increases(clock=clock)
    clock.now += 1
    assert increases.due({"read": 7}, now=True).grown == {"read": 7}  # type: ignore[union-attr]
    assert increases.due({"read": 7}, now=True) is None
