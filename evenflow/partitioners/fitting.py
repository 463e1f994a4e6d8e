"""Options that follow from where a partitioner is used: its window, and whether it may decide on batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from evenflow.errors import ConfigError
from evenflow.partitioners.registry import describe, names, options_type

_WINDOWED = ("windowed", "sliding")
_LENGTHS = {"window_ms", "slide_ms"}


def fitted(
    name: str, options: Mapping[str, Any], *, window_ms: int, slide_ms: int, windowed: bool = True
) -> dict[str, Any]:
    """The options, and this window wherever the rule knows of windows and the options leave it open.

    A rule that can do with and without a window does as `windowed` says. One that knows nothing but windows always
    gets this one. An option that is given is never changed.
    """
    fields = options_type(name).model_fields
    added: dict[str, Any] = {}
    since: list[str] = []
    windows_only = True
    for field, info in fields.items():
        words = _words_of(info.annotation)
        if "cumulative" in words:  # this option says which
            windows_only = False
            for word in words.intersection(_WINDOWED):
                added[field] = word if windowed else "cumulative"
            since.append(field)
    windowed = windowed and any(
        {**added, **options}.get(field, "cumulative") != "cumulative" for field in since
    )
    recent = options.get("head") == "window"  # forgets by a window, whatever its loads do
    if (windows_only or windowed or recent) and not _LENGTHS & set(options):
        added |= {"window_ms": window_ms, "slide_ms": slide_ms}
    return {**{field: value for field, value in added.items() if field in fields}, **options}


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


def _words_of(annotation: Any) -> set[Any]:
    """The words of a Literal, also within a union."""
    parts = get_args(annotation)
    return {part for part in parts if isinstance(part, str)}.union(*map(_words_of, parts))
