"""`python -m benchmarks.elasticity.grid [policy ...]`: every policy under thirteen loads, about twenty
minutes on one core.

Figures go to docs/measurements/elasticity-grid.json as they are found, and the tables of all of them into
docs/elasticity.md, each below its comment `<!-- elasticity_grid PART -->`. What has figures is not measured
again, unless its policy is named. `--quick` prints the tables of short runs with two seeds instead, and
writes nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from benchmarks.elasticity.grid.loads import LOADS
from benchmarks.elasticity.grid.measuring import POLICIES, SEEDS, STEPS, Figures, measure
from benchmarks.elasticity.grid.page import PARTS, Grid
from benchmarks.pages.tables import into_page

PAGE = Path("docs/elasticity.md")
FIGURES = Path("docs/measurements/elasticity-grid.json")
_DIGITS = 4


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.elasticity.grid", description=__doc__)
    parser.add_argument("policies", nargs="*", help=f"of {', '.join(POLICIES)}")
    parser.add_argument("--quick", action="store_true", help="short runs: shows that it runs, not how well")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.policies) - set(POLICIES)):
        parser.error(f"unknown policy {', '.join(unknown)}; there are {', '.join(POLICIES)}")
    if options.quick:
        grid = {
            policy: {load.name: measure(policy, load, seeds=SEEDS[:2], steps=20) for load in LOADS}
            for policy in POLICIES
        }
        print("\n\n".join(part(grid) for part in PARTS.values()))
        return 0
    figures: dict[str, dict[str, Figures]] = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    for policy in options.policies:
        figures.pop(policy, None)
    for policy, load in product(POLICIES, LOADS):
        row = figures.setdefault(policy, {})
        if load.name not in row:
            row[load.name] = _rounded(measure(policy, load, seeds=SEEDS, steps=STEPS))
            # Written at once, so that a run that is stopped goes on where it was.
            FIGURES.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n", encoding="utf-8")
            print(f"{policy}: {load.name}", flush=True)
    write_page(figures)
    return 0


def write_page(grid: Grid) -> None:
    """Put the tables into the page."""
    page = PAGE.read_text(encoding="utf-8")
    for name, part in PARTS.items():
        page = into_page(page, "elasticity_grid", name, part(grid))
    PAGE.write_text(page, encoding="utf-8")


def _rounded(figures: Figures) -> Figures:
    return {name: [float(f"{value:.{_DIGITS}g}") for value in values] for name, values in figures.items()}


if __name__ == "__main__":
    sys.exit(main())
