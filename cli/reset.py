"""`evenflow reset`: remove what a query has left, so that its name can begin anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from workbench.lifetime.remains import Remains


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(reset)


def reset(
    context: typer.Context,
    results: Annotated[
        bool,
        typer.Option("--results", help="Also results.topic or results.path where the settings name one."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    because: Annotated[str, typer.Option("--because", help="Why, for `evenflow audit`.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Also while a service of the query runs.")] = False,
) -> None:
    """Remove the query's topics, consumer groups and checkpoints, but never its input topic.

    Shows first what will be removed, and asks. `evenflow audit` says later who did
    it: the topic `<query>.audit` stays.
    """
    from evenflow.commands.context import settings_of

    settings = settings_of(context)

    from workbench.lifetime.remains import find, refuse_while_alive
    from workbench.lifetime.removal import remove

    remains = find(settings, results=results)
    # Before anything is shown: while a service runs, the list would not stay true.
    if not force:
        refuse_while_alive(settings, "removed", waiting=lambda line: typer.echo(line, err=True))
    if remains.empty:
        typer.echo(f"query {settings.query.name} has left nothing: there is nothing to remove", err=True)
        return
    show(remains, f"of query {settings.query.name} this will be removed for good:")
    ask("Remove all of it?", yes=yes)
    remove(settings, remains, because=because)
    typer.echo(f"removed; the name {settings.query.name} can begin anew", err=True)


def show(remains: Remains, heading: str) -> None:
    """Print what goes and what stays to standard error."""
    typer.echo(heading, err=True)
    for line in remains.lines():
        typer.echo(f"  {line}", err=True)
    for line in remains.stays:
        typer.echo(f"  stays: {line}", err=True)


def ask(question: str, *, yes: bool) -> None:
    """Return only after a yes, by `--yes` or typed. A no aborts. Raises ConfigError if nobody can be
    asked.
    """
    import sys

    from evenflow.errors import ConfigError

    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError("nothing was done: nobody can be asked here", hint="say --yes to go on without")
    typer.confirm(question, abort=True, err=True)
