"""`python -m tests.chaos`: rounds of chaos until the time is up, each by a seed of its own."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from tests.chaos.clocks import can_be_set
from tests.chaos.course import KINDS, ON_SET_CLOCKS, ON_SMALL_DISKS, WITH_A_REGISTRY, draw
from tests.chaos.rounds import Outcome, play

_INSIDE = "EVENFLOW_CHAOS_INSIDE"
"""Set within mounts of our own, so that small file systems are gone with us however we end."""


def main(
    seed: Annotated[
        int, typer.Option(help="Seed of the first round. Each further round takes the next.")
    ] = 1,
    minutes: Annotated[float, typer.Option(help="No round begins after so many minutes.")] = 25.0,
    faults: Annotated[int, typer.Option(min=1, help="Faults in a round.")] = 25,
    kind: Annotated[list[str] | None, typer.Option(help="Only strikes of this kind. Repeatable.")] = None,
    also: Annotated[
        list[str] | None, typer.Option(help="Also strikes of this kind, which is else left out. Repeatable.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Print the course of the seed and end.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Print what happened in every round.")] = False,
) -> None:
    """Play rounds, print one line for each, and a table of all faults at the end. Status 1 if anything is
    violated.
    """
    small_disks = os.geteuid() == 0 and shutil.which("unshare") is not None
    if small_disks and _INSIDE not in os.environ:
        os.environ[_INSIDE] = "1"
        words = ["unshare", "--mount", "--propagation", "private", sys.executable, "-m", "tests.chaos"]
        os.execvp(words[0], [*words, *sys.argv[1:]])
    kinds: tuple[str, ...] = (*KINDS, *ON_SMALL_DISKS) if small_disks else KINDS
    if not small_disks:
        print(f"without root and unshare: no {' and no '.join(ON_SMALL_DISKS)}")
    asked = (*WITH_A_REGISTRY, *(ON_SET_CLOCKS if can_be_set() else ()))
    if unknown := {*(kind or ()), *(also or ())} - {*kinds, *asked}:
        raise typer.BadParameter(
            f"no such kind: {', '.join(unknown)}; there are {', '.join((*kinds, *asked))}"
        )
    kinds = (*(kind or kinds), *(one for one in also or () if one not in (kind or kinds)))
    if show:
        print(draw(seed, faults=faults, kinds=kinds))
        return
    outcomes, began = list[Outcome](), time.monotonic()
    while time.monotonic() - began < 60 * minutes:
        course = draw(seed + len(outcomes), faults=faults, kinds=kinds)
        with tempfile.TemporaryDirectory(prefix="evenflow-chaos-") as folder:
            outcome = play(course, Path(folder), small_disks=small_disks)
        outcomes.append(outcome)
        print(outcome, flush=True)
        if outcome.violations or verbose:
            print("\n".join([str(course), *outcome.history, *outcome.violations]), flush=True)
    _conclude(outcomes)


def _conclude(outcomes: list[Outcome]) -> None:
    kinds = Counter(fault.kind for outcome in outcomes for fault in outcome.course.strikes)
    for kind, times in sorted(kinds.items()):
        print(f"{times:5} {kind}")
    bad = [outcome.course.seed for outcome in outcomes if outcome.violations]
    tuples = sum(outcome.tuples for outcome in outcomes)
    print(
        f"{sum(kinds.values())} faults in {len(outcomes)} rounds over {tuples} tuples; violated:"
        f" {bad or 'none'}"
    )
    raise typer.Exit(1 if bad else 0)


if __name__ == "__main__":
    typer.run(main)
