"""What commands share: the settings that `--config` names, a console for tables,
the parsing of durations and numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import typer
    from rich.console import Console

    from evenflow.settings import Settings


def settings_of(context: typer.Context, **overrides: Any) -> Settings:
    """Settings from the file given with --config (or evenflow.toml), EVENFLOW_* and `overrides`."""
    from evenflow.settings import load_settings

    return load_settings(context.obj, **overrides)


def table_console(*, width: int, highlight: bool = True, stderr: bool = False) -> Console:
    """A console for tables. width: columns where there is no terminal.

    In a pipe rich would take the width for 80 columns and fold the texts.
    """
    from rich.console import Console

    console = Console(highlight=highlight, stderr=stderr)
    return console if console.is_terminal else Console(highlight=highlight, stderr=stderr, width=width)


def say_plain(names: Iterable[str]) -> None:
    """Say once, on standard error, which of these partitioners are in plain Python.
    ConfigError for an unknown name.
    """
    import typer

    from evenflow.partitioners import is_plain_python

    if plain := [name for name in dict.fromkeys(names) if is_plain_python(name)]:
        typer.echo(
            f"{', '.join(plain)}: plain Python, which takes a microsecond or more for each tuple", err=True
        )


def milliseconds(option: str, text: str) -> int:
    """The milliseconds of a duration: `"60s"` -> 60000. ConfigError names the option."""
    from evenflow.errors import ConfigError
    from evenflow.settings.durations import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise ConfigError(f"{option}: {error}") from None


def _whole(text: str) -> int:
    """A whole number, which may be written as 1e7 or 10_000_000. BadParameter for anything else."""
    import typer

    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = int(float(text))
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"{text!r} is not a whole number") from None
    if number != float(text):
        raise typer.BadParameter(f"{text!r} is not a whole number")
    return number


def counted(help_text: str) -> Any:
    """A typer option that is a whole number."""
    import typer

    return typer.Option(parser=_whole, metavar="NUMBER", help=help_text)
