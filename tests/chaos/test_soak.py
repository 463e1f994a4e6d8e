"""What the verdict of a soak is made of."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from tests.chaos import soak
from tests.chaos.course import UNHARMED
from tests.chaos.rounds import Outcome
from tests.chaos.soak import (
    PAGE,
    ROWS,
    Soak,
    of_folder,
    of_process,
    settled_thirds,
    table,
    tables,
    write,
)


def test_what_grows_is_seen_and_how_it_began_is_left_out() -> None:
    steady = [900.0] * 3 + [100.0] * 9
    grows = [10.0 * number for number in range(12)]
    assert settled_thirds(steady) == (100.0, 100.0)
    assert settled_thirds(grows) == (40.0, 100.0)
    assert table({"steady": steady, "grows": grows}).splitlines()[2:] == [
        "| steady | 100 | 100 | 1.00 |",
        "| grows | 40 | 100 | 2.50 |",
    ]
    with pytest.raises(ValueError, match="11 looks are too few"):
        settled_thirds([1.0] * 11)


def test_a_process_and_a_folder_have_the_sizes_that_they_have(tmp_path: Path) -> None:
    memory, files, threads = of_process(os.getpid())
    with (tmp_path / "a").open("wb") as opened:
        opened.write(b"x" * 2**20)
        opened.flush()
        assert of_process(os.getpid())[1] == files + 1
    assert memory > 10
    assert threads >= 1
    assert of_folder(tmp_path) == (1, 1.0)


def test_rows_are_kept_and_drawn_and_the_tables_stand_in_the_page(tmp_path: Path) -> None:
    page, rows = tmp_path / "page.md", tmp_path / "rows.json"
    page.write_text(
        "before\n<!-- chaos soak-run -->\n| old |\nbetween\n<!-- chaos soak -->\n| old |\nafter\n",
        encoding="utf-8",
    )
    outcome = Outcome(UNHARMED, tuples=110_000, rejected=1_000, rows=900)
    found = Soak([10.0 * number for number in range(1, 13)], {"a part: threads": [7.0] * 12}, outcome)
    write(found, rate=1_000, page=page, rows=rows)
    lines = page.read_text(encoding="utf-8").splitlines()
    assert lines[0:2] == ["before", "<!-- chaos soak-run -->"]
    assert lines[4].startswith("| 2 | 1,000 | 925 | 110,000 | 1,000 | 900 | ")
    assert lines[5:] == [
        "between",
        "<!-- chaos soak -->",
        "| what | first third | last third | last / first |",
        "|---|---|---|---|",
        "| a part: threads | 7 | 7 | 1.00 |",
        "after",
    ]
    assert json.loads(rows.read_text(encoding="utf-8"))["rate"] == 1_000
    assert "a part: threads" in rows.with_suffix(".svg").read_text(encoding="utf-8")


def test_the_tables_of_the_page_are_those_of_the_kept_rows() -> None:
    page, kept = PAGE.read_text(encoding="utf-8"), json.loads(ROWS.read_text(encoding="utf-8"))
    assert tables(page, kept) == page, "python -m tests.chaos.soak --write writes both"


def test_of_a_run_that_did_not_end_exactly_the_table_is_shown_and_nothing_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    outcome = Outcome(UNHARMED, violations=["a row differs"])
    found = Soak([5.0 * number for number in range(1, 13)], {"threads": [7.0] * 12}, outcome)
    monkeypatch.setattr(soak, "soak", lambda *_, **__: found)
    monkeypatch.chdir(tmp_path)
    app = typer.Typer()
    app.command()(soak.main)
    said = CliRunner().invoke(app, ["--minutes", "1", "--write"])
    assert said.exit_code == 1
    assert "| threads | 7 | 7 | 1.00 |" in said.output
    assert "a row differs" in said.output
    assert list(tmp_path.iterdir()) == []
