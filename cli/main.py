"""The command `evenflow`.

Adding a command is one file `cli/<command>.py` with `register(app)`, and one line in COMMANDS.
Nothing heavy is imported before a command runs: commands import what they need inside their functions.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from cli.logs import configure, show_error
from cli.options import EverywhereGroup
from evenflow.errors import EvenflowError

COMMANDS = (
    "advise",
    "bench",
    "broker",
    "demo",
    "doctor",
    "partition",
    "replay",
    "settings",
    "simulate",
    "spark",
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


@app.callback(cls=EverywhereGroup)
def _options(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", "-c", metavar="FILE", help="Settings file. Default: evenflow.toml if there is one."
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Log warnings and errors only.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log all, also what clients say.")] = False,
    json_logs: Annotated[bool, typer.Option("--json-logs", help="Log one JSON object a line.")] = False,
) -> None:
    if quiet and verbose:
        raise typer.BadParameter("--quiet and --verbose exclude each other")
    context.obj = config
    configure(quiet=quiet, verbose=verbose, as_json=json_logs)


for _name in COMMANDS:
    import_module(f"cli.{_name}").register(app)


def run() -> None:
    """Entry point: an EvenflowError becomes a red message and its exit code (2), Ctrl-C becomes 130."""
    try:
        app()
    except EvenflowError as error:
        show_error(error)
        sys.exit(getattr(error, "exit_code", USER_ERROR))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    run()
