"""`evenflow query check`: what a query will do, before it runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from evenflow.commands.context import counted, settings_of, table_console

if TYPE_CHECKING:
    from workbench.assist.query_check import Check

_query = typer.Typer(help="Explain a query before it runs.", no_args_is_help=True)
_COLOURS = {"warning": "yellow", "problem": "red"}


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.add_typer(_query, name="query")


@_query.command("check")
def check(
    context: typer.Context,
    sample: Annotated[int, counted("How many records to look at, at most (20,000).")] = 20_000,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Say what the query reads, keeps and writes, and how `verify` compares it,
    by a sample of the input topic.

    Nothing is made, committed or started. Exit 1 if the records do not fit the query.
    """
    from evenflow.errors import ConfigError

    if sample < 1:
        raise ConfigError(f"--sample must be at least 1, not {sample}")
    settings = settings_of(context)

    from workbench.assist.query_check import check_query

    query_check = check_query(settings, most=sample)
    if as_json:
        typer.echo(json.dumps(query_check.as_json(), ensure_ascii=False))
    else:
        _print(settings.query.name, query_check)
    raise typer.Exit(1 if query_check.problems else 0)


def _print(query: str, query_check: Check) -> None:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    console = table_console(width=160, highlight=False)
    console.print(Text(f"query {query}", style="bold"))
    for heading, lines in query_check.sections.items():
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim", max_width=30, overflow="fold")
        table.add_column(overflow="fold")
        for name, words in lines:
            table.add_row(Text(name), Text(words))
        console.print(Text(f"\n{heading}", style="bold"))
        console.print(Padding(table, (0, 0, 0, 2)))
    wrong = [finding for finding in query_check.findings if finding.status != "ok"]
    console.print(Text("\nwhat is wrong" if wrong else "\nnothing is wrong with it", style="bold"))
    for finding in wrong:
        message = finding.what + (f" -> {finding.do}" if finding.do else "")
        console.print(Text(f"  {finding.status}: {message}", style=_COLOURS[finding.status]))
    lines_to_write = query_check.look.toml() if query_check.look is not None else ""
    if lines_to_write:
        console.print(Text("\nfor evenflow.toml (these lines in place of what it has):\n", style="bold"))
        typer.echo(lines_to_write)
