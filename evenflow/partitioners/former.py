"""Options of partitioners under the names that they had before.

A user who writes a former name is told the name of today. A snapshot with former names can be restored, because the
state behind them is the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class _Former:
    now: str
    values: Mapping[str, str] | None = None
    """Each value of the former option -> the same value of the option of today. None: the values have not changed."""


_FORMER = {
    "load": _Former("window", {"cumulative": "cumulative", "windowed": "sliding"}),
    "mode": _Former("window", {"cumulative": "cumulative", "sliding": "sliding", "tumbling": "tumbling"}),
    "buckets": _Former("cells"),
    "most_buckets": _Former("most_cells"),
}


def today(option: str, known: Collection[str]) -> str | None:
    """The name of today of a former option, if it is among the `known` options. Otherwise None."""
    former = _FORMER.get(option)
    return former.now if former and former.now in known else None


def how_to_write(option: str, value: Any) -> str:
    """A hint how to write a former option and its value today. KeyError if there was no such option."""
    former = _FORMER[option]
    if former.values is None:
        return f"write {former.now}={value}"
    now = former.values.get(str(value))
    return (
        f"write {former.now}={now}"
        if now
        else f"write {former.now}=, one of: {', '.join(former.values.values())}"
    )


def translated(options: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """The options of a snapshot under their names of today. An unknown option stays as it is."""
    current_options = {}
    for option, value in options.items():
        now = None if option in known else today(option, known)
        # A snapshot that already has the new name keeps both, and the old one is refused later.
        if now is None or now in options:
            current_options[option] = value
        else:
            values = _FORMER[option].values or {}
            current_options[now] = values.get(value, value)
    return current_options
