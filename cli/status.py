"""`evenflow status`: where the query stands, from its topics alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from evenflow.settings import Settings

EXIT_STATUS = {"ok": 0, "warning": 1, "wrong": 2}
"""Exit status of the command by the state of the query."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(status)


def status(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
    watch: Annotated[
        float | None,
        typer.Option("--watch", min=0.2, metavar="SECONDS", help="Look again so often, until Ctrl-C."),
    ] = None,
) -> None:
    """Show input, windows, results, which services are alive and what is wrong, whatever runs.

    The command only looks: no topic is made and no group is joined. Exit 0:
    nothing is wrong. 1: warnings only. 2: something is wrong, or the broker
    does not answer. With --watch it is 0 after Ctrl-C.
    """
    import json
    import time
    from contextlib import suppress

    from rich.console import Console, Group
    from rich.live import Live

    from evenflow.commands.context import settings_of
    from evenflow.errors import EvenflowError

    settings = settings_of(context)

    from workbench.assist.status.answer import demand_answer

    with _unread_as_json(settings, as_json=as_json):
        try:
            demand_answer(settings)  # before the imports below, which take seconds
        except EvenflowError as error:
            error.at_once = True  # Kafka's client would take some seconds to end
            raise

        from workbench.assist.status.judging import findings, state_of
        from workbench.assist.status.read import read
        from workbench.assist.status.screen import as_json as fields
        from workbench.assist.status.screen import screen

        if as_json:
            report = fields(read(settings))
            typer.echo(json.dumps(report))
            raise typer.Exit(EXIT_STATUS[report["state"]])
    console = Console(highlight=False)

    def look() -> Group:
        return screen(read(settings), width=console.width)

    if watch is None:
        facts = read(settings)
        console.print(screen(facts, width=console.width))
        raise typer.Exit(EXIT_STATUS[state_of(findings(facts))])
    live = Live(look(), console=console, auto_refresh=False)
    with suppress(KeyboardInterrupt), live:
        while True:
            time.sleep(watch)
            live.update(look(), refresh=True)


@contextmanager
def _unread_as_json(settings: Settings, *, as_json: bool) -> Iterator[None]:
    """With --json, print a report if nothing can be read.
    The error says the same to people, and is the exit status.
    """
    import json

    from evenflow.errors import EvenflowError
    from workbench.assist.status.answer import unread

    try:
        yield
    except EvenflowError as error:
        if as_json:
            typer.echo(json.dumps(unread(settings, error)))
        raise
