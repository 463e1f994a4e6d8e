"""`evenflow aggregate`, `evenflow combine`, `evenflow reduce`: the Spark stages."""

from __future__ import annotations

import logging
from typing import Annotated

import typer

from cli.start_check import Unchecked, check_sample_first
from evenflow.errors import EvenflowError

_LOG = logging.getLogger("evenflow.spark")
_UNTIL_ENDED = Annotated[
    bool, typer.Option("--until-ended", help="Stop once every input partition has ended and all is emitted.")
]


def register(app: typer.Typer) -> None:
    """Add the commands of the Spark stages."""
    app.command()(aggregate)
    app.command()(combine)
    app.command()(reduce)


def aggregate(
    context: typer.Context, until_ended: _UNTIL_ENDED = False, unchecked: Unchecked = False
) -> None:
    """Run both Spark stages in one application, wired as spark.wiring says, until SIGTERM."""
    _run(context, ("combine", "reduce"), until_ended, unchecked)


def combine(context: typer.Context, until_ended: _UNTIL_ENDED = False, unchecked: Unchecked = False) -> None:
    """Run the combiner alone (spark.wiring = 'split'): routed topic to partials topic, until SIGTERM."""
    _run(context, ("combine",), until_ended, unchecked)


def reduce(context: typer.Context, until_ended: _UNTIL_ENDED = False, unchecked: Unchecked = False) -> None:
    """Run the reducer alone (spark.wiring = 'split'): partials topic to results, until SIGTERM."""
    _run(context, ("reduce",), until_ended, unchecked)


def _run(context: typer.Context, stages: tuple[str, ...], until_ended: bool, unchecked: bool) -> None:
    from evenflow.commands.context import settings_of

    settings = settings_of(context)
    check_sample_first(settings, unchecked=unchecked)

    from spark_consumers.application import run
    from spark_consumers.reports.java_log import log_file, open_log

    log = None if _verbose() else open_log(log_file(settings, context.info_name or stages[0]))
    if log is not None:
        _LOG.info("what Spark itself says is in %s", log.path)
    try:
        run(settings, stages, until_ended=until_ended, log=log)
    except EvenflowError:
        # Said again, because the first line has long scrolled away.
        if log is not None and log.used:
            _LOG.error("what Spark itself says is in %s", log.path)
        raise


def _verbose() -> bool:
    """Whether `--verbose` was given. Spark's own output then goes to standard error instead of a log file."""
    return logging.getLogger().isEnabledFor(logging.INFO)
