"""The page of the built-in queries."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import queries_page
from benchmarks.queries_page import FIGURES, PAGE, PARTITIONERS, Row, main, page, replaced
from evenflow import queries
from workbench.demo.options import DemoOptions
from workbench.demo.run import DemoResult

ROW = {
    "tuples": 12_345,
    "windows": 7,
    "rows": 89,
    "view_rows": {},
    "seconds": 3.4,
    "differences": 0,
    "limit": None,
    "cores": 2,
    "cpu": "a processor",
    "load_average": 0.5,
    "cores_used_by_others": None,
}
RESULT = DemoResult(
    tuples=500,
    routed=500,
    rejected=0,
    windows=20,
    rows=300,
    differences=0,
    window_imbalance=0.0,
    ksr=1.0,
    seconds=21.6,
    tuples_per_second=1.0,
    latency_p50_ms=None,
    latency_p99_ms=None,
    view_rows={"areas": 4_000},
)


def one_line(text: str) -> str:
    """The text as if its paragraphs were not wrapped."""
    return " ".join(text.split())


def rows_of(*names: str, **changes: Any) -> list[Row]:
    return [{"query": query, "partitioner": name} | ROW | changes for query in names for name in PARTITIONERS]


def test_every_query_stands_with_every_partitioner_and_a_difference_is_not_hidden() -> None:
    known = queries.all_queries()
    rows = [
        row | {"differences": 3} if (row["query"], row["partitioner"]) == ("flights", "dalton") else row
        for row in rows_of(*(query.name for query in known))
    ]
    text = page(known, rows)
    assert "* All queries: all tuples, on 2 cores of a processor at a load of 0.5. " in one_line(text)
    assert "Where the first tuples" not in text
    assert "| `flights` | `dalton` | 12,345 | 7 | 89 | 3 | 3 |" in text
    for query in known:
        assert f"| `{query.name}` | `hashing` | 12,345 | 7 | 89 | 3 | 0 |" in text
        assert query.data in text


def test_a_page_says_of_each_query_where_it_ran_over_what_and_which_has_not_run() -> None:
    known = [queries.named(name) for name in ("debs-q2", "flights", "retail", "tpch-q3", "clusters")]
    later = rows_of("debs-q2", limit=1_000, cores_used_by_others=0.62, view_rows={"areas": 4_000})
    text = page(known, [*later, *rows_of("flights", "retail", "tpch-q3")])
    lines = [
        "* `debs-q2`: the first 1,000 tuples, on 2 cores of a processor at a load of 0.5."
        " Other programs took 0.6 of these cores meanwhile.",
        "* All others: all tuples, on 2 cores of a processor at a load of 0.5.",
        "* Not yet run: `clusters`.",
    ]
    assert " ".join(lines) in one_line(text)
    assert "Where the first tuples lay in fewer than 12 slides" in one_line(text)
    assert "| `debs-q2` | `dalton` | 12,345 | 7 | 89, `areas` 4,000 | 3 | 0 |" in text


def test_rows_of_queries_that_ran_again_are_replaced_and_all_others_stay() -> None:
    kept = rows_of("flights", "debs-q2", "tpch-q3")
    new = rows_of("debs-q2", tuples=1)
    result = replaced(kept, new)
    assert [row for row in result if row["query"] != "debs-q2"] == rows_of("flights", "tpch-q3")
    assert [row for row in result if row["query"] == "debs-q2"] == new


def test_the_page_is_that_of_the_kept_figures() -> None:
    rows = json.loads(FIGURES.read_text(encoding="utf-8"))
    assert PAGE.read_text(encoding="utf-8") == page(queries.all_queries(), rows)


@pytest.mark.parametrize(("differences", "status"), [(0, 0), (2, 1)])
def test_a_call_for_one_query_runs_it_with_each_partitioner_and_keeps_the_figures_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, differences: int, status: int
) -> None:
    ran: list[tuple[str | None, str, int | None]] = []

    def run(options: DemoOptions, console: object) -> DemoResult:
        ran.append((options.query, options.partitioner, options.limit))
        return replace(RESULT, differences=differences)

    figures, target = tmp_path / "figures.json", tmp_path / "queries.md"
    figures.write_text(json.dumps(rows_of("flights", "retail")))
    monkeypatch.setattr(queries_page, "FIGURES", figures)
    monkeypatch.setattr(queries_page, "PAGE", target)
    monkeypatch.setattr(queries_page, "run", run)
    monkeypatch.setattr("sys.argv", ["queries_page", "--query", "retail"])
    assert main() == status
    assert ran == [("retail", name, None) for name in PARTITIONERS]
    kept = json.loads(figures.read_text())
    assert kept[: len(PARTITIONERS)] == rows_of("flights")
    assert [(row["query"], row["tuples"], row["differences"]) for row in kept[len(PARTITIONERS) :]] == [
        ("retail", 500, differences)
    ] * len(PARTITIONERS)
    text = target.read_text()
    assert f"| `retail` | `dalton` | 500 | 20 | 300, `areas` 4,000 | 22 | {differences} |" in text
    assert "of these cores meanwhile" in one_line(text)
    monkeypatch.setattr("sys.argv", ["queries_page", "--text-only"])
    assert main() == 0
    assert (len(ran), target.read_text()) == (len(PARTITIONERS), text)
    monkeypatch.setattr("sys.argv", ["queries_page", "--query", "retial"])
    with pytest.raises(SystemExit):
        main()
