"""`evenflow sinks` lists where results can go."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(sinks)


def sinks(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per sink.")] = False,
) -> None:
    """List the result sinks (results.sink), with the fields of [results] that each needs."""
    from evenflow.commands.catalogue import show_entry
    from spark_consumers.sinks.registry import catalogue

    for entry in catalogue():
        needs = [] if entry.plugin is None else [f"results.{name}" for name in entry.plugin.needs]
        show_entry(entry, {"needs": needs}, as_json=as_json)
