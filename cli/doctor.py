"""`evenflow doctor`: what is wrong on this machine or with the topics, and what to do."""

from __future__ import annotations

from typing import Annotated

import typer

from evenflow.commands.context import settings_of

_COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("doctor")(doctor)


def doctor(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Findings as JSON on standard output.")] = False,
) -> None:
    """Check Python, Java, versions, broker, topics, retention, disk; exit 1 if there is a problem."""
    import dataclasses
    import json

    from workbench.doctor import examine

    findings = examine(settings_of(context))
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(finding) for finding in findings], indent=1))
    else:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table("check", "", "found", "do")
        for finding in findings:
            status = Text(finding.status, style=_COLOURS[finding.status])
            table.add_row(Text(finding.name), status, Text(finding.what), Text(finding.do))
        Console().print(table)
    raise typer.Exit(1 if any(finding.status == "problem" for finding in findings) else 0)
