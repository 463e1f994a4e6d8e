"""`evenflow partition` runs a partitioner instance."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cli.start_check import Unchecked, check_sample_first


def register(app: typer.Typer) -> None:
    """Add the command of the partitioner service."""
    app.command()(partition)


def partition(
    context: typer.Context,
    instance: Annotated[
        str | None, typer.Option(help="Identity of this instance (partitioner.instance).")
    ] = None,
    partitioner: Annotated[
        str | None, typer.Option(help="Registered partitioner, or module:Class[:options] (partitioner.name).")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Workers in use (partitioner.workers).")] = None,
    instances: Annotated[
        int | None, typer.Option(help="How many instances share the input (partitioner.instances).")
    ] = None,
    until_ended: Annotated[
        bool, typer.Option("--until-ended", help="Stop once every input partition has ended.")
    ] = False,
    from_routed: Annotated[
        bool,
        typer.Option(
            "--from-routed",
            help=(
                "The committed offsets are gone: continue where the routed frames end"
                " (docs/operations/data-loss.md)."
            ),
        ),
    ] = False,
    take_over: Annotated[
        bool,
        typer.Option(
            "--take-over",
            help=(
                "If another process is this instance, end it and go on in its place."
                " Otherwise it is left alone."
            ),
        ),
    ] = False,
    unchecked: Unchecked = False,
) -> None:
    """Run one partitioner instance, from the input topic to the routed topic, until SIGTERM."""
    from evenflow.commands.context import settings_of

    options = {"instance": instance, "instances": instances, "name": partitioner, "workers": workers}
    chosen: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    settings = settings_of(context, partitioner=chosen) if chosen else settings_of(context)

    from partitioner_service.kafka.learned_state import check_partitioner

    check_partitioner(settings)  # before a broker is waited for
    check_sample_first(settings, unchecked=unchecked)

    from partitioner_service.app import serve

    serve(
        settings,
        until_ended=until_ended,
        from_routed=from_routed,
        trial=not unchecked,
        take_over=take_over,
    )
