"""Rejections as `ahead`: each is checked by the clock that it names, and that clock by what is known of
it.
"""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.settings import Settings
from tests.unit.workbench.verify.pipeline_model import Topics, record, run
from workbench.verify.inputs import Clocks

NOW, HOUR = 1_780_000_000_000, 3_600_000
CLOCKS = Clocks(begun=NOW - 10 * HOUR, now=NOW)


def settings(most: str = "1h", **more: Any) -> Settings:
    query: dict[str, Any] = more | {
        "window": 40,
        "slide": 10,
        "aggregates": {"n": "count"},
        "max_ahead_of_clock": most,
    }
    return Settings(query=query, input={"partitions": 1})


def topics(clock: int | None = NOW, *, far: int = NOW + 2 * HOUR, appended: int | None = None) -> Topics:
    """The second of three tuples is in the future, and was rejected by this clock."""
    made = run(settings(), [[record("a", NOW - 50), record("a", NOW - 5)]])
    late = record("a", far)
    made.inputs.insert(1, made.inputs[0] | {"offset": 1, "value": late.value})
    made.inputs[2] = made.inputs[2] | {"offset": 2}
    for row in made.inputs:
        row["appended"] = appended
    rejection = {"partition": 0, "offset": 1, "reason": "ahead", "clock": clock, "value": late.value}
    made.rejected.append(rejection | {"key": None, "omitted": False})
    made.recommit(0, offset=3, read=3, rejected=1)
    return made


def test_a_tuple_that_was_too_far_ahead_of_the_clock_it_names_was_rejected_rightly() -> None:
    assert topics().check(clocks=CLOCKS).exact
    assert topics(NOW - 5 * HOUR).check(clocks=CLOCKS).exact
    assert topics(appended=NOW).check(clocks=CLOCKS).exact


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (lambda: topics(None), "without the clock"),
        (lambda: topics(NOW, far=NOW + HOUR), "is no more than 3600000 ms ahead"),
        (lambda: topics(0), "but the query began at"),
        (lambda: topics(NOW + 2 * HOUR, far=NOW + 9 * HOUR), "but now it is"),
        (lambda: topics(NOW - 1, appended=NOW), "but the broker appended it at"),
    ],
)
def test_a_rejection_by_a_clock_that_does_not_justify_it_is_found(made: Any, why: str) -> None:
    report = made().check(clocks=CLOCKS)
    assert report.kinds == {"rejected": 1}
    assert why in report.first[0].detail


def test_a_rejection_as_ahead_is_found_where_the_setting_is_off() -> None:
    made = topics()
    made.settings = settings("off")
    report = made.check(clocks=CLOCKS)
    assert report.kinds == {"rejected": 1}
    assert "is off" in report.first[0].detail


@pytest.mark.parametrize(("far", "appended"), [(NOW + 3 * HOUR, None), (NOW + HOUR + 1, NOW)])
def test_a_tuple_that_was_let_through_although_it_is_ahead_even_now_or_by_the_broker_is_found(
    far: int, appended: int | None
) -> None:
    made = run(settings(), [[record("a", NOW - 50), record("a", far)]])
    for row in made.inputs:
        row["appended"] = appended
    report = made.check(clocks=CLOCKS)
    assert report.kinds == {"not-rejected": 1}
    assert made.check(clocks=Clocks(now=far)).exact or appended is not None


def test_a_tuple_that_is_ahead_neither_confirms_nor_ends_a_jump() -> None:
    """Rejected as jumps are the first two of three tuples that agree; one of the future lies between them."""
    jumps = settings(max_jump=100, jump_confirmations=3)
    made = run(jumps, [[record("a", NOW - 50), record("a", NOW - 49), record("a", NOW - 48)]])
    assert [row["reason"] for row in made.rejected] == ["jump", "jump"]
    for rows in (made.inputs, made.rejected):
        for row in rows:
            row["offset"] += row["offset"] > 0
    far = record("a", NOW + 2 * HOUR)
    made.inputs.insert(1, made.inputs[0] | {"offset": 1, "value": far.value})
    rejection = {"partition": 0, "offset": 1, "reason": "ahead", "clock": NOW, "value": far.value}
    made.rejected.append(rejection | {"key": None, "omitted": False})
    made.recommit(0, offset=4, read=4, rejected=3)
    assert made.check(clocks=CLOCKS).exact
