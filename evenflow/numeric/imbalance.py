"""The formula of imbalance, for plain numbers and without numba."""

from __future__ import annotations


def imbalance_of(fullest: float, total: float, workers: int) -> float:
    """I(m) of 002: the share of the fullest worker in all loads, less 1/n. 0 without load.

    fullest, total: loads in tuples, or in costs. workers: n.
    """
    return fullest / total - 1 / workers if total else 0.0
