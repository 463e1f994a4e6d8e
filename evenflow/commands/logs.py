"""Sends log records to standard error, as text for a person or as JSON lines for a program."""

from __future__ import annotations

import logging
import sys

import typer

from evenflow.errors import EvenflowError
from evenflow.reporting.lines import JsonLines, with_fields

_SERVICES = ("partitioner_service", "evenflow.spark", "controller", "evenflow.sample_check", "evenflow.start")
"""Loggers with which our services report their work."""
_CLIENTS = ("evenflow.kafka", "faust", "mode", "aiokafka", "py4j")
"""Loggers of client libraries.
Their messages are hidden by default, because what matters becomes an error of ours.
"""
_SHORT = "%(asctime)s %(levelname)s %(message)s"
_LONG = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def configure(*, quiet: bool, verbose: bool, as_json: bool) -> None:
    """Configure the logging of this process. By default the messages of our services are shown.

    quiet: only warnings and errors. verbose: everything, also messages of the clients. as_json: JSON lines.
    """
    handler = logging.StreamHandler(sys.stderr)
    if not verbose:
        handler.addFilter(_of_a_named_logger)
    handler.setFormatter(JsonLines() if as_json else logging.Formatter(_LONG if verbose else _SHORT))
    logging.basicConfig(handlers=[handler], level=logging.INFO if verbose else logging.WARNING, force=True)
    for name in _SERVICES:
        logging.getLogger(name).setLevel(logging.WARNING if quiet else logging.INFO)
    for name in _CLIENTS:
        logging.getLogger(name).setLevel(logging.NOTSET if verbose else logging.CRITICAL)


def _of_a_named_logger(record: logging.LogRecord) -> bool:
    # Py4J tells the root logger, not one of its own, of a command during which Java ended: with two
    # tracebacks.
    return not (record.name == "root" and record.module == "java_gateway")


def show_error(error: EvenflowError) -> None:
    """Show the error that ended the command on standard error: in red with its hint, or as a line of JSON."""
    if any(isinstance(handler.formatter, JsonLines) for handler in logging.getLogger().handlers):
        logging.getLogger("evenflow").error("%s", error.message, extra=with_fields({"hint": error.hint}))
        return
    typer.secho(f"error: {error.message}", fg=typer.colors.RED, err=True)
    if error.hint is not None:
        typer.echo(f"  -> {error.hint}", err=True)
