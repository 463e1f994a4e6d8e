"""`evenflow control`: decide how many workers and reducers are in use, and publish plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from controller.decide import Judgement
    from evenflow.telemetry import DecisionRecord


def register(app: typer.Typer) -> None:
    """Add the command of the controller."""
    app.command()(control)


def control(
    context: typer.Context,
    policy: Annotated[
        str | None,
        typer.Option(help="A name of `evenflow policies`, or module:Class[:options] (control.policy)."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be done and why, and write nothing.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object on standard output for each observation.")
    ] = False,
) -> None:
    """Decide how many workers and reducers are in use, and publish plans, until SIGTERM."""
    from evenflow.commands.context import settings_of

    chosen: dict[str, Any] = {} if policy is None else {"control": {"policy": policy}}
    settings = settings_of(context, **chosen)

    from controller.decide import policy_of
    from controller.log_lines import judgement_words
    from controller.service import control as run
    from topics.query.waiting import wait_for_input

    def tell(judgement: Judgement, record: DecisionRecord) -> None:
        if as_json:
            typer.echo(record.model_dump_json())
        elif dry_run:
            typer.echo(judgement_words(judgement))

    policy_of(settings)  # only for its errors, before a broker is waited for
    wait_for_input(settings)
    run(settings, dry_run=dry_run, tell=tell)
