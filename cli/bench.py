"""`evenflow bench`: the benchmarks, by permanent id."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(bench)


def bench(
    scenarios: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]...",
            help=(
                "Scenarios or groups ('service', 'partitioners', 'growth', 'elasticity')."
                " Default: all; --list names them."
            ),
        ),
    ] = None,
    smoke: Annotated[
        bool, typer.Option("--smoke", help="Small sizes: shows that they run, not how fast.")
    ] = False,
    list_them: Annotated[bool, typer.Option("--list", help="List the scenarios and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one object per scenario.")] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Seed of the stream, for scenarios that can take another one (service-instances, -shift).",
        ),
    ] = None,
) -> None:
    """Run benchmarks. Tables go to standard error."""
    from benchmarks.runner import chosen, run_all

    if list_them:
        for module in chosen(scenarios or []):
            typer.echo(f"{module.ID:32} {module.WHAT}")
        return
    run_all(scenarios or [], smoke=smoke, as_json=as_json, seed=seed)
