"""`evenflow audit`: who changed the query, when and why."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(audit)


def audit(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object for each entry.")] = False,
) -> None:
    """List plans, resets, skips and renames of the query: when, who, what, why.

    They stand in `<query>.audit`, which also outlives a reset. Nothing is made.
    """
    import json

    from evenflow.commands.context import settings_of

    settings = settings_of(context)

    from evenflow.reporting.words import moment
    from topics.query.audit import ROLE, read_entries

    entries, others = read_entries(settings)
    for written in entries:
        if as_json:
            typer.echo(json.dumps(written.as_json()))
        else:
            entry = written.entry
            why = f" ({entry.because})" if entry.because else ""
            typer.echo(f"{moment(written.at)}  {entry.action:6}  {entry.who}: {entry.what}{why}")
    if not entries:
        typer.echo(f"{settings.topic(ROLE)} has no entries", err=True)
    if others:
        typer.echo(
            f"{others} records of {settings.topic(ROLE)} are no entries: something else wrote them", err=True
        )
