"""`evenflow plan`: which plan is in force, a plan by hand, and back to the workers of the settings."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(plan)


def plan(
    context: typer.Context,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Publish a plan with so many workers (p).")
    ] = None,
    reducers: Annotated[
        int | None, typer.Option(min=1, help="Buckets running at once (r) of that plan. Default: all.")
    ] = None,
    effective_from: Annotated[
        int | None,
        typer.Option(help="Event time (ms) on a slide boundary for that plan. Default: at the next slide."),
    ] = None,
    clear: Annotated[
        bool,
        typer.Option("--clear", help="Publish what the settings say: partitioner.workers, spark.reducers."),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="With --clear: also beside a controller.")] = False,
    because: Annotated[
        str, typer.Option("--because", help="Why this plan is published, for `evenflow audit`.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="The plan in force as one JSON object.")] = False,
) -> None:
    """Show the plan in force, or publish one by hand: how many workers are in use.

    A plan that is published is printed as its record. A running controller goes
    on from a plan by hand, so --clear is refused beside one.
    """
    import json

    from evenflow.commands.context import settings_of
    from evenflow.errors import ConfigError

    if workers is None and (reducers is not None or effective_from is not None):
        raise ConfigError(
            "--reducers and --effective-from belong to a plan by hand", hint="say --workers, too"
        )
    if clear and workers is not None:
        raise ConfigError(
            "--clear publishes the workers of the settings, so --workers has no place beside it",
            hint="leave one of them out",
        )
    if force and not clear:
        raise ConfigError(
            "--force belongs to --clear", hint="a plan with --workers is published beside a controller anyway"
        )
    settings = settings_of(context)

    from partitioner_service.plans_by_hand import publish
    from workbench.assist.applied_plans import applied_plans, refuse_beside_a_controller
    from workbench.assist.applied_plans import clear as cleared

    if workers is not None:
        published = publish(
            settings, workers=workers, reducers=reducers, effective_from=effective_from, because=because
        )
    elif clear:
        if not force:
            refuse_beside_a_controller(settings, waiting=lambda line: typer.echo(line, err=True))
        published = cleared(settings, because=because)
    else:
        report = applied_plans(settings)
        typer.echo(json.dumps(report.as_json()) if as_json else "\n".join(report.lines()))
        return
    typer.echo(published.encode(settings.fingerprint).decode())
