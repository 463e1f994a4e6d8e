"""The goal for balance counts where hashing is far from it."""

from __future__ import annotations

from typing import Any

from benchmarks.measuring.balance import judged_balance


def _judged(hashing: object, ours: object) -> list[dict[str, Any]]:
    rows = [
        {"zipf": 2.0, "way": "hash", "of_perfect": hashing},
        {"zipf": 2.0, "way": "ours", "of_perfect": ours},
        {"zipf": 1.0, "way": "ours", "of_perfect": 0.95},
    ]
    return judged_balance(rows, by="way", ours="ours", hashing="hash")


def test_where_hashing_is_more_than_three_times_slower_the_goal_is_met_or_missed() -> None:
    assert [row.get("met") for row in _judged(0.3, 0.9)] == [None, True, None]
    assert [row.get("met") for row in _judged(0.3, 0.899)] == [None, False, None]


def test_where_hashing_is_not_so_slow_there_is_nothing_to_meet() -> None:
    assert [row.get("met") for row in _judged(0.34, 0.5)] == [None, None, None]


def test_a_spread_is_judged_by_its_median() -> None:
    low = {"min": 0.1, "median": 0.2, "max": 0.6}
    high = {"min": 0.5, "median": 0.92, "max": 1.1}
    assert _judged(low, high)[1] == {"zipf": 2.0, "way": "ours", "of_perfect": high, "goal": 0.9, "met": True}


def test_rows_of_others_and_rows_without_a_share_stay_as_they_are() -> None:
    rows = [{"zipf": 1.0, "way": "ours", "seconds": 3}, {"zipf": 1.0, "way": "hash", "seconds": 4}]
    assert judged_balance(rows, by="way", ours="ours", hashing="hash") == rows
    assert "goal" not in _judged(0.3, 0.9)[0]
