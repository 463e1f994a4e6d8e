"""`python -m papers`: measure what is missing, then write docs/reproducing.md."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from evenflow.charts.page import drawing
from evenflow.errors import ConfigError
from evenflow.partitioners import names
from papers import report
from papers.cells.compute import compute, missing
from papers.cells.run_plan import RunPlan, full_plan, quick_plan
from papers.cells.store import Store
from papers.sections import SECTIONS

PAGE = Path("docs/reproducing.md")
QUICK_PAGE = Path(".evenflow/reproducing.md")


def main(arguments: list[str] | None = None) -> int:
    """Run as the arguments say."""
    options = _parser().parse_args(arguments)
    page = options.out or (QUICK_PAGE if options.quick else PAGE)
    processes = options.jobs or len(os.sched_getaffinity(0))
    plan = (quick_plan if options.quick else full_plan)(options.data, processes)
    try:
        # Ask for the extra that draws now, not after half an hour of measuring.
        drawing()
        store = Store(page.parent / page.stem / "results.json")
        if not options.text_only:
            _measure(store, plan, options)
        verdicts = report.write(store, plan, page)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    for name, items in verdicts.items():
        for item in items:
            print(f"{name:12} {item.level:15} {item.claim.statement}")
    print(f"written: {page}", file=sys.stderr)
    return 0


def _measure(store: Store, plan: RunPlan, options: argparse.Namespace) -> None:
    for section in options.section or SECTIONS:
        store.prune(section, SECTIONS[section].cells(plan))
        cells = missing(store, plan, section, again=options.again, only=options.partitioner)
        print(f"{section}: {len(cells)} cells to measure", file=sys.stderr, flush=True)
        compute(store, plan, cells, lambda line: print(f"  {line}", file=sys.stderr, flush=True))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m papers", description=__doc__)
    parser.add_argument("--section", action="append", choices=[*SECTIONS], help="repeatable; default: all")
    parser.add_argument(
        "--partitioner", choices=names(), metavar="NAME", help="measure cells of this one only"
    )
    parser.add_argument("--again", action="store_true", help="measure also what has been measured")
    parser.add_argument(
        "--text-only", action="store_true", help="write the page from the results that are there"
    )
    parser.add_argument("--quick", action="store_true", help=f"small streams, two seeds; writes {QUICK_PAGE}")
    parser.add_argument("--jobs", type=int, help="processes at a time (default: the cores)")
    parser.add_argument(
        "--out", type=Path, help=f"the page (default {PAGE}); results and pictures go beside it"
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(os.environ.get("EVENFLOW_DATA", "../shared/data")),
        help=(
            "folder of real data (default: $EVENFLOW_DATA, or ../shared/data); what is not there is left out"
        ),
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
