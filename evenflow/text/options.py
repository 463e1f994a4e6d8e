"""Options of partitioners and policies, and how they are parsed as a person writes them.

Options are written as `option=value,...`. Partitioners and policies are written as `NAME[:option=value,...]`,
e.g. `pkg:d=3,window=sliding`. A list of numbers has semicolons: `evenflow:weights=1;2;0.5`. `weights=2;` is a
list of one. A class of one's own has the name `module:Class`, and so `module:Class[:option=value,...]`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from evenflow.errors import ConfigError
from evenflow.text.spelling import did_you_mean

_Options = TypeVar("_Options", bound=BaseModel)


class Options(BaseModel):
    """Options of one partitioner or policy: each field has a default, bounds and a description with its
    unit.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


_WORDS: dict[str, bool | None] = {"true": True, "false": False, "none": None}


def parse_choice(text: str) -> tuple[str, dict[str, Any]]:
    """(name, options) of a choice: `"pkg:d=3,window=sliding"` -> ("pkg", {"d": 3, "window": "sliding"}).

    ConfigError for options that are not in this form. Whether the name and the options exist is checked by
    `create`.
    """
    name, rest = name_and_rest(text)
    options = pairs(rest, owner=name, normal=lambda option: option.replace("-", "_"))
    return name, {option: _typed(value) for option, value in options.items()}


def choice_with(text: str, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """(name, options) of a choice whose options stand behind its name or in `options`. ConfigError if they
    do in both.
    """
    name, behind = parse_choice(text)
    if behind and options:
        raise ConfigError(
            f"{text!r} has options behind its name ({', '.join(behind)}), and others are"
            f" given beside it ({', '.join(options)})",
            hint=f"write all of them in one place: {name} as the name, and the options beside it",
        )
    return name, {**behind, **options}


def no_option(owner: str, word: str) -> ConfigError:
    """The error for a word behind a name that is no `option=value`. owner: the name."""
    return ConfigError(f"{owner}: {word!r} is no option", hint="write option=value,option=value")


def checked_options(
    kind: type[_Options], options: Mapping[str, Any], *, owner: str, defaults: Mapping[str, Any] | None = None
) -> _Options:
    """These options as the class that declares them.
    Partitioners and policies refuse options in the same words.

    owner: the name that the options belong to. defaults: where they differ from the class's own. ConfigError
    for an unknown option, and for a value out of range.
    """
    fields = kind.model_fields
    for option in options:
        if option not in fields:
            listed = f"{owner} has: {', '.join(fields)}" if fields else f"{owner} has no options"
            raise ConfigError(
                f"unknown option {option!r} of {owner}{did_you_mean(option, fields)}", hint=listed
            )
    try:
        return kind(**{**(defaults or {}), **options})
    except ValidationError as error:
        # pydantic reports every problem. The first one is told as a sentence of ours.
        problem = error.errors()[0]
        where = ".".join(str(part) for part in problem["loc"])
        subject = f"option {where!r} of {owner}: " if where else f"options of {owner}: "
        message = problem["msg"].removeprefix("Value error, ")
        value = f", not {problem['input']!r}" if where else ""
        raise ConfigError(f"{subject}{message[0].lower()}{message[1:]}{value}") from None


def name_of(text: str) -> str:
    """The name of a choice, without its options: `"pkg:d=3"` -> "pkg"."""
    return name_and_rest(text)[0]


def name_and_rest(text: str) -> tuple[str, str]:
    """(name, options as they are written) of a choice: `"pkg:d=3"` -> ("pkg", "d=3"), and
    `"module:Class:d=3"` -> ("module:Class", "d=3")."""
    name, _, rest = text.partition(":")
    attribute, _, options = rest.partition(":")
    if _is_dotted(name) and _is_dotted(attribute):
        return f"{name.strip()}:{attribute.strip()}", options
    return name.strip(), rest


def _is_dotted(text: str) -> bool:
    """Whether this is a name of Python, or several with dots between them."""
    return all(word.isidentifier() for word in text.strip().split("."))


def pairs(text: str, *, owner: str, normal: Callable[[str], str] = str) -> dict[str, str]:
    """The options of a text: `"a=1, b=2"` -> {"a": "1", "b": "2"}.

    owner: what the options belong to, for messages. normal: turns an option's name into its usual form.
    ConfigError for a piece that is no option, and for an option that is given twice.
    """
    options: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        option, equals, value = part.partition("=")
        option = normal(option.strip())
        if not equals or not option:
            raise ConfigError(f"{owner}: {part!r} is no option", hint="write option=value,option=value")
        if option in options:
            raise ConfigError(f"{owner}: the option {option!r} is given twice")
        options[option] = value.strip()
    return options


def _typed(text: str) -> int | float | bool | str | list[int | float] | None:
    if ";" in text:
        return _numbers(text)
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    number = _number(text)
    return text if number is None else number


def _numbers(text: str) -> list[int | float]:
    pieces = [piece.strip() for piece in text.split(";")]
    # A semicolon at the end makes a list of one number possible, so the empty piece behind it is dropped.
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
