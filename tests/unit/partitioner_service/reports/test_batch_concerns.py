"""What an instance says of its micro-batches: how they are cut, and when they come late or are cut short."""

from __future__ import annotations

import logging
from typing import Any, get_args

import pytest

from evenflow.settings import load_settings
from evenflow.telemetry import BatchesState, BatchState
from partitioner_service.reports.batch_concerns import BatchConcerns
from partitioner_service.reports.log_lines import LogLines
from partitioner_service.reports.rejections import RejectionCounts
from partitioner_service.routing.gate import Why
from tests.unit.partitioner_service.reports.test_log_lines import status
from tests.unit.reporting.clock import Clock

FIGURES: dict[str, Any] = {
    "tuples": 900, "keys": 40, "split": 2, "bsi": 1.0, "bci": 1.0, "ksr": 1.05, "mpi": 1.0, "reduce_bsi": 1.0,
    "reduce_bci": 1.0, "reduce_ksr": 1.0, "reduce_mpi": 1.0, "took_ms": 300.0,
}  # fmt: skip


class Instance:
    """An instance with a batch each second. The tests say how late the last one came, and what was cut
    short.
    """

    def __init__(self, caplog: pytest.LogCaptureFixture, **partitioner: Any) -> None:
        how = {"name": "prompt", "batch_interval": 1_000, "batch_clock": "processing"} | partitioner
        self.settings = load_settings(query={"name": "q"}, input={"partitions": 1}, partitioner=how)
        self.clock = Clock()
        self.talk = LogLines(self.settings, clock=self.clock, wall=self.clock)
        self._caplog = caplog
        self._count = 0

    def goes_on(self, seconds: int, *, late: float | None = 0.0, **cut_short: int) -> None:
        """So many batches more. cut_short: by now, by reason."""
        for _ in range(seconds):
            self.clock.now += 1
            self._count += 1
            self.tell(late=late, **cut_short)

    def tell(self, *, late: float | None, **cut_short: int) -> None:
        """Say how it stands now."""
        batches = BatchesState(
            interval_ms=1_000,
            clock="processing",
            count=self._count,
            cut_short=cut_short,
            last=BatchState(**FIGURES, late=late),
        )
        shown = status(batches=batches.model_dump(mode="json"))
        with self._caplog.at_level(logging.INFO, logger="partitioner_service"):
            self.talk.tell(shown, RejectionCounts(self.settings), {})

    @property
    def said(self) -> list[str]:
        """The lines about batches."""
        return [line for line in self._caplog.messages if "micro-batch" in line]


def test_batches_that_come_late_are_told_once_and_so_is_their_end(caplog: pytest.LogCaptureFixture) -> None:
    instance = Instance(caplog)
    instance.goes_on(30)
    assert instance.said == []
    instance.goes_on(60, late=0.35)
    (line,) = instance.said
    assert "35 % of its interval of 1 s after its end, 300 ms after it was cut" in line
    assert "partitioner.batch_interval" in line
    instance.goes_on(5)
    assert instance.said[1:] == ["micro-batches come in time again"]


def test_one_late_batch_is_not_worth_a_line(caplog: pytest.LogCaptureFixture) -> None:
    instance = Instance(caplog)
    for _ in range(20):
        instance.goes_on(1, late=3.0)
        instance.goes_on(4)
    assert instance.said == []


def test_the_last_batch_before_a_silence_is_not_late_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    instance = Instance(caplog)
    instance.goes_on(20, late=0.5)
    assert len(instance.said) == 1
    for _ in range(20):
        instance.clock.now += 1
        instance.tell(late=0.5)
    assert instance.said[1:] == ["micro-batches come in time again"]


@pytest.mark.parametrize(
    ("reason", "setting"), [("memory", "128,000,000 bytes"), ("skew", "max_skew")], ids=["memory", "skew"]
)
def test_batches_that_are_cut_short_are_told_once_and_so_is_their_end(
    reason: str, setting: str, caplog: pytest.LogCaptureFixture
) -> None:
    instance = Instance(caplog)
    for number in range(1, 30):
        instance.goes_on(2, late=None, **{reason: number})
    (line,) = instance.said
    assert line.startswith("micro-batches are cut short")
    assert setting in line
    instance.goes_on(100, **{reason: 29})
    assert instance.said[1:] == [f"no micro-batch was cut short by {reason} any more"]


@pytest.mark.parametrize("reason", sorted({*get_args(Why)} - {"memory", "skew"}))
def test_what_an_operator_or_an_end_cuts_short_is_no_concern(
    reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    instance = Instance(caplog)
    instance.goes_on(20, late=None, **{reason: 3})
    assert instance.said == []


def test_without_batches_and_before_the_first_one_there_is_no_concern() -> None:
    settings = load_settings(query={"name": "q"}, input={"partitions": 1})
    concerns = BatchConcerns(settings, clock=Clock())
    first = BatchesState(interval_ms=1_000, clock="event", count=0).model_dump(mode="json")
    assert [*concerns.concerns(None), *concerns.concerns(first)] == []


@pytest.mark.parametrize(
    ("partitioner", "words"),
    [
        (
            {"name": "prompt"},
            (
                "micro-batches of 1 min of event time: each is routed once every input partition of this"
                " instance has passed"
            ),
        ),
        (
            {"batch_interval": "2s", "batch_clock": "processing"},
            "micro-batches of 2 s of processing time: each is cut before its end, by as long as",
        ),
        (
            {"batch_interval": "2s", "batch_clock": "processing", "batch_release": "off"},
            (
                "micro-batches of 2 s of processing time: each is cut at its end, or once more than"
                " 128,000,000 bytes wait"
            ),
        ),
    ],
    ids=["by event time", "early release", "at the beat"],
)
def test_an_instance_says_how_it_cuts_batches_when_it_begins(
    partitioner: dict[str, Any], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    query = {"name": "q", "window": "10min", "slide": "1min"}
    settings = load_settings(query=query, input={"partitions": 1}, partitioner=partitioner)
    with caplog.at_level(logging.INFO, logger="partitioner_service"):
        LogLines(settings).begins()
    (line,) = [line for line in caplog.messages if "micro-batch" in line]
    assert words in line


def test_an_instance_that_routes_tuple_by_tuple_says_nothing_of_batches(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = load_settings(query={"name": "q"}, input={"partitions": 1})
    with caplog.at_level(logging.INFO, logger="partitioner_service"):
        LogLines(settings).begins()
    assert len(caplog.messages) == 1
