"""Heartbeats of a stage: not while it finishes micro-batches, soon after it stops to, then every few
seconds.
"""

from __future__ import annotations

import pytest

from spark_consumers.reports.pulse import Beat, Pulse
from tests.unit.reporting.clock import Clock


class Stage:
    """A pulse that is asked four times a second."""

    def __init__(self, interval_ms: int) -> None:
        self.clock = Clock()
        self.pulse = Pulse(interval_ms, clock=self.clock)
        self.runs = False
        self.asked = 0
        self.beats: list[tuple[float, Beat]] = []

    def _running(self) -> bool:
        self.asked += 1
        return self.runs

    def wait(self, seconds: float) -> None:
        for _ in range(round(4 * seconds)):
            self.clock.now += 0.25
            beat = self.pulse.due(self._running)
            if beat is not None:
                self.beats.append((self.clock.now, beat))


@pytest.mark.parametrize(
    ("interval_ms", "first", "again"),
    [(100, 1.0, 5.0), (1_000, 1.5, 5.0), (5_000, 7.5, 5.0), (20_000, 30.0, 20.0)],
)
def test_an_idle_stage_says_so_after_a_batch_interval_and_then_every_five_seconds_at_most(
    interval_ms: int, first: float, again: float
) -> None:
    stage = Stage(interval_ms)
    begin = stage.clock.now
    stage.wait(first + 2 * again)
    assert [at - begin for at, _ in stage.beats] == [first, first + again, first + 2 * again]
    assert {beat for _, beat in stage.beats} == {Beat(None, None)}


def test_a_stage_that_finishes_micro_batches_says_nothing_and_is_not_even_asked() -> None:
    stage = Stage(1_000)
    for batch in range(20):
        stage.wait(1)
        stage.pulse.finished(batch)
    assert (stage.beats, stage.asked) == ([], 0)


def test_a_long_micro_batch_says_since_when_it_runs() -> None:
    stage = Stage(1_000)
    stage.pulse.finished(4)
    stage.runs = True
    stage.wait(7)
    assert [beat for _, beat in stage.beats] == [Beat(4, 1_500), Beat(4, 6_500)]
    stage.pulse.finished(5)
    assert stage.pulse.idle_seconds == 0
    stage.runs = False
    stage.wait(4)
    stage.runs = True
    stage.wait(3.5)
    assert [beat for _, beat in stage.beats[2:]] == [Beat(5, None), Beat(5, 2_500)], (
        "it began after it was idle"
    )


def test_how_long_a_stage_is_idle_counts_from_its_last_micro_batch() -> None:
    stage = Stage(1_000)
    stage.pulse.finished(1)
    stage.wait(30)
    assert stage.pulse.idle_seconds == 30
    stage.pulse.finished(2)
    assert stage.pulse.idle_seconds == 0


def test_a_stage_counts_what_it_has_finished_and_how_long_ago_the_first_one_ended() -> None:
    stage = Stage(1_000)
    assert stage.pulse.run == (0, None)
    stage.wait(5)
    stage.pulse.finished(40)
    assert stage.pulse.run == (1, 0)
    stage.wait(2)
    stage.pulse.finished(41)
    assert stage.pulse.run == (2, 2_000)
