"""The frame of every command: the options of all commands, and what happens to their errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from evenflow import __version__
from evenflow.commands.logs import configure, show_error
from evenflow.commands.options import EverywhereGroup
from evenflow.errors import ConfigError, EvenflowError

USER_ERROR = 2
"""Exit status for an error that a user can act on."""
INTERRUPTED = 130
"""Exit status after Ctrl-C: 128 and the number of SIGINT, as shells have it."""

EXTRAS = {
    "confluent_kafka": "kafka",
    "aiokafka": "partitioner",
    "faust": "partitioner",
    "pyspark": "spark",
    "duckdb": "workbench",
    "psutil": "workbench",
    "stable_baselines3": "rl",
    "torch": "rl",
}
"""For each package that the library itself does not need: the extra that installs it."""


def application() -> typer.Typer:
    """The application `evenflow` with the options of all commands, but without a command."""
    app = typer.Typer(
        name="evenflow",
        help="A Kafka-fed streaming pipeline that beats skew: online routing,"
        " two-step aggregation, exact results.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(cls=EverywhereGroup)(_options)
    return app


def _show_version(show: bool) -> None:
    if show:
        typer.echo(f"evenflow {__version__}")
        raise typer.Exit


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
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and end.", is_eager=True, callback=_show_version),
    ] = False,
) -> None:
    _show_version(version)  # behind the name of a command the option has no callback of its own
    if quiet and verbose:
        raise typer.BadParameter("--quiet and --verbose exclude each other")
    context.obj = config
    configure(quiet=quiet, verbose=verbose, as_json=json_logs)


def run_command(app: Callable[[], object]) -> None:
    """Run `app`, and turn its errors into messages and exit codes.

    An EvenflowError becomes a red message and its own exit code, or else 2. A package that is not installed
    becomes such a message too if an extra installs it. Ctrl-C becomes 130.
    """
    try:
        app()
    except EvenflowError as error:
        _end(error)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        _end(missing(package))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def missing(package: str) -> ConfigError:
    """The error that a package is not installed, with the extra that installs it."""
    extra = EXTRAS[package]
    # `make setup` installs all extras but this one, because torch is large.
    beside = "" if extra == "rl" else ", or in a clone everything: make setup"
    return ConfigError(
        f"this needs the package {package}, which is not installed",
        hint=f"install the extra {extra!r}: pip install 'evenflow[{extra}]'{beside}",
    )


def _end(error: EvenflowError) -> None:
    show_error(error)
    status = getattr(error, "exit_code", USER_ERROR)
    if error.at_once:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)
