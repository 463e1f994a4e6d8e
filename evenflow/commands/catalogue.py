"""`evenflow partitioners`, `evenflow queries`: what is built in."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(partitioners)
    app.command()(queries)


def partitioners(
    markdown: Annotated[bool, typer.Option("--markdown", help="As the page docs/algorithms.md.")] = False,
) -> None:
    """List the registered partitioners with their options."""
    from evenflow.partitioners import describe, names
    from evenflow.partitioners.catalogue import algorithms_markdown

    if markdown:
        typer.echo(algorithms_markdown(), nl=False)
        return
    for known in map(describe, names()):
        typer.echo(f"{known.name:12} {known.summary}")
        for option, meaning in known.options.items():
            typer.echo(f"{'':12}   {option}: {meaning}")


def queries() -> None:
    """List the built-in queries."""
    from evenflow.queries import known

    for query in known():
        typer.echo(f"{query.name:12} {query.what}")
