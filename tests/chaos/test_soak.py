"""What the verdict of a soak is made of."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.chaos.course import UNHARMED
from tests.chaos.rounds import Outcome
from tests.chaos.soak import Soak, of_folder, of_process, settled_thirds, table, write


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


def test_rows_are_kept_and_the_table_stands_in_the_page(tmp_path: Path) -> None:
    page, rows = tmp_path / "page.md", tmp_path / "rows.json"
    page.write_text("before\n<!-- chaos soak -->\n| old |\nafter\n", encoding="utf-8")
    found = Soak([5.0 * number for number in range(12)], {"threads": [7.0] * 12}, Outcome(UNHARMED))
    write(found, rate=1_000, page=page, rows=rows)
    assert page.read_text(encoding="utf-8").splitlines() == [
        "before",
        "<!-- chaos soak -->",
        "| what | first third | last third | last / first |",
        "|---|---|---|---|",
        "| threads | 7 | 7 | 1.00 |",
        "after",
    ]
    assert '"rate": 1000' in rows.read_text(encoding="utf-8")
