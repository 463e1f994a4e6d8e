"""`evenflow broker`: the embedded broker in the foreground."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("broker")(broker)


def broker(
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Folder that keeps the topics. Default: a temporary one, removed at the end."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1. 0: a free one.")] = 9092,
) -> None:
    """Run a real single-node Kafka broker here until Ctrl-C or SIGTERM. Prints its address."""
    from workbench.local.broker import EmbeddedBroker, run_until_stopped

    run_until_stopped(
        EmbeddedBroker(data_dir=data_dir, port=port),
        ready=lambda running: typer.echo(running.bootstrap_servers),
    )
    typer.echo("stopped", err=True)
