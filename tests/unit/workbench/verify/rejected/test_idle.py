"""Rejections by a mark that a partition got while it was idle: each is checked by the marks there were."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.settings import Settings
from tests.unit.workbench.verify.pipeline_model import Topics, record, run

SETTINGS = Settings(query={"window": 40, "slide": 10, "aggregates": {"n": "count"}}, input={"partitions": 2})


@pytest.fixture
def topics() -> Topics:
    """Partition 0 slept until partition 1 was at 84: its tuples of 5, 31 and 42 came too late."""
    sleepy = [record("a", 5), record("a", 31), record("a", 90), record("a", 42), record("a", 91)]
    awake = [record("b", time) for time in (20, 64, 70, 84)]
    return run(SETTINGS, [sleepy, awake], idle_mark=84)


def rejected(topics: Topics, offset: int) -> dict[str, Any]:
    return next(r for r in topics.rejected if r["offset"] == offset)


def test_idle_rejections_by_a_mark_of_the_partition_that_was_awake_are_right(topics: Topics) -> None:
    assert [(r["offset"], r["reason"]) for r in topics.rejected] == [(0, "idle"), (1, "idle"), (3, "late")]
    assert topics.check().exact


def test_an_earlier_idle_mark_is_as_right_as_the_last_one(topics: Topics) -> None:
    rejected(topics, 0)["mark"] = 64
    rejected(topics, 1)["mark"] = 70
    assert topics.check().exact


@pytest.mark.parametrize(
    ("mark", "why"),
    [
        (None, "without the mark"),
        (63, "which no input partition has had"),
        (90, "but the last idle mark is 84"),
        (2**62, "but the last idle mark is 84"),
        (-(2**62), "but its pane ends at 10, the mark was"),
    ],
)
def test_an_idle_rejection_by_a_mark_that_was_never_given_is_found(
    topics: Topics, mark: int | None, why: str
) -> None:
    rejected(topics, 0)["mark"] = mark
    report = topics.check()
    assert report.kinds == {"rejected": 1}
    assert why in report.first[0].detail


def test_an_idle_rejection_by_a_smaller_mark_than_one_before_it_is_found(topics: Topics) -> None:
    rejected(topics, 1)["mark"] = 64
    report = topics.check()
    assert report.kinds == {"rejected": 1}
    assert "marks only grow" in report.first[0].detail


def test_a_tuple_whose_pane_was_open_by_the_mark_it_names_is_found(topics: Topics) -> None:
    rejected(topics, 0)["mark"] = 20
    rejected(topics, 1)["mark"] = 20  # its pane ends at 40; only the last idle mark, 84, is behind that
    report = topics.check()
    assert report.kinds == {"rejected": 1}
    assert (report.first[0].offset, report.first[0].detail) == (
        1, "rejected as idle, but its pane ends at 40, the mark was 20",
    )  # fmt: skip


def test_a_late_tuple_that_is_called_idle_is_found(topics: Topics) -> None:
    rejected(topics, 3)["reason"] = "idle"
    report = topics.check()
    assert report.kinds == {"rejected": 1}
    assert "it is late" in report.first[0].detail


def test_a_tuple_that_was_let_through_behind_an_idle_mark_is_found(topics: Topics) -> None:
    topics.rejected.remove(rejected(topics, 1))
    topics.recommit(0, rejected=2, routed=3)
    report = topics.check()
    assert [(d.kind, d.offset) for d in report.first if d.kind == "not-rejected"] == [("not-rejected", 1)]


def test_a_committed_idle_mark_that_no_partition_had_is_found(topics: Topics) -> None:
    topics.recommit(0, idle_mark=86, mark=91)
    report = topics.check()
    assert report.kinds == {"state": 1}
    assert report.first[0].column == "idle_mark"


def test_a_late_tuple_held_against_an_idle_mark_is_right() -> None:
    """The own mark is 50, the idle mark 84: late by the own mark, and the record names the larger one."""
    topics = run(SETTINGS, [[record("a", 50), record("a", 5)], [record("b", 84)]])
    topics.recommit(0, idle_mark=84, mark=84)
    topics.rows = []
    rejected(topics, 1)["mark"] = 84
    assert "rejected" not in topics.check().kinds
    rejected(topics, 1)["mark"] = 83
    assert topics.check().kinds["rejected"] == 1
