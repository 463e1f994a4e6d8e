"""`evenflow skip`: go past a record that cannot be fetched, on the record."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(skip)


def skip(
    context: typer.Context,
    partition: Annotated[int, typer.Argument(min=0, help="Input partition.")],
    offset: Annotated[
        int, typer.Argument(min=0, help="Offset that cannot be fetched, as `evenflow status` names it.")
    ],
    because: Annotated[str, typer.Option("--because", help="Why. It stays in Kafka, with who and when.")],
    through: Annotated[
        int | None,
        typer.Option("--through", min=0, help="Last offset, if the offset stands in a batch of several."),
    ] = None,
    wait: Annotated[
        str, typer.Option("--wait", metavar="DURATION", help="How long to wait for the partitioner.")
    ] = "60s",
    as_json: Annotated[bool, typer.Option("--json", help="The outcome as one JSON object.")] = False,
) -> None:
    """Order the partitioner to go past a record that it cannot fetch.

    Such a record does not decompress, or is damaged. The order and its reason stay
    in Kafka, and `<query>.rejected` and `evenflow verify` name what was skipped. An
    offset that can be read is refused. Exit 1 if the order is refused by the
    partitioner, not obeyed in time, or not needed because the record was read
    after all.
    """
    import json

    from evenflow.commands.context import milliseconds, settings_of

    patience = milliseconds("--wait", wait) / 1000
    settings = settings_of(context)

    from workbench.lifetime.skipping import skip as order

    outcome = order(settings, partition, offset, because=because, through=through, patience=patience)
    if as_json:
        typer.echo(json.dumps(outcome.as_json()))
    else:
        done = {True: "done", False: "not done", None: "waiting"}[outcome.done]
        typer.echo(
            f"{done}: partition {partition}, offsets {offset} to {outcome.order.through}: {outcome.words}"
        )
    raise typer.Exit(0 if outcome.done else 1)
