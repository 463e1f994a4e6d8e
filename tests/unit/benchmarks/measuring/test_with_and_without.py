"""The same work with something and without it."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.measuring.cpu import COMPILERS
from benchmarks.measuring.with_and_without import Pair, Piece, cost, having, pairs


def piece(number: int, *, cpu: float = 1.0, seconds: float = 1.0) -> Piece:
    used = {"spark_jvm": cpu + 0.1 * number, COMPILERS: 0.1 * number}
    return Piece(having(number), 1_000_000, seconds, used)


def costs(*with_it: float) -> dict[str, Any]:
    measured: list[Pair] = [(piece(0, cpu=cpu, seconds=cpu), piece(1)) for cpu in with_it]
    return cost(measured)


def test_neighbours_are_compared_the_one_that_has_it_first_and_the_warm_up_does_not_count() -> None:
    result = pairs([piece(number) for number in range(9)])
    assert [(one.having, other.having) for one, other in result] == [(True, False)] * 3


def test_both_come_first_equally_often() -> None:
    assert [having(number) for number in range(8)] == [True, False, False, True, True, False, False, True]


def test_a_quarter_more_time_is_a_fifth_less_throughput() -> None:
    result = costs(*[1.25] * 30)
    assert (result["cpu_ratio"]["median"], result["ratio"]["median"]) == (0.8, 0.8)


@pytest.mark.parametrize(
    ("with_it", "met"), [([1.01] * 30, True), ([1.04] * 30, False), ([0.9, 1.0, 1.1] * 10, None)]
)
def test_the_goal_is_judged_where_chance_leaves_no_doubt(with_it: list[float], met: bool | None) -> None:
    assert costs(*with_it)["met"] is met
