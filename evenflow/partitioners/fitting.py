"""Options that follow from where a partitioner is used: its window, and whether it may decide on batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenflow.errors import ConfigError
from evenflow.partitioners.registry import describe, names, options_type
from evenflow.partitioners.window import Lengths


def fitted(
    name: str, options: Mapping[str, Any], *, window_ms: int, slide_ms: int, windowed: bool = True
) -> dict[str, Any]:
    """The options, and this window wherever the rule knows of windows and the options leave it open.

    A rule that can do with and without a window does as `windowed` says. One that knows nothing but windows always
    gets this one. An option that is given is never changed.
    """
    kind = options_type(name)
    if not issubclass(kind, Lengths):
        return dict(options)
    return kind.fitted(options, window_ms=window_ms, slide_ms=slide_ms, windowed=windowed)


def online_names() -> tuple[str, ...]:
    """The names that decide tuple by tuple."""
    return tuple(name for name in names() if not describe(name).micro_batch)


def check_online(name: str) -> None:
    """ConfigError unless this partitioner decides tuple by tuple, as the service needs."""
    if describe(name).micro_batch:
        raise ConfigError(
            f"partitioner {name!r} decides on whole micro-batches, but the service routes tuple by tuple",
            hint=f"choose one of: {', '.join(online_names())}; `evenflow simulate` runs {name}",
        )
