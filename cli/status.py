"""`evenflow status`: where the query stands, from its topics alone."""

from __future__ import annotations

from typing import Annotated

import typer


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

    The command only looks: no topic is made and no group is joined. The exit
    status says nothing about the query.
    """
    import json
    import time
    from contextlib import suppress

    from rich.console import Console, Group
    from rich.live import Live

    from evenflow.commands.context import settings_of

    settings = settings_of(context)

    from workbench.status.read import read
    from workbench.status.screen import as_json as fields
    from workbench.status.screen import screen

    if as_json:
        typer.echo(json.dumps(fields(read(settings))))
        return
    console = Console(highlight=False)

    def look() -> Group:
        return screen(read(settings), width=console.width)

    if watch is None:
        console.print(look())
        return
    live = Live(look(), console=console, auto_refresh=False)
    with suppress(KeyboardInterrupt), live:
        while True:
            time.sleep(watch)
            live.update(look(), refresh=True)
