"""`evenflow rename`: the query goes on under another name, and the old name becomes free."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from evenflow.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(rename)


def rename(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The new query.name.")],
    keep: Annotated[bool, typer.Option("--keep", help="Leave the topics of the old name.")] = False,
    because: Annotated[str, typer.Option("--because", help="Why, for `evenflow audit`.")] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Give a stopped query a new name. It keeps what it has read, routed and learned.

    Copies its topics, commits its offsets under the new name, and removes the old.
    The Spark stages compute all results again under the new name, exactly.
    """
    from cli.reset import ask, show
    from evenflow.commands.context import settings_of

    before = settings_of(context)
    after = settings_of(context, query={"name": name}, input={"topic": before.topic("input")})

    from topics.query.audit import write_entry
    from workbench.lifetime.remains import find
    from workbench.lifetime.removal import remove
    from workbench.lifetime.rename import carry_out, examine

    renaming = examine(before, after, waiting=lambda line: typer.echo(line, err=True))
    typer.echo(f"query {before.query.name} will be copied to {name}:", err=True)
    for line in renaming.lines():
        typer.echo(f"  {line}", err=True)
    remains = find(before, results=False)
    if not keep:
        show(remains, "and then this will be removed for good:")
    ask(f"Rename {before.query.name} to {name}?", yes=yes)
    # Both logs have it before the work begins, so a renaming that is cut off is in them too.
    write_entry(before, "rename", f"renamed to {name}", because=because)
    write_entry(after, "rename", f"renamed from {before.query.name}", because=because)
    with _progress() as advance:
        carry_out(renaming, progress=advance)
    typer.echo(f"{name} continues where {before.query.name} was. In the settings:", err=True)
    for line in _lines(before, name):
        typer.echo(line)
    if not keep:
        remove(before, remains, because=because or f"renamed to {name}")


def _lines(before: Settings, name: str) -> list[str]:
    """The lines that must stand in the settings file from now on."""
    from spark_consumers.sinks import sink_of

    lines = ["[query]", f'name = "{name}"']
    if before.input.topic is None:
        lines += ["[input]", f'topic = "{before.topic("input")}"']
    if "results" not in sink_of(before).topics and before.results.path is not None:
        lines += ["[results]", f'path = "{before.results.path.rstrip("/")}-{name}"']
    return lines


@contextmanager
def _progress() -> Iterator[Callable[[int], None]]:
    """A function to call with the number of records copied so far. It shows the number, on a terminal
    only.
    """
    import sys

    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    shown = Console(file=sys.stderr)
    with Progress(*columns, console=shown, disable=not shown.is_terminal, transient=True) as bar:
        task = bar.add_task("records copied", total=None)
        yield lambda records: bar.update(task, completed=records)
