"""`python -m tests.chaos`: rounds of chaos, each by a seed of its own."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.measuring.machine import machine
from tests.chaos.clocks import can_be_set
from tests.chaos.course import EVERY_KIND, draw, playable
from tests.chaos.rounds import Outcome, play
from tests.chaos.tables import faults_table, rounds_table, row_of, write

_INSIDE = "EVENFLOW_CHAOS_INSIDE"
"""Set within mounts of our own, so that small file systems are gone with us however we end."""
_ROUNDS = 9
"""Of 25 strikes each, of which some have no target."""


def main(
    seed: Annotated[
        int, typer.Option(help="Seed of the first round. Each further round takes the next.")
    ] = 1,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Rounds at most. Without --minutes: 9, which have 200 faults.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(help="No round begins after so many minutes. None: rounds decide.")
    ] = None,
    faults: Annotated[int, typer.Option(min=1, help="Faults in a round.")] = 25,
    kind: Annotated[list[str] | None, typer.Option(help="Only strikes of this kind. Repeatable.")] = None,
    show: Annotated[bool, typer.Option("--show", help="Print the course of the seed and end.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Print what happened in every round.")] = False,
    keep: Annotated[
        bool, typer.Option("--write", help="Keep the rounds and write the tables of docs/correctness.md.")
    ] = False,
) -> None:
    """Play rounds, print one line for each, and tables of all faults at the end. Status 1 if anything is
    violated.
    """
    small_disks = os.geteuid() == 0 and shutil.which("unshare") is not None
    if small_disks and _INSIDE not in os.environ:
        os.environ[_INSIDE] = "1"
        words = ["unshare", "--mount", "--propagation", "private", sys.executable, "-m", "tests.chaos"]
        os.execvp(words[0], [*words, *sys.argv[1:]])
    kinds = playable(small_disks=small_disks, clocks=can_be_set())
    if missing := [one for one in EVERY_KIND if one not in kinds]:
        print(f"this machine cannot play {', '.join(missing)}: root and a C compiler are needed")
    if unknown := set(kind or ()) - set(kinds):
        raise typer.BadParameter(f"no such kind: {', '.join(unknown)}; there are {', '.join(kinds)}")
    kinds = tuple(kind or kinds)
    if show:
        print(draw(seed, faults=faults, kinds=kinds))
        return
    most = rounds if rounds is not None else _ROUNDS if minutes is None else sys.maxsize
    last = time.monotonic() + 60 * minutes if minutes is not None else float("inf")
    outcomes, here = list[Outcome](), machine()
    while len(outcomes) < most and time.monotonic() < last:
        course = draw(seed + len(outcomes), faults=faults, kinds=kinds)
        with tempfile.TemporaryDirectory(prefix="evenflow-chaos-") as folder:
            outcome = play(course, Path(folder), small_disks=small_disks)
        outcomes.append(outcome)
        print(outcome, flush=True)
        if outcome.violations or verbose:
            print("\n".join([str(course), *outcome.history, *outcome.violations]), flush=True)
        if keep:  # after each round, so that a run that is ended has kept what it played
            write(outcomes, here=here)
    _conclude(outcomes)


def _conclude(outcomes: list[Outcome]) -> None:
    rows = [row_of(outcome) for outcome in outcomes]
    print(faults_table(rows), rounds_table(rows), sep="\n\n")
    bad = [outcome.course.seed for outcome in outcomes if outcome.violations]
    print(
        f"{sum(outcome.faults.total() for outcome in outcomes)} faults in {len(outcomes)} rounds over"
        f" {sum(outcome.tuples for outcome in outcomes)} tuples; violated: {bad or 'none'}"
    )
    raise typer.Exit(1 if bad else 0)


if __name__ == "__main__":
    typer.run(main)
