"""Speeds are held against goals by the median of their turns."""

from __future__ import annotations

import pytest

from benchmarks.measuring.cpu import CpuMeter
from benchmarks.measuring.spread import Speed, judged
from benchmarks.service.data_plane import GOAL_CPU, Commits, cpu_judged


def _speeds(*rates: float) -> list[Speed]:
    return [Speed(rate, 1_000_000, {"data_plane": 0.5, "broker": 9.0}) for rate in rates]


@pytest.mark.parametrize(("ours", "met"), [((1.0, 3.0, 9.0), True), ((1.0, 2.9, 9.0), False)])
def test_a_goal_for_speed_is_met_by_the_median_of_neighbouring_turns(
    ours: tuple[float, ...], met: bool
) -> None:
    assert judged(_speeds(*ours), _speeds(1.0, 1.0, 1.0), 3.0) == {"goal": 3.0, "met": met}


def test_cpu_time_of_the_partitioner_is_judged_without_the_broker() -> None:
    result = cpu_judged(_speeds(1.0))
    assert result["cpu_microseconds_without_broker"] == {"min": 0.5, "median": 0.5, "max": 0.5}
    assert (result["goal_cpu"], result["goal_cpu_met"]) == (GOAL_CPU, True)


@pytest.mark.parametrize("moments", [[], [(1.0, 9)], [(1.0, 9), (2.0, 9)]])
def test_without_tuples_between_two_commits_the_error_says_what_to_do(
    moments: list[tuple[float, int]],
) -> None:
    with pytest.raises(ValueError, match="write more tuples"):
        Commits(moments).speed(CpuMeter())
