"""Built-in queries in micro-batches: two instances, both wirings of Spark, and every window compared with
DuckDB's.
"""

from __future__ import annotations

from itertools import product

from rich.console import Console

from benchmarks.measuring.step_lines import step
from benchmarks.queries_page import run_enough, tuples_of
from workbench.demo.options import DemoOptions

SEED = 1
"""Of generated sources, unless a query names another."""
ID = "service-batch-queries"
WHAT = (
    "built-in queries through the pipeline in micro-batches: two instances, both wirings, differences from"
    " DuckDB"
)

QUERIES = ("flights", "top-words", "debs-q1-routes", "tpch-q3")
"""Flights, words whose law is Zipf's, and a query of each kind that the papers have."""
PARTITIONERS = ("prompt", "dalton-batch", "time-based", "partly")


def run(*, smoke: bool) -> dict[str, object]:
    """A row for each query, partitioner and wiring."""
    ways = list(product(QUERIES, PARTITIONERS, ("fused", "split")))
    rows = []
    for query, name, wiring in ways[:1] if smoke else ways:
        options = DemoOptions(
            query=query, partitioner=name, wiring=wiring, instances=2, limit=tuples_of(query, 2_000)
        )
        with step(f"{query}, {name}, {wiring}"):
            result = run_enough(options, Console(stderr=True, quiet=True))
        figures = ("tuples", "windows", "rows", "differences")
        rows.append(
            {"query": query, "partitioner": name, "wiring": wiring}
            | {figure: getattr(result, figure) for figure in figures}
            | {"seconds": round(result.seconds, 1)}
        )
    return {"rows": rows, "differences": sum(int(str(row["differences"])) for row in rows)}
