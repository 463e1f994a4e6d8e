"""`evenflow train partly` trains a policy of the partitioner `partly`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenflow.commands.context import counted

if TYPE_CHECKING:
    from evenflow.training.curve import Point


def register(app: typer.Typer) -> None:
    """Add the command."""
    train = typer.Typer(no_args_is_help=True, help="Train a policy (extra `rl`).")
    train.callback()(_train)
    train.command()(partly)
    app.add_typer(train, name="train")


def _train() -> None:
    """Train a policy (extra `rl`)."""


def partly(
    folder: Annotated[Path, typer.Argument(help="Folder for the policy, the checkpoint and the curve.")],
    data_blocks: Annotated[
        str,
        typer.Option(
            metavar="N[-M]",
            help=(
                "Numbers of data blocks to train on. A policy of a range serves any number,"
                " others their own only."
            ),
        ),
    ] = "2-32",
    keys: Annotated[str, typer.Option(metavar="N-M", help="Numbers of keys of a batch.")] = "40-4000",
    exponent: Annotated[str, typer.Option(metavar="X-Y", help="Exponents of Zipf's law.")] = "0-2",
    steps: Annotated[int, counted("Actions to train on.")] = 16_000_000,
    minutes: Annotated[
        float, typer.Option(min=0.01, help="CPU time after which training stops. --resume goes on.")
    ] = 60.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the batches and of the learner.")] = 7,
    bootstrap: Annotated[
        bool, typer.Option(help="Partial rewards by the cost model for every action (001, section 4.6).")
    ] = True,
    grow: Annotated[
        bool,
        typer.Option(help="Begin with few actions, and add more by stages (001, section 4.6)."),
    ] = True,
    task_times: Annotated[
        Path | None,
        typer.Option(
            help=(
                "Costs of tasks, or telemetry of a query: from 60 % of the steps on, rewards"
                " are by task times (001, section 4.6)."
            )
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the folder's checkpoint.")] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the curve when training ends (.png .svg .pdf .html).")
    ] = None,
) -> None:
    """Train a policy of `partly` with PPO on simulated batches, on one core."""
    from evenflow.simulation.charts import check_target
    from evenflow.training.batches import BatchLaw
    from evenflow.training.curve import draw
    from evenflow.training.learner import POLICY, Learner, Training
    from evenflow.training.task_prices import read_prices

    if plot is not None:
        check_target(plot)
    low, high = _range("--data-blocks", data_blocks)
    fewest, most = _range("--keys", keys)
    law = BatchLaw(
        data_blocks=(int(low), int(high)),
        keys=(int(fewest), int(most)),
        exponent=_range("--exponent", exponent),
    )
    prices = None if task_times is None else read_prices(task_times)
    training = Training(law=law, steps=steps, seed=seed, partial=bootstrap, grow=grow, task_times=prices)
    learner = Learner(training, folder, resume=resume)
    typer.echo(
        f"Prompt on the held-out batches: cost {learner.prompt_cost:.4f},"
        f" {learner.prompt_splits:.1f} split keys"
    )
    learner.run(minutes=minutes, tell=lambda point: typer.echo(_line(point, steps)))
    best = learner.curve.best
    if best is not None:
        typer.echo(f"best: {_judged(best)} after {best.steps:,} steps -> {folder / POLICY}")
    if learner.curve.steps < steps:
        typer.echo(f"stopped after {learner.curve.steps:,} of {steps:,} steps; --resume goes on")
    if plot is not None:
        draw({folder.name: learner.curve}, plot, prompt=learner.prompt_cost)
        typer.echo(f"curve: {plot}")


def _line(point: Point, steps: int) -> str:
    return (
        f"{point.steps / steps:4.0%}  {point.steps:>12,} steps  {point.episodes:>9,} batches "
        f" {point.cpu_s:>7.0f} CPU s  stage {point.stage}  {_judged(point)}  split {point.splits:.1f}  better"
        f" than Prompt on {point.better:.0%}"
    )


def _judged(point: Point) -> str:
    excess = "" if point.excess is None else f"  excess {point.excess:.2e}"
    return f"cost {point.cost:.4f}{excess}"


def _range(option: str, text: str) -> tuple[float, float]:
    """Both ends of `N-M`, or N twice. ConfigError for anything else."""
    from evenflow.errors import ConfigError

    match = re.fullmatch(r"(\d+(?:\.\d+)?)(?:-(\d+(?:\.\d+)?))?", text)
    if match is None:
        raise ConfigError(f"{option} must be a number or a range like 2-32, not {text!r}")
    low, high = match[1], match[2] or match[1]
    return float(low), float(high)
