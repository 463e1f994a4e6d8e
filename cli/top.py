"""`evenflow top`: the pipeline at one glance, in the terminal."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(top)


def top(
    context: typer.Context,
    every: Annotated[float, typer.Option(min=0.2, metavar="SECONDS", help="Look so often.")] = 1.0,
) -> None:
    """Show a running pipeline live: rates, load of each worker, hottest keys with their split, W, decisions.

    The command only reads the telemetry topic. q quits, space pauses.
    """
    from evenflow.commands.context import settings_of

    settings = settings_of(context)

    from monitoring.live.feed import Feed
    from monitoring.live.top import Top
    from topics.query.input_topic import by_its_rule, with_topic_partitions

    feed = Feed(by_its_rule(with_topic_partitions(settings)))
    try:
        Top(feed.glance, every=every).run()
    finally:
        feed.close()
