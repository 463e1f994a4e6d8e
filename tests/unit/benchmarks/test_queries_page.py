"""The page of the built-in queries."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.queries_page import PARTITIONERS, page
from evenflow import queries
from workbench.demo.run import DemoResult

RESULT = DemoResult(
    tuples=12_345,
    routed=12_345,
    rejected=0,
    windows=7,
    rows=89,
    differences=0,
    window_imbalance=0.0,
    ksr=1.0,
    seconds=3.4,
    tuples_per_second=1.0,
    latency_p50_ms=None,
    latency_p99_ms=None,
)
MACHINE = {"cores": 2, "cpu": "a processor", "load_average": 0.5}


def test_every_query_stands_with_every_partitioner_and_a_difference_is_not_hidden() -> None:
    known = queries.known()
    runs = {(query.name, name): RESULT for query in known for name in PARTITIONERS}
    runs["flights", "dalton"] = replace(RESULT, differences=3)
    text = page(known, runs, limit=None, on=MACHINE)
    assert "all of their data" in text
    assert "| `flights` | `dalton` | 12,345 | 7 | 89 | 3 | 3 |" in text
    for query in known:
        assert f"| `{query.name}` | `hashing` | 12,345 | 7 | 89 | 3 | 0 |" in text
        assert query.data in text


def test_a_page_of_first_tuples_says_so() -> None:
    flights = (queries.named("flights"),)
    runs = {("flights", name): RESULT for name in PARTITIONERS}
    assert "the first 1,000 tuples" in page(flights, runs, limit=1_000, on=MACHINE)
