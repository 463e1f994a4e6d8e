"""Words of the tables."""

from __future__ import annotations


def title(kind: str) -> str:
    return f"Zipf {kind}" if kind[0].isdigit() else kind


def verdict(met: bool) -> str:
    return "met" if met else "**missed**"
