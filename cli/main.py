"""The command `evenflow`.

Adding a command is one file `cli/<command>.py` with `register(app)`, and one line in COMMANDS.
Nothing heavy is imported before a command runs: commands import what they need inside their functions.
"""

from __future__ import annotations

import logging
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from evenflow.errors import EvenflowError

COMMANDS = (
    "advise",
    "bench",
    "broker",
    "demo",
    "doctor",
    "partition",
    "rename",
    "replay",
    "reset",
    "settings",
    "simulate",
    "spark",
    "status",
    "topics",
    "verify",
)
"""Modules of `cli/`, in the order of `evenflow --help`."""

app = typer.Typer(
    name="evenflow",
    help="A Kafka-fed streaming pipeline that beats skew: online routing, two-step aggregation, "
    "exact results.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

USER_ERROR = 2
INTERRUPTED = 130


@app.callback()
def _options(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", "-c", metavar="FILE", help="Settings file. Default: evenflow.toml if there is one."
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log to standard error.")] = False,
) -> None:
    context.obj = config
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO if verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    if not verbose:
        logging.getLogger("evenflow.kafka").setLevel(logging.CRITICAL)


for _name in COMMANDS:
    import_module(f"cli.{_name}").register(app)


def run() -> None:
    """Entry point: an EvenflowError becomes a red message and its exit code (2), Ctrl-C becomes 130."""
    try:
        app()
    except EvenflowError as error:
        typer.secho(f"error: {error.message}", fg=typer.colors.RED, err=True)
        if error.hint is not None:
            typer.echo(f"  -> {error.hint}", err=True)
        sys.exit(getattr(error, "exit_code", USER_ERROR))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    run()
