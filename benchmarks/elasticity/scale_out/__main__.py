"""`python -m benchmarks.elasticity.scale_out`: the recommended policy in closed loops in virtual time, about
a minute on one core.

Figures go to docs/measurements/elasticity-scale-out.json, and their tables into docs/elasticity.md, each
below its comment `<!-- elasticity_scale_out PART -->`. `--quick` prints the tables of two seeds instead, and
writes nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.elasticity.scale_out.measuring import SEEDS, VARIANTS, Figures, measure
from benchmarks.elasticity.scale_out.page import PARTS, Runs
from benchmarks.pages.tables import into_page
from workbench.elastic import SHAPES

PAGE = Path("docs/elasticity.md")
FIGURES = Path("docs/measurements/elasticity-scale-out.json")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.elasticity.scale_out", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two seeds: shows that it runs, not how well")
    options = parser.parse_args(arguments)
    runs = played(SEEDS[:2] if options.quick else SEEDS)
    if options.quick:
        print("\n\n".join(part(runs) for part in PARTS.values()))
        return 0
    FIGURES.write_text(json.dumps(runs, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    write_page(runs)
    return 0


def played(seeds: Sequence[int]) -> dict[str, dict[str, Figures]]:
    """The figures of every variant on every shape."""
    runs: dict[str, dict[str, Figures]] = {}
    for variant in VARIANTS:
        runs[variant.name] = {shape: measure(variant, shape, seeds=seeds) for shape in SHAPES}
        print(variant.name, file=sys.stderr, flush=True)
    return runs


def write_page(runs: Runs) -> None:
    """Put the tables into the page."""
    page = PAGE.read_text(encoding="utf-8")
    for name, part in PARTS.items():
        page = into_page(page, "elasticity_scale_out", name, part(runs))
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
