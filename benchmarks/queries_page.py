"""`python -m benchmarks.queries_page` runs built-in queries and writes docs/queries.md of what came out.

Each query runs through the real pipeline once with each partitioner, and every window is compared with
DuckDB's. `--query NAME` runs this query alone. It may be said more than once, and the figures of all other
queries stay as they are. `--text-only` runs none. `--limit ROWS` runs a query over its first tuples.

The figures are kept in docs/queries/figures.json, a row for each query and partitioner. A row also says on
which machine it came out. Rows and page are written only once all queries have run. If a window differs, the
page shows it and the command ends with 1.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.measuring.cpu import CpuMeter, occupancy
from benchmarks.measuring.machine import machine
from benchmarks.pages.tables import table
from benchmarks.pictures import keep_rows
from evenflow import queries
from evenflow.queries import BuiltInQuery
from evenflow.settings.durations import format_duration
from evenflow.settings.sections.query import Query
from evenflow.text.markdown import wrapped
from evenflow.windows import pane_of
from workbench.demo.options import DemoOptions, prepare
from workbench.demo.run import DemoResult, run

PAGE = Path("docs/queries.md")
FIGURES = Path("docs/queries/figures.json")
PARTITIONERS = ("evenflow", "dalton", "hashing")
PANES = 12
"""Least number of panes with tuples that a query runs over, if its data has as many. So panes come into the
window and leave it."""
Row = Mapping[str, Any]
"""Figures of a query with a partitioner: `query`, `partitioner`, those of `_MEASURED` as in `DemoResult`, and
those of `_CALL`, which all rows of one call of this command share."""
_MEASURED = ("tuples", "windows", "rows", "view_rows", "seconds", "differences")
_CALL = ("limit", "cores", "cpu", "load_average", "cores_used_by_others")
"""`limit`: the option, None for all data. `load_average`: of the last minute when all had run.
`cores_used_by_others`: mean over the whole call, None if nobody measured it."""


def page(queries: Sequence[BuiltInQuery], rows: Sequence[Row]) -> str:
    """The text of the page. Rows of queries that are not named are left out."""
    by_place = {(row["query"], row["partitioner"]): row for row in rows}
    places = [(query.name, name) for query in queries for name in PARTITIONERS]
    shown = [by_place[place] for place in places if place in by_place]
    lines = [
        "# Built-in queries",
        "",
        "`evenflow demo --query NAME` runs a query on its data and compares every window with a",
        "direct aggregation. `evenflow queries` lists them. `python -m benchmarks.queries_page` makes",
        "this page. With `--input` a query runs over other data of the same columns: `words:FILE`",
        "(any text), `taxi:FILE` (DEBS 2015), `cluster-tasks:FILE` (Google), `retail:FILE`,",
        "`tpch:scale=1`, or a file of your own.",
        "",
        table(("query", "what", "key", "window", "data"), map(_described, queries)),
        "",
        "## Every query through the whole pipeline",
        "",
        "Each query ran once with each partitioner. Rows are result rows, those of views and",
        "summaries behind those of the query. Windows are those of the query. Differences are those",
        "of all of them. Seconds are from the first tuple to the last window, the start of Spark",
        "included. The figures are kept in [figures.json](queries/figures.json).",
        "",
        *_calls(queries, shown),
        "",
        *_extent(shown),
        table(
            ("query", "partitioner", "tuples", "windows", "rows", "seconds", "differences"),
            map(_figures, shown),
        ),
        "",
    ]
    return wrapped("\n".join(lines))


def _described(query: BuiltInQuery) -> tuple[object, ...]:
    declared = Query.model_validate(dict(query.fields))
    windows = f"{format_duration(declared.window)} by {format_duration(declared.slide_ms)}"
    return f"`{query.name}`", query.what, f"`{declared.key_name}`", windows, query.data


def _extent(rows: Sequence[Row]) -> list[str]:
    if all(row["limit"] is None for row in rows):
        return []
    return [
        f"Where the first tuples lay in fewer than {PANES} slides, the query ran over more tuples, until",
        f"{PANES} slides had tuples. Where even these completed no window, it ran over all of its data.",
        "",
    ]


def _calls(queries: Sequence[BuiltInQuery], rows: Sequence[Row]) -> Iterator[str]:
    """A line for each call of this command of which there are rows, and one for queries without rows."""
    of_call: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    for row in rows:
        names = of_call[tuple(row[name] for name in _CALL)]
        if row["query"] not in names:
            names.append(row["query"])
    ran = {row["query"] for row in rows}
    absent = [query.name for query in queries if query.name not in ran]
    most = max(of_call.values(), key=len, default=[])
    for call, names in of_call.items():
        all_alike = len(of_call) == 1 and not absent
        who = "All queries" if all_alike else "All others" if names is most else _listed(names)
        yield f"* {who}: {_where(**dict(zip(_CALL, call, strict=True)))}"
    if absent:
        yield f"* Not yet run: {_listed(absent)}."


def _listed(names: Sequence[str]) -> str:
    *others, last = (f"`{name}`" for name in names)
    return f"{', '.join(others)} and {last}" if others else last


def _where(
    *, limit: int | None, cores: int, cpu: str, load_average: float, cores_used_by_others: float | None
) -> str:
    data = "all tuples" if limit is None else f"the first {limit:,} tuples"
    others = (
        ""
        if cores_used_by_others is None
        else f" Other programs took {cores_used_by_others:.1f} of these cores meanwhile."
    )
    return f"{data}, on {cores} cores of {cpu} at a load of {load_average}.{others}"


def _figures(row: Row) -> tuple[object, ...]:
    names = f"`{row['query']}`", f"`{row['partitioner']}`"
    of_views = (f"`{name}` {rows:,}" for name, rows in row["view_rows"].items())
    rows = ", ".join((f"{row['rows']:,}", *of_views))
    return (
        *names,
        f"{row['tuples']:,}",
        f"{row['windows']:,}",
        rows,
        f"{row['seconds']:.0f}",
        row["differences"],
    )


def run_all(queries: Sequence[BuiltInQuery], *, limit: int | None, console: Console) -> list[Row]:
    """Run each query with each partitioner, one after the other.

    limit: the first tuples of a query's data, None for all. If these complete no window, the query runs over
    all of its data.
    """
    results: dict[tuple[str, str], DemoResult] = {}
    with CpuMeter() as meter:
        meter.watch(os.getpid(), "queries")
        begin = meter.now()
        for query in queries:
            query_limit = None if limit is None else tuples_of(query.name, limit)
            for name in PARTITIONERS:
                options = DemoOptions(query=query.name, partitioner=name, limit=query_limit)
                results[query.name, name] = run_enough(options, console)
        end = meter.now()
        others = occupancy(meter.between(begin, end), end - begin)["cores_used_by_others"]
    facts = machine()
    call = {"limit": limit, "cores_used_by_others": others} | {
        name: facts[name] for name in ("cores", "cpu", "load_average")
    }
    return [
        {"query": query, "partitioner": name}
        | {figure: getattr(result, figure) for figure in _MEASURED}
        | {name: call[name] for name in _CALL}
        for (query, name), result in results.items()
    ]


def replaced(kept: Sequence[Row], new: Sequence[Row]) -> list[Row]:
    """The kept rows of all queries that are not among the new ones, and the new rows."""
    again = {row["query"] for row in new}
    return [*(row for row in kept if row["query"] not in again), *new]


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
    """Write figures and page. Returns 1 if a result that came out now differed, else 0."""
    every_query = queries.all_queries()
    words = argparse.ArgumentParser(prog="python -m benchmarks.queries_page", description=__doc__)
    words.add_argument("--limit", type=int, metavar="ROWS", help="only the first tuples of each query")
    words.add_argument(
        "--query",
        action="append",
        choices=[query.name for query in every_query],
        metavar="NAME",
        help="run this query alone (repeatable); the figures of all others stay",
    )
    words.add_argument("--text-only", action="store_true", help="run none; write the page of the figures")
    options = words.parse_args()
    named = [query for query in every_query if options.query is None or query.name in options.query]
    chosen = [] if options.text_only else named
    new = run_all(chosen, limit=options.limit, console=Console(stderr=True)) if chosen else []
    kept = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else []
    rows = replaced(kept, new)
    keep_rows(rows, FIGURES)
    PAGE.write_text(page(every_query, rows), encoding="utf-8")
    return 0 if all(row["differences"] == 0 for row in new) else 1


if __name__ == "__main__":
    sys.exit(main())
