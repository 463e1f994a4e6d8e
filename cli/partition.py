"""`evenflow partition`, `evenflow plan`, `evenflow partitioners`."""

from __future__ import annotations

import json
import logging
from typing import Annotated, Any

import typer

from cli.look import Unchecked, look_first


def register(app: typer.Typer) -> None:
    """Add the commands of the partitioner service."""
    app.command()(partition)
    app.command()(plan)
    app.command()(partitioners)


def partition(
    context: typer.Context,
    instance: Annotated[
        str | None, typer.Option(help="Identity of this instance (partitioner.instance).")
    ] = None,
    partitioner: Annotated[
        str | None, typer.Option(help="Registered partitioner (partitioner.name).")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Workers in use (partitioner.workers).")] = None,
    instances: Annotated[
        int | None, typer.Option(help="How many instances share the input (partitioner.instances).")
    ] = None,
    until_ended: Annotated[
        bool, typer.Option("--until-ended", help="Stop once every input partition has ended.")
    ] = False,
    unchecked: Unchecked = False,
) -> None:
    """Run one partitioner instance: input topic to routed topic, until SIGTERM."""
    from cli.context import settings_of
    from partitioner_service.app import serve

    given = {"instance": instance, "instances": instances, "name": partitioner, "workers": workers}
    chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    settings = settings_of(context, partitioner=chosen) if chosen else settings_of(context)
    if not logging.getLogger().isEnabledFor(
        logging.INFO
    ):  # no --verbose: what we say, not what our clients say
        logging.getLogger("partitioner_service").setLevel(logging.INFO)
        for noisy in ("faust", "mode", "aiokafka"):
            logging.getLogger(noisy).setLevel(logging.CRITICAL)
    look_first(settings, unchecked=unchecked)
    serve(settings, until_ended=until_ended)


def plan(
    context: typer.Context,
    workers: Annotated[int, typer.Option(min=1, help="Workers (p) from then on.")],
    reducers: Annotated[
        int | None, typer.Option(min=1, help="Buckets running at once (r). Default: all.")
    ] = None,
    effective_from: Annotated[
        int | None, typer.Option(help="Event time (ms) on a slide boundary. Default: at once.")
    ] = None,
) -> None:
    """Publish a plan by hand: how many workers are in use."""
    from cli.context import settings_of
    from partitioner_service.plans import publish

    settings = settings_of(context)
    published = publish(settings, workers=workers, reducers=reducers, effective_from=effective_from)
    typer.echo(json.dumps(published))


def partitioners(
    markdown: Annotated[bool, typer.Option("--markdown", help="As the page docs/algorithms.md.")] = False,
) -> None:
    """List the registered partitioners with their options."""
    from evenflow.partitioners import describe, names
    from evenflow.partitioners.catalogue import algorithms_markdown

    if markdown:
        typer.echo(algorithms_markdown(), nl=False)
        return
    for known in map(describe, names()):
        typer.echo(f"{known.name:12} {known.summary}")
        for option, meaning in known.options.items():
            typer.echo(f"{'':12}   {option}: {meaning}")
