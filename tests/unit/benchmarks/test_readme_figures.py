"""README's figures are those of rows that one run measured, and so are the tables of docs/measurements.md."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import measurements_page, readme
from benchmarks.pages.rows import keep, kept_rows
from benchmarks.pipeline import profile_page, tuple_profile
from benchmarks.runner import README_SCENARIOS


def test_readme_has_the_figures_of_the_rows_that_are_kept() -> None:
    text = readme.PAGE.read_text(encoding="utf-8")
    assert readme.page(text, kept_rows(README_SCENARIOS)) == text, "python -m benchmarks.readme"


def test_the_page_of_measurements_has_the_figures_of_the_rows_that_are_kept() -> None:
    text = measurements_page.PAGE.read_text(encoding="utf-8")
    rows = kept_rows(measurements_page.SCENARIOS)
    assert measurements_page.page(text, rows) == text, "python -m benchmarks.measurements_page"


def test_the_profile_has_the_figures_of_the_row_that_is_kept() -> None:
    made = profile_page.page(kept_rows([tuple_profile.ID])[tuple_profile.ID])
    assert profile_page.PAGE.read_text(encoding="utf-8") == made, "python -m benchmarks.pipeline.profile_page"


def test_the_first_paragraph_has_the_figures_of_the_rows_that_are_kept() -> None:
    text = " ".join(readme.PAGE.read_text(encoding="utf-8").split())
    rows = kept_rows(README_SCENARIOS)
    assert [words for words in readme.opening(rows) if words not in text] == []


def test_the_rows_are_of_one_machine_of_committed_code_and_of_no_smoke_run() -> None:
    rows = kept_rows(README_SCENARIOS)
    assert {(row["machine"]["cpu"], row["machine"]["cores"], row["smoke"]) for row in rows.values()} == {
        (rows["service-peers"]["machine"]["cpu"], rows["service-peers"]["machine"]["cores"], False)
    }
    assert [name for name, row in rows.items() if row["machine"]["commit"].endswith("-dirty")] == []


def test_a_row_becomes_the_file_of_its_scenario(tmp_path: Path) -> None:
    rows = [{"id": name, "smoke": False, "figure": at} for at, name in enumerate(README_SCENARIOS)]
    keep([*map(json.dumps, rows), ""], tmp_path)
    assert list(kept_rows(README_SCENARIOS, tmp_path).values()) == rows


def test_rows_of_a_smoke_run_are_refused_and_none_is_kept(tmp_path: Path) -> None:
    rows = [{"id": "service-start", "smoke": False}, {"id": "service-peers", "smoke": True}]
    with pytest.raises(ValueError, match="service-peers was only smoked"):
        keep(map(json.dumps, rows), tmp_path)
    assert not list(tmp_path.iterdir())
