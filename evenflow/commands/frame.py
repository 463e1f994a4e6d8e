"""What every command stands in: the options of all commands, and what becomes of their errors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from evenflow.commands.logs import configure, show_error
from evenflow.commands.options import EverywhereGroup
from evenflow.errors import ConfigError, EvenflowError

USER_ERROR = 2
INTERRUPTED = 130

EXTRAS = {
    "confluent_kafka": "kafka",
    "aiokafka": "partitioner",
    "faust": "partitioner",
    "pyspark": "spark",
    "duckdb": "workbench",
    "psutil": "workbench",
}
"""The extra that brings a package which the library itself does without."""


def application() -> typer.Typer:
    """`evenflow` without a command yet."""
    app = typer.Typer(
        name="evenflow",
        help="A Kafka-fed streaming pipeline that beats skew: online routing, two-step aggregation, "
        "exact results.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(cls=EverywhereGroup)(_options)
    return app


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


def run_command(app: Callable[[], object]) -> None:
    """Run `app`: an EvenflowError becomes a red message and its exit code (2), Ctrl-C becomes 130.

    So does a package that is not installed, if an extra brings it.
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
    """That a package is not installed, and which extra brings it."""
    extra = EXTRAS[package]
    return ConfigError(
        f"this needs the package {package}, which is not installed",
        hint=f"install the extra {extra!r}: pip install 'evenflow[{extra}]', or in a clone everything: make setup",
    )


def _end(error: EvenflowError) -> None:
    show_error(error)
    sys.exit(getattr(error, "exit_code", USER_ERROR))
