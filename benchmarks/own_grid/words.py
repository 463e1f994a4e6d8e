"""Words of the tables."""

from __future__ import annotations


def title(kind: str) -> str:
    """The name of a stream in the tables."""
    return f"Zipf {kind}" if kind[0].isdigit() else kind


def verdict(met: bool) -> str:
    """Whether a goal is met, in words."""
    return "met" if met else "**missed**"
