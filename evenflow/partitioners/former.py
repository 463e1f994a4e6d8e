"""Options of partitioners under the names that they had before.

Who writes a former name is told the name of today. A snapshot that was made with former names is restored, because its
state is the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class _Former:
    now: str
    values: Mapping[str, str] | None = None
    """Each value that the option had -> the same value of the option of today. None: values have not changed."""


_FORMER = {
    "load": _Former("window", {"cumulative": "cumulative", "windowed": "sliding"}),
    "mode": _Former("window", {"cumulative": "cumulative", "sliding": "sliding", "tumbling": "tumbling"}),
    "buckets": _Former("cells"),
    "most_buckets": _Former("most_cells"),
}


def today(option: str, known: Collection[str]) -> str | None:
    """What a former option of a partitioner is called now, if the partitioner knows that. None: it was no option."""
    former = _FORMER.get(option)
    return former.now if former and former.now in known else None


def how_to_write(option: str, value: Any) -> str:
    """A hint: a former option and its value as they are written today. KeyError if the option was none."""
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
    """The options of a snapshot under their names of today. What is unknown stays as it is."""
    made = {}
    for option, value in options.items():
        now = None if option in known else today(option, known)
        if now is None or now in options:
            made[option] = value
        else:
            values = _FORMER[option].values or {}
            made[now] = values.get(value, value)
    return made
