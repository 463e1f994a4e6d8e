"""A partitioner or policy whose options stand behind its name:
`name = "own:Mine:turns=3"` is that name with `options`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenflow.errors import ConfigError
from evenflow.text.options import choice_with

CHOICES: Mapping[str, str] = {"partitioner": "name", "control": "policy"}
"""Each table that has `options` -> its field with the name that they are of."""


def taken_apart(values: Any, field: str) -> Any:
    """The values of a table as the user gave them, where the options behind the name
    in `field` stand in `options`.

    Anything that is no such table is returned as it is. ConfigError for options in both places, and for one
    that is none.
    """
    if not isinstance(values, Mapping) or not isinstance(values.get(field), str) or ":" not in values[field]:
        return values
    beside = values.get("options") or {}
    if not isinstance(beside, Mapping):
        return values
    name, options = choice_with(values[field], beside)
    empty = [option for option, value in options.items() if value is None]
    if empty:
        raise ConfigError(f"the option {empty[0]!r} of {name} is none", hint="leave it out of the settings")
    return {**values, field: name} | ({"options": options} if options else {})


def checked_apart(values: Any, field: str) -> Any:
    """As `taken_apart`, for a validator of pydantic: ValueError in the same words."""
    try:
        return taken_apart(values, field)
    except ConfigError as error:
        raise ValueError(error.message if error.hint is None else f"{error.message}: {error.hint}") from None
