"""Reads options of aggregates that are numbers."""

from __future__ import annotations


def whole(text: str, least: int, most: int, name: str) -> int:
    """The whole number in `text`. Raises ValueError unless it is from `least` to `most`. name: what
    messages call it.
    """
    # `isdigit` alone would accept digits of other scripts, and some that `int` cannot read.
    if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
        raise ValueError(f"{name} must be a whole number from {least:,} to {most:,}, not {text!r}")
    return int(text)
