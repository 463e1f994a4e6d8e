"""`evenflow verify`: recompute the results by other means and compare every row."""

from __future__ import annotations

from typing import Annotated

import typer

from evenflow.commands.context import milliseconds, settings_of


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("verify")(verify)


def verify(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="The report as one JSON object.")] = False,
    limit_differences: Annotated[
        int, typer.Option("--limit-differences", min=0, help="Differences of each kind to show.")
    ] = 20,
    due_within: Annotated[
        str,
        typer.Option(
            "--due-within",
            metavar="DURATION",
            help=(
                "While the input runs: how long ago a window may have become due and not be written yet."
                " Verify waits for results that long, then it fails. 0s: do not wait."
            ),
        ),
    ] = "60s",
    ended: Annotated[
        bool,
        typer.Option("--ended", help="Fail also while the input has not ended: all of it must be compared."),
    ] = False,
) -> None:
    """Recompute every window of the query and its views from the input topic with DuckDB, and compare.

    Exit 1 on differences, if results do not reach what is due in time, and if
    nothing that is due can be compared. With --ended also while the input has not
    ended.
    """
    import json
    import sys

    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    settings = settings_of(context)

    from topics.query.waiting import wait_for_input

    wait_for_input(settings)

    from workbench.verify.views import verify_all

    columns = (SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    shown = Console(file=sys.stderr)
    with Progress(*columns, console=shown, disable=not shown.is_terminal, transient=True) as bar:
        task = bar.add_task("records read from the input", total=None)
        report = verify_all(
            settings,
            on_query=lambda name: bar.update(task, description=f"records read from the input for {name}"),
            limit=limit_differences,
            due_within=milliseconds("--due-within", due_within) / 1000,
            progress=lambda records: bar.update(task, completed=records),
            waiting=lambda known: bar.update(task, description=f"waiting: {known.reach}"),
        )
    if as_json:
        from evenflow.simulation.provenance import program

        typer.echo(json.dumps(report.as_json() | {"provenance": program()}))
    else:
        typer.echo(report.text())
    if ended and not report.ended:
        typer.echo("the input has not ended: what is left was not compared", err=True)
    raise typer.Exit(0 if report.exact and (report.ended or not ended) else 1)
