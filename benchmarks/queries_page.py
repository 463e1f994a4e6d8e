"""`python -m benchmarks.queries_page [--limit ROWS]` writes docs/queries.md by running every built-in query.

Each query runs through the real pipeline once with each partitioner, and every window is compared with
DuckDB's. The page is written only once all queries have run. If a window differs, the page shows it and the
command ends with 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.console import Console

from benchmarks.measuring.machine import machine
from benchmarks.scale.pages import table
from evenflow import queries
from evenflow.queries import BuiltInQuery
from evenflow.settings.durations import format_duration
from evenflow.settings.sections.query import Query
from evenflow.windows import pane_of
from workbench.demo.options import DemoOptions, prepare
from workbench.demo.run import DemoResult, run

PAGE = Path("docs/queries.md")
PARTITIONERS = ("evenflow", "dalton", "hashing")
Runs = Mapping[tuple[str, str], DemoResult]
"""Results by query and partitioner."""


PANES = 12
"""Least number of panes with tuples that a query runs over, if its data has as many. So panes come into the
window and leave it."""


def page(queries: Sequence[BuiltInQuery], runs: Runs, *, limit: int | None, on: Mapping[str, object]) -> str:
    """The text of the page. `limit`: how many tuples of each query's data were taken (None: all). `on`:
    the machine.
    """
    ran, words = "The queries ran over all of their data, once with each partitioner.", ""
    if limit is not None:
        ran = (
            f"Each query ran over the first {limit:,} tuples of its data, once with each partitioner. If"
            f" these tuples lay in fewer than {PANES} slides, the query ran over more tuples, until {PANES}"
            " slides had tuples. If even these tuples completed no window of the query, the query ran over"
            " all of its data."
        )
        words = f" --limit {limit}"
    return "\n".join(
        [
            "# Built-in queries",
            "",
            (
                "`evenflow demo --query NAME` runs a query on its data and compares every window with a"
                " direct aggregation."
            ),
            (
                "`evenflow queries` lists them. This page was made by `python -m"
                f" benchmarks.queries_page{words}`."
            ),
            (
                "With `--input` a query runs over other data of the same columns: `words:FILE` (any text),"
                " `taxi:FILE`"
            ),
            (
                "(DEBS 2015), `cluster-tasks:FILE` (Google), `retail:FILE`, `tpch:scale=1`, or a file of your"
                " own."
            ),
            "",
            table(("query", "what", "key", "window", "data"), map(_described, queries)),
            "",
            "## Every query through the whole pipeline",
            "",
            (
                f"{ran} Rows are result rows. Seconds are from the first tuple to the last window, the start"
                " of Spark included."
            ),
            f"The queries ran on {on['cores']} cores of {on['cpu']} at a load of {on['load_average']}.",
            "",
            table(
                ("query", "partitioner", "tuples", "windows", "rows", "seconds", "differences"),
                (_figures(query, name, runs[query.name, name]) for query in queries for name in PARTITIONERS),
            ),
            "",
        ]
    )


def _described(query: BuiltInQuery) -> tuple[object, ...]:
    declared = Query.model_validate(dict(query.fields))
    windows = f"{format_duration(declared.window)} by {format_duration(declared.slide_ms)}"
    return f"`{query.name}`", query.what, f"`{declared.key_name}`", windows, query.data


def _figures(query: BuiltInQuery, partitioner: str, result: DemoResult) -> tuple[object, ...]:
    counts = (f"{figure:,}" for figure in (result.tuples, result.windows, result.rows))
    return f"`{query.name}`", f"`{partitioner}`", *counts, f"{result.seconds:.0f}", result.differences


def run_all(queries: Sequence[BuiltInQuery], *, limit: int | None, console: Console) -> Runs:
    """Run each query with each partitioner, one after the other.

    If the first tuples of a query complete no window, the query runs over all of its data.
    """
    runs = {}
    for query in queries:
        query_limit = None if limit is None else tuples_of(query.name, limit)
        for name in PARTITIONERS:
            runs[query.name, name] = run_enough(
                DemoOptions(query=query.name, partitioner=name, limit=query_limit), console
            )
    return runs


def run_enough(options: DemoOptions, console: Console) -> DemoResult:
    """Run the query over as many tuples as the options say, or over all if these complete no window."""
    result = run(options, console)
    return result if result.windows else run(replace(options, limit=None), console)


def tuples_of(name: str, limit: int) -> int:
    """How many tuples of this query's data to take: `limit`, or as many more as `PANES` panes need."""
    with TemporaryDirectory() as folder:
        settings, source = prepare(DemoOptions(query=name), Path(folder))
    panes = np.concatenate([pane_of(batch.times, settings.query.slide_ms) for batch in source.batches()])
    # Rows that are in a newer pane than all rows before. Data may be out of order.
    begins = np.flatnonzero(np.diff(np.maximum.accumulate(panes))) + 1
    return max(limit, int(begins[PANES - 1]) if len(begins) >= PANES else len(panes))


def main() -> int:
    """Write the page. Returns 1 if a result differed, else 0."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--limit", type=int, help="only the first ROWS tuples of each query")
    limit = words.parse_args().limit
    runs = run_all(queries.known(), limit=limit, console=Console(stderr=True))
    PAGE.write_text(page(queries.known(), runs, limit=limit, on=machine()), encoding="utf-8")
    return 0 if all(result.differences == 0 for result in runs.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
