"""What the times of recovery are made of, and that the page shows those that are kept."""

from __future__ import annotations

import json
from pathlib import Path

import typer
from typer.testing import CliRunner

from benchmarks.pages.tables import into_page
from tests.chaos import recovery
from tests.chaos.recovery import LOSSES, PAGE, ROWS, table, write


def test_a_loss_has_its_median_and_its_range() -> None:
    assert table({"the disk": [3.0, 1.0, 2.26]}).splitlines()[-1] == "| the disk | 3 | 2.3 | 1.0 to 3.0 |"


def test_the_table_of_the_page_is_that_of_the_kept_rows() -> None:
    page = PAGE.read_text(encoding="utf-8")
    seconds = json.loads(ROWS.read_text(encoding="utf-8"))["seconds"]
    assert list(seconds) == list(LOSSES)
    assert into_page(page, "chaos", "recovery", table(seconds)) == page, (
        "make test-recovery FLAGS='--write' writes both"
    )


def test_what_was_lost_again_has_new_rows_and_the_others_stay(tmp_path: Path) -> None:
    page, rows = tmp_path / "page.md", tmp_path / "rows.json"
    page.write_text("before\n<!-- chaos recovery -->\n| old |\nafter\n", encoding="utf-8")
    write({"nothing": [1.0], "the only broker": [9.0]}, page=page, rows=rows)
    write({"the only broker": [8.004, 7.0]}, page=page, rows=rows)
    kept = json.loads(rows.read_text(encoding="utf-8"))
    assert kept["seconds"] == {"nothing": [1.0], "the only broker": [8.0, 7.0]}
    assert kept["machine"]["cores"] >= 1
    lines = page.read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ["before", "<!-- chaos recovery -->"]
    assert lines[-2:] == ["| the only broker | 2 | 7.5 | 7.0 to 8.0 |", "after"]


def test_a_loss_that_is_not_known_is_refused_in_words() -> None:
    app = typer.Typer()
    app.command()(recovery.main)
    said = CliRunner().invoke(app, ["--only", "the moon"])
    assert said.exit_code == 2
    assert "no such loss: the moon" in " ".join(said.output.split())
