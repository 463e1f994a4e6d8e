"""The tables of rounds of chaos, and that the page shows the rounds that are kept."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

from benchmarks.pages.tables import into_page
from tests.chaos.course import EVERY_KIND, UNHARMED, draw
from tests.chaos.rounds import Outcome
from tests.chaos.tables import PAGE, ROWS, faults_table, rounds_table, row_of, write


def outcome(seed: int, **fields: object) -> Outcome:
    """Of a course with five strikes."""
    course = draw(seed, faults=5, kinds=["kill broker"])
    return Outcome(replace(course, wiring="split", sink="frames", views=False, late="reject"), **fields)  # type: ignore[arg-type]


def test_a_fault_has_its_hits_its_rounds_and_what_became_of_these() -> None:
    rows = [row_of(outcome(1)), row_of(outcome(2, missed=Counter({"kill broker": 2}), violations=["a row"]))]
    lines = faults_table(rows).splitlines()
    assert "| broker | kill broker | 8 | 2 | violated: 2 |" in lines
    assert "| network | cut connections | 0 | 0 | not drawn |" in lines
    assert lines[-1] == "| all | | 8 | 2 | violated: 2 |"


def test_a_round_has_its_pipeline_and_its_outcome() -> None:
    made = outcome(1, tuples=1_000, rows=2_000, batches=7, growth={"Java": 1.204})
    made = replace(made, course=replace(UNHARMED, seed=9, executors=True, strikes=made.course.strikes))
    assert rounds_table([row_of(made)]).splitlines()[-1] == (
        "| 9 | fused, `kafka`, `evenflow`, 2 instances, executors | 5 | 1,000 | 2,000 | 7 | -, x1.20, - |"
        " every row exact |"
    )


def test_rounds_are_kept_and_their_tables_are_put_into_the_page(tmp_path: Path) -> None:
    page, rows = tmp_path / "page.md", tmp_path / "rows.json"
    page.write_text("a\n<!-- chaos faults -->\n| old |\nb\n<!-- chaos rounds -->\nc\n", encoding="utf-8")
    write([outcome(1)], page=page, rows=rows)
    text = page.read_text(encoding="utf-8")
    assert "| old |" not in text
    assert [line for line in text.splitlines() if not line.startswith("|")] == [
        "a", "<!-- chaos faults -->", "b", "<!-- chaos rounds -->", "c",
    ]  # fmt: skip
    assert json.loads(rows.read_text(encoding="utf-8"))["machine"]["cores"] >= 1


def test_a_seed_that_is_played_again_has_a_new_row_and_the_others_stay(tmp_path: Path) -> None:
    page, rows = tmp_path / "page.md", tmp_path / "rows.json"
    page.write_text("<!-- chaos faults -->\n<!-- chaos rounds -->\n", encoding="utf-8")
    write([outcome(2), outcome(3, violations=["a row"])], page=page, rows=rows)
    write([outcome(3, tuples=7), outcome(1)], page=page, rows=rows)
    kept = json.loads(rows.read_text(encoding="utf-8"))["rounds"]
    assert [(row["seed"], row["tuples"], row["violations"]) for row in kept] == [
        (1, 0, []),
        (2, 0, []),
        (3, 7, []),
    ]
    assert all("commit" in row for row in kept)
    assert "violated" not in page.read_text(encoding="utf-8")


def test_the_tables_of_the_page_are_those_of_the_kept_rounds() -> None:
    page, rows = PAGE.read_text(encoding="utf-8"), json.loads(ROWS.read_text(encoding="utf-8"))["rounds"]
    for part, table in (("faults", faults_table(rows)), ("rounds", rounds_table(rows))):
        assert into_page(page, "chaos", part, table) == page, "make test-chaos FLAGS='--write' writes both"


def test_the_rounds_that_are_kept_have_two_hundred_faults_and_nothing_violated() -> None:
    rows = json.loads(ROWS.read_text(encoding="utf-8"))["rounds"]
    assert not any(row["violations"] for row in rows)
    hits = sum((Counter(row["faults"]) for row in rows), Counter[str]())
    assert hits.total() >= 200
    assert {row["wiring"] for row in rows} == {"fused", "split"}
    assert set(hits) <= set(EVERY_KIND)
