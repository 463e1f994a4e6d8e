"""The partitioner `evenflow` against its goals: `python -m benchmarks.own_grid [table ...]`, an hour or more.

Streams have 100,000 keys and 180 slides of 10,000 tuples. Windows have 60 slides. Seeds are 1 to 10, or 1 to
3 where only options of evenflow change, and where streams change. A figure is the median over the seeds of
the mean over slides 60-179. The figures are window_imbalance, (max - mean load) / tuples in the window of the
last 60 complete slides, and KSR, Gamma / distinct keys in that window.

The command prints Markdown tables. `--write` puts them into docs/evenflow-partitioner.md, each below its
comment `<!-- own_grid TABLE -->`. With `--quick` streams are small and there is one seed: it shows that
everything runs, and its figures mean nothing.
"""

from __future__ import annotations

import argparse
import sys
from inspect import getdoc
from pathlib import Path

from benchmarks.own_grid.measuring import FULL, QUICK
from benchmarks.own_grid.tables import TABLES
from benchmarks.pages.tables import into_page

PAGE = Path("docs/evenflow-partitioner.md")


def main(arguments: list[str] | None = None) -> int:
    """Print the tables that the arguments name, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.own_grid", description="evenflow's goals")
    parser.add_argument("tables", nargs="*", metavar="table", help=f"of {', '.join(TABLES)}; default: all")
    parser.add_argument(
        "--quick", action="store_true", help="small streams: shows that it runs, not how well"
    )
    parser.add_argument("--write", action="store_true", help=f"put the tables into {PAGE}")
    options = parser.parse_args(arguments)
    if options.quick and options.write:
        parser.error("the figures of --quick mean nothing: they do not belong into the page")
    if unknown := sorted(set(options.tables) - set(TABLES)):
        parser.error(f"unknown table {', '.join(unknown)}; there are {', '.join(TABLES)}")
    for name in options.tables or TABLES:
        print(f"\n{name}: {getdoc(TABLES[name])}\n")
        lines = []
        for line in TABLES[name](QUICK if options.quick else FULL):
            print(line, flush=True)
            lines.append(line)
        if options.write:
            PAGE.write_text(into_page(PAGE.read_text(), "own_grid", name, "\n".join(lines)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
