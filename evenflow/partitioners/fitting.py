"""Options that follow from where a partitioner is used: its window, and whether it may decide on batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from evenflow.errors import ConfigError
from evenflow.partitioners.registry import describe, names, options_type

Load = Literal["cumulative", "windowed"]


def fitted(
    name: str, options: Mapping[str, Any], *, window_ms: int, slide_ms: int, load: Load = "windowed"
) -> dict[str, Any]:
    """The options, and this window wherever the rule knows of windows and the options leave it open.

    `load` is what counts as load where the rule can do both; with cumulative load the window is left out. A rule
    that knows nothing but windows always gets it. An option that is given is never changed.
    """
    fields = options_type(name).model_fields
    added: dict[str, Any] = {}
    cumulative = False
    if "load" in fields and load in _words_of(fields["load"].annotation):
        added["load"] = load
        cumulative = {**added, **options}["load"] == "cumulative"
    if not cumulative and not {"window_ms", "slide_ms"} & set(options):
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
