"""Options of aggregates that are numbers."""

from __future__ import annotations


def whole(text: str, least: int, most: int, what: str) -> int:
    """The whole number that is written. ValueError for anything that is none from `least` to `most`."""
    if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
        raise ValueError(f"{what} must be a whole number from {least:,} to {most:,}, not {text!r}")
    return int(text)
