"""Which options fit the place of use: the window of a query, and the batch interval of a service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenflow.partitioners.registry import options_type
from evenflow.partitioners.window import Lengths


def fitted(
    name: str,
    options: Mapping[str, Any],
    *,
    window_ms: int,
    slide_ms: int,
    windowed: bool = True,
    batch_ms: int | None = None,
) -> dict[str, Any]:
    """The options, with this window and batch interval added where the partitioner has them
    and the options do not.

    window_ms, slide_ms: the window of the query, ms. batch_ms: the batch interval, ms. None: it is not known.
    windowed: whether a partitioner that can work with and without a window uses one. A partitioner that
    always has a window always gets this window. An option that is given is never changed. ConfigError for an
    unknown name.
    """
    kind = options_type(name)
    if batch_ms is not None and "interval_ms" in kind.model_fields:
        options = {"interval_ms": batch_ms, **options}
    # Only options that derive from `Lengths` know of windows.
    if not issubclass(kind, Lengths):
        return dict(options)
    return kind.fitted(options, window_ms=window_ms, slide_ms=slide_ms, windowed=windowed)
