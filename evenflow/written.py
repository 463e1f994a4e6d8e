"""Partitioners and policies as a person writes them: `NAME[:option=value,...]`, e.g. `pkg:d=3,window=sliding`.

A list of numbers is written with semicolons: `evenflow:weights=1;2;0.5`; `weights=2;` is a list of one.
"""

from __future__ import annotations

from typing import Any

from evenflow.errors import ConfigError

_WORDS: dict[str, bool | None] = {"true": True, "false": False, "none": None}


def parse_choice(text: str) -> tuple[str, dict[str, Any]]:
    """`"pkg:d=3,window=sliding"` -> ("pkg", {"d": 3, "window": "sliding"}); ConfigError when it is neither.

    Whether name and options exist is for `create` to say.
    """
    name, _, rest = text.partition(":")
    options: dict[str, Any] = {}
    for part in filter(None, (piece.strip() for piece in rest.split(","))):
        option, equals, value = part.partition("=")
        option = option.strip().replace("-", "_")
        if not equals or not option:
            raise ConfigError(f"{part!r} is no option", hint="write NAME:option=value,...")
        if option in options:
            raise ConfigError(f"{text!r} gives the option {option!r} twice")
        options[option] = _typed(value.strip())
    return name.strip(), options


def _typed(text: str) -> int | float | bool | str | list[int | float] | None:
    if ";" in text:
        return _numbers(text)
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    number = _number(text)
    return text if number is None else number


def _numbers(text: str) -> list[int | float]:
    pieces = [piece.strip() for piece in text.split(";")]
    numbers = [_number(piece) for piece in (pieces if pieces[-1] else pieces[:-1])]
    if not numbers or None in numbers:
        raise ConfigError(f"{text!r} is no list of numbers", hint="write NAME:option=1;2;0.5")
    return [number for number in numbers if number is not None]


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None
