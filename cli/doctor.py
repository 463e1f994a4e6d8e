"""`evenflow doctor`: what is wrong on this machine, with the topics or with the records, and what to do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from evenflow.commands.context import counted, settings_of, table_console

if TYPE_CHECKING:
    from workbench.assist.doctor.topics import DoctorReport

_COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("doctor")(doctor)


def doctor(
    context: typer.Context,
    topic: Annotated[
        str | None,
        typer.Option(help="Topic to look at. Default: the query's input topic. Needs no settings file."),
    ] = None,
    sample: Annotated[int, counted("How many records to look at, at most (20,000).")] = 20_000,
    no_sample: Annotated[bool, typer.Option("--no-sample", help="Look at no records.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Check this machine, the broker, the topics and a sample of the records. Exit 1 if there is a
    problem.
    """
    from evenflow.errors import ConfigError

    if sample < 1:
        raise ConfigError(
            f"--sample must be at least 1, not {sample}", hint="--no-sample looks at no records"
        )
    settings = settings_of(context) if topic is None else settings_of(context, input={"topic": topic})

    from workbench.assist.doctor.checks import examine

    report = examine(settings, most=0 if no_sample else sample)
    _print_json(report) if as_json else _print(report)
    raise typer.Exit(1 if any(finding.status == "problem" for finding in report.findings) else 0)


def _print_json(report: DoctorReport) -> None:
    import dataclasses

    shown = {
        "findings": [dataclasses.asdict(finding) for finding in report.findings],
        "sample": None if report.look is None else report.look.as_json(),
        "proposal": report.toml,
    }
    typer.echo(json.dumps(shown, indent=1, ensure_ascii=False))


def _print(report: DoctorReport) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table("check", "", "found", "do")
    for finding in report.findings:
        status = Text(finding.status, style=_COLOURS[finding.status])
        table.add_row(Text(finding.name), status, Text(finding.what), Text(finding.do))
    console = table_console(width=160)
    console.print(table)
    if report.toml:
        console.print(Text("for evenflow.toml (these lines in place of what it has):\n", style="bold"))
        typer.echo(report.toml)  # not through rich, which would wrap lines that are to be copied
