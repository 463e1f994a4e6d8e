"""Which options and which partitioners fit the place of use: the window of a query, and a service without batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenflow.errors import ConfigError
from evenflow.partitioners.registry import describe, names, options_type
from evenflow.partitioners.window import Lengths


def fitted(
    name: str, options: Mapping[str, Any], *, window_ms: int, slide_ms: int, windowed: bool = True
) -> dict[str, Any]:
    """The options, with this window added if the partitioner has a window and the options leave it open.

    window_ms, slide_ms: the window of the query, ms. windowed: whether a partitioner that can work with and without a
    window uses one. A partitioner that always has a window always gets this window. An option that is given is never
    changed. ConfigError for an unknown name.
    """
    kind = options_type(name)
    # Only options that derive from `Lengths` know of windows.
    if not issubclass(kind, Lengths):
        return dict(options)
    return kind.fitted(options, window_ms=window_ms, slide_ms=slide_ms, windowed=windowed)


def online_names() -> tuple[str, ...]:
    """The names of the partitioners that decide tuple by tuple."""
    return tuple(name for name in names() if not describe(name).micro_batch)


def check_online(name: str) -> None:
    """ConfigError unless this partitioner decides tuple by tuple, as the service needs."""
    if describe(name).micro_batch:
        raise ConfigError(
            f"partitioner {name!r} decides on whole micro-batches, but the service routes tuple by tuple",
            hint=f"choose one of: {', '.join(online_names())}; `evenflow simulate` runs {name}",
        )
