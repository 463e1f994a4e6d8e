"""`evenflow results`: look at the rows that came out, follow them, export them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenflow.commands.context import milliseconds, settings_of, table_console

if TYPE_CHECKING:
    from evenflow.settings import Settings
    from workbench.result_rows import Page


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("results")(results)


def results(
    context: typer.Context,
    view: Annotated[str | None, typer.Option("--view", metavar="NAME", help="Of this view.")] = None,
    window: Annotated[
        str | None,
        typer.Option(
            "--window",
            metavar="TIME",
            help=(
                "The window that begins then, such as 2026-11-20T10:00:00Z."
                " Default: the newest, or with --out all."
            ),
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="KEY",
            help=(
                "This key alone, as it stands in results, in every window."
                """ A key of several columns is a JSON array, such as '["DE",5]'."""
            ),
        ),
    ] = None,
    rows: Annotated[int, typer.Option("--rows", min=1, help="Show at most so many rows.")] = 20,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on with what is written from now on, until Ctrl-C.")
    ] = False,
    every: Annotated[
        str, typer.Option("--every", metavar="DURATION", help="With --follow: how often to look.")
    ] = "1s",
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write the rows to this .csv or .parquet file instead."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line for each row.")] = False,
    schema: Annotated[
        bool,
        typer.Option(
            "--schema",
            help=(
                'Show the schema that rows have in the schema registry instead: with `results.sink = "avro"`,'
                " or a sink of your own that has `registered_schema`."
            ),
        ),
    ] = False,
) -> None:
    """Show the results of the query, each row once, from whatever `results.sink` they went to.

    Without an option: the rows of the newest window, the largest of the first number
    first. Exit 1 if there are no results yet.
    """
    from evenflow.errors import ConfigError
    from evenflow.settings.typed_key import key_bytes

    of_query = settings_of(context)
    settings = _of_view(of_query, view)
    if follow and (out is not None or window is not None or key is not None):
        raise ConfigError(
            "--follow shows every new row, so it does not go with --out, --window or --key",
            hint="leave --follow or the other option out",
        )
    if schema:
        _print_schema(settings)
        return
    start = None if window is None else _time(window)
    encoded_key = None if key is None else key_bytes(settings.query, key.encode("utf-8", "surrogateescape"))
    pause = milliseconds("--every", every) / 1000

    from topics.query.input_topic import admitted

    settings = _of_view(admitted(of_query), view)

    from workbench import result_rows

    if follow:
        _follow(settings, pause, as_json=as_json)
        return
    if out is not None:
        count = result_rows.export(settings, out, window=start, key=encoded_key)
        typer.echo(f"{count:,} rows in {out}")
        raise typer.Exit(0 if count else 1)
    page = result_rows.page(settings, window=start, key=encoded_key, most=rows)
    if as_json:
        for line in result_rows.json_lines(page.table):
            typer.echo(line)
    else:
        _print(page, by_key=encoded_key is not None)
    raise typer.Exit(0 if page.table.num_rows else 1)


def _print_schema(settings: Settings) -> None:
    from evenflow.errors import ConfigError
    from spark_consumers.sinks import SINKS, sink_named
    from spark_consumers.sinks.base import HasSchema

    sink = sink_named(settings.results.sink)
    if not isinstance(sink, HasSchema):
        having = " or ".join(repr(name) for name, other in SINKS.items() if isinstance(other, HasSchema))
        raise ConfigError(
            f"--schema shows the schema that rows have in the schema registry, but results.sink ="
            f" {settings.results.sink!r} registers none",
            hint=f"results.sink = {having}, or a sink of your own that has registered_schema, does",
        )
    subject, schema = sink.registered_schema(settings)
    typer.echo(f"for subject {subject}:", err=True)
    typer.echo(schema)


def _of_view(settings: Settings, name: str | None) -> Settings:
    from evenflow.settings.views import view

    return settings if name is None else view(settings, name)


def _time(text: str) -> int:
    from evenflow.errors import ConfigError
    from evenflow.settings.sections.input import parse_start, start_time

    try:
        start = start_time(parse_start(text))
    except ValueError:
        start = None
    if start is None:
        raise ConfigError(f"--window: {text!r} is no time", hint="write one like 2026-11-20T10:00:00Z")
    return start


def _follow(settings: Settings, pause: float, *, as_json: bool) -> None:
    import time

    from workbench.result_rows import ResultRows, json_lines

    reader = ResultRows(settings)
    reader.pass_over()
    typer.echo("results that are written from now on (Ctrl-C ends this):", err=True)
    try:
        while True:
            for table in reader.new():
                if as_json:
                    for line in json_lines(table):
                        typer.echo(line)
                else:
                    _print_table(table, windows=True)
            time.sleep(pause)
    except KeyboardInterrupt:
        return


def _print(page: Page, *, by_key: bool) -> None:
    if page.window is None:
        typer.echo(
            "no results yet: a window comes out when every partition is past its end."
            " `evenflow status` says what it waits for",
            err=True,
        )
        return
    shown = page.table.num_rows
    if by_key:
        typer.echo(f"{shown:,} rows of this key, the newest first; {page.windows:,} windows have results")
    else:
        typer.echo(
            f"window {page.window}: {shown:,} of {page.window.rows:,} rows;"
            f" {page.windows:,} windows have results"
        )
    if shown:
        _print_table(page.table, windows=by_key)


def _print_table(table: Any, *, windows: bool) -> None:
    """The rows as a table. windows: with the bounds of their windows."""
    from rich.table import Table
    from rich.text import Text

    from evenflow.reporting.words import clock, printable

    console = table_console(width=200, highlight=False)
    names = [name for name in table.schema.names if windows or name not in ("window_start", "window_end")]
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in names:
        numeric = str(table.schema.field(name).type).startswith(("int", "double", "decimal"))
        drawn.add_column(printable(name), justify="right" if numeric else "left", overflow="fold")
    for row in table.select(names).to_pylist():
        texts = []
        for name in names:
            value = row[name]
            if name in ("window_start", "window_end"):
                texts.append(clock(round(value.timestamp() * 1000)))
            elif value is None:
                texts.append("-")
            elif isinstance(value, bytes):
                texts.append(printable(value.decode("utf-8", "backslashreplace")))
            else:
                texts.append(printable(str(value)))
        drawn.add_row(*map(Text, texts))
    console.print(drawn)
