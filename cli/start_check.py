"""What the services' commands do first: look at the records that the service will read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from evenflow.settings import Settings

Unchecked = Annotated[
    bool,
    typer.Option("--unchecked", help="Start without a look at the records, whatever they hold."),
]


def check_sample_first(settings: Settings, *, unchecked: bool) -> None:
    """Wait for the broker and the input topic, then log what a sample of the topic holds.

    The wait is as long as `kafka.startup_wait` says. unchecked: do not look at a sample. Raises ConfigError
    if the query has not begun and the sample cannot be the input that the query means.
    """
    from topics.query.waiting import wait_for_input

    wait_for_input(settings)
    if unchecked:
        return
    from workbench.assist.sample_check import before_start

    before_start(settings)
