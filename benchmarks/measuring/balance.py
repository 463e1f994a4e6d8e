"""The goal for balance: near perfect where hashing is far from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

GOAL = 0.9
"""The least share of the speed of perfect balance."""
BEYOND = 3.0
"""How many times slower than perfect balance hashing is at least where the goal counts."""


def judged_balance(
    rows: Sequence[dict[str, Any]], *, by: str, ours: str, hashing: str
) -> list[dict[str, Any]]:
    """The rows, of which those of ours have the goal too, and whether it is met.

    `met` is None where hashing is not so slow under the same skew. There is no goal then. Rows without
    `of_perfect` stay as they are.

    rows: each with `zipf`, `of_perfect` (a number or a spread) and a name in the column `by`. ours, hashing:
    these names.
    """
    slow = {row["zipf"] for row in rows if row[by] == hashing and _slow(row)}
    return [
        row | {"goal": GOAL, "met": _share(row) >= GOAL if row["zipf"] in slow else None}
        if row[by] == ours and "of_perfect" in row
        else row
        for row in rows
    ]


def _slow(row: dict[str, Any]) -> bool:
    return "of_perfect" in row and _share(row) * BEYOND < 1


def _share(row: dict[str, Any]) -> float:
    share = row["of_perfect"]
    return float(share["median"] if isinstance(share, dict) else share)
