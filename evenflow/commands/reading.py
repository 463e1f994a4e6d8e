"""The options and messages that all commands which read a file share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenflow.grammar import inputs

if TYPE_CHECKING:
    from evenflow.sources.source import Source, SourceOptions

_NUMBERED_RATE = 1000.0


def _character(text: str) -> str:
    """A delimiter as a user writes it: one character, or \\t for a tab. BadParameter for anything else."""
    from evenflow.settings.sections.input import parse_delimiter

    try:
        return parse_delimiter("\t" if text == "\\t" else text)
    except ValueError as error:
        raise typer.BadParameter(f"{error} (a tab is \\t)") from None


Format = Annotated[
    inputs.FileFormat | None,
    typer.Option(
        "--format",
        help=(
            "What the file is: csv, json (one object a line), words (running text), parquet. Default: as its"
            " name says, else as its first lines do; a .txt file of which columns are named is csv."
        ),
    ),
]
TimeUnit = Annotated[
    inputs.TimeUnit | None,
    typer.Option("--time-unit", help="Its unit. Default: the query's, else ms."),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        parser=_character,
        metavar="C",
        help="Delimiter of CSV. Default: as its first rows say.",
    ),
]
NoHeader = Annotated[bool, typer.Option("--no-header", help="CSV without names: the columns are c0, c1, ...")]
Encoding = Annotated[str, typer.Option("--encoding", help="Encoding of CSV and text.")]

Input = Annotated[
    str | None,
    typer.Option("--input", metavar="FILE", help="A file (.csv[.gz], ...) instead of --stream."),
]
Key = Annotated[str | None, typer.Option(help="Key column of --input.")]
Time = Annotated[
    str | None, typer.Option(help="Event time column of --input. Default: numbered, see --rate.")
]
Cost = Annotated[
    str | None,
    typer.Option(
        "--cost",
        help=(
            "Column of --input: how much work a tuple is, a number from 1 to 1,000,000. Loads are then sums"
            " of costs. Default: each tuple counts 1."
        ),
    ),
]
MaxDisorder = Annotated[
    str | None,
    typer.Option(help="How far times of --input may run back. Default: the window, without one 60s."),
]


def options_of_file(
    *, key: str | None, time: str | None, cost: str | None = None, **words: Any
) -> SourceOptions:
    """Source options for a command that needs only the keys,
    the event times and perhaps the costs of a source.

    Without a time column the rows are numbered, at `event_rate` tuples per second (default 1,000). words:
    further fields of SourceOptions. ConfigError for a time unit without a time column.
    """
    from evenflow.errors import ConfigError
    from evenflow.sources.source import SourceOptions

    if time is None and words.get("time_unit") is not None:
        raise ConfigError("--time-unit needs --time", hint="name the column that holds the event time")
    named = tuple(dict.fromkeys(name for name in (key, time, cost) if name is not None))
    rate = words.pop("event_rate", None) or _NUMBERED_RATE
    return SourceOptions(
        key=key,
        time=time,
        columns=named or None,
        columns_named=bool(named),
        # As text, the type of a cost does not depend on rows that need not be read.
        types={name: "string" for name in (key, cost) if name is not None},
        event_rate=None if time is not None else rate,
        **words,
    )


def opened(text: str, options: SourceOptions, *, timed: bool = True) -> Source:
    """The source that the user named. How it is read is printed to standard error first.

    timed: whether its event times are used. Then a warning says if a column has the same time in all tuples
    of a source that lies in memory.
    """
    from evenflow.sources.datasets import reading_of
    from evenflow.sources.source import TableSource

    reading = reading_of(text, options)
    if reading.remark is not None:
        typer.echo(reading.remark, err=True)
    source = reading.open()
    same = source.same_time if isinstance(source, TableSource) else None
    if timed and same is not None and source.time is not None:
        warn_of_one_time(source.time, same, source.rows or 0)
    return source


def warn_of_one_time(column: str, time: int, tuples: int, *, otherwise: str = "") -> None:
    """Print that all tuples have this event time (ms). otherwise: what else the user may do, as a
    sentence.
    """
    from evenflow.reporting.words import moment

    typer.echo(
        f"warning: all {tuples:,} tuples have the same time in {column!r}, {moment(time)}: no slide ever"
        f" ends. Is it the right --time, and the right --time-unit?{otherwise}",
        err=True,
    )
