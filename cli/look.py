"""What the commands of the services do first: look at the records that they will read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from evenflow.settings import Settings

Unchecked = Annotated[
    bool,
    typer.Option("--unchecked", help="Start without a look at the records, whatever they hold."),
]


def look_first(settings: Settings, *, unchecked: bool) -> None:
    """Say what a sample of the input topic holds. ConfigError where that cannot be meant.

    Before that, wait for the broker and the topic as `kafka.startup_wait` says.
    """
    from topics.waiting import wait_for_input

    wait_for_input(settings)
    if unchecked:
        return
    from workbench.look import before_start

    before_start(settings)
