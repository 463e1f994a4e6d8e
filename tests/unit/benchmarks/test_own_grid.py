"""The tables of the grid for evenflow are made of small streams; what its new figures mean."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.own_grid import cooperation, measuring, tables
from benchmarks.own_grid.__main__ import PAGE, main
from benchmarks.own_grid.cooperation import Ideal
from benchmarks.own_grid.hard_streams import generated_once
from benchmarks.own_grid.measuring import FULL, QUICK
from benchmarks.own_grid.tables import SPEEDS, TABLES
from benchmarks.pages.tables import into_page


@pytest.mark.family
@pytest.mark.parametrize("table", TABLES)
def test_every_table_has_a_head_and_rows(table: str, tmp_path: Path) -> None:
    plot = tmp_path / "pictures" / "price.svg"
    head, rule, *rows = TABLES[table](QUICK._replace(plot=plot))
    columns = head.count("|")
    assert rule == "|---" * (columns - 1) + "|"
    assert rows
    assert all(row.count("|") == columns for row in rows)
    assert "nan" not in "".join(rows)
    assert plot.exists() == (table == "price")


def test_a_quick_run_of_a_table_says_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--quick", "steady"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("\nsteady: Tuples by which the fullest worker")
    assert "| Zipf 1.5 | 64 |" in out


def test_every_table_has_its_place_in_the_page() -> None:
    page = PAGE.read_text()
    for table in TABLES:
        changed = into_page(page, "own_grid", table, "| new |\n|---|\n| 1 |")
        assert f"<!-- own_grid {table} -->\n| new |\n|---|\n| 1 |\n\n" in changed
        old = page.partition(f"<!-- own_grid {table} -->\n")[2].split("\n\n")[0]
        assert old.split("\n")[1].startswith("|---")
        assert into_page(changed, "own_grid", table, old) == page


def test_quick_figures_never_go_into_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--quick", "--write", "suite"])
    assert "mean nothing" in capsys.readouterr().err


def test_an_unknown_part_is_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["weigths"])
    assert "unknown table weigths; there are suite, grid," in capsys.readouterr().err


def test_a_quick_run_touches_no_picture_of_the_docs_and_fits_the_shifted_stream() -> None:
    assert QUICK.plot != FULL.plot
    assert QUICK.window <= QUICK.change <= QUICK.slides - 9


def test_with_equal_speeds_the_imbalance_in_time_is_that_in_tuples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "SPEEDS", (3.0,) * 16)
    for name in ("hashing", "evenflow"):
        in_time = tables.in_time(QUICK, name, "1.0", 1, {})
        in_tuples = measuring.run(QUICK, name, "1.0", 16, 1)
        np.testing.assert_allclose(in_time.imbalance, in_tuples.imbalance, atol=1e-12)
        assert in_time.ksr.tolist() == in_tuples.ksr.tolist()


def test_the_imbalance_in_time_is_that_of_a_recount_of_each_window() -> None:
    result = tables.in_time(QUICK, "evenflow", "1.5", 1, {"weights": SPEEDS}).imbalance
    out = measuring.routed(QUICK, "evenflow", "1.5", 16, 1, weights=SPEEDS)
    speeds = np.array(SPEEDS) * 16 / sum(SPEEDS)
    for slide in (0, 3, QUICK.window, QUICK.slides - 1):
        inside = out[max(0, slide + 1 - QUICK.window) * QUICK.slide : (slide + 1) * QUICK.slide]
        busy = np.bincount(inside, minlength=16) / speeds
        assert result[slide] == pytest.approx((busy.max() - len(inside) / 16) / len(inside))


def test_ideal_sources_level_what_they_may_split_and_leave_the_rest_to_its_hash() -> None:
    for sources, even in ((1, 1), (4, 4)):
        # Two keys: each is hot from the first tuple on, so only whole tuples are left, one at each source.
        few = generated_once(QUICK._replace(keys=2), "zipf", 0.0, 1, 1)
        level = cooperation.ideal(QUICK._replace(keys=2), few, 1, Ideal(sources))
        assert level.max() * QUICK.window * QUICK.slide <= even
    rare = generated_once(QUICK._replace(keys=100_000), "zipf", 0.0, 1, 1)
    alone, often = (cooperation.ideal(QUICK, rare, 1, Ideal(16, parts=parts)) for parts in (1, 4))
    assert alone.tolist() == often.tolist(), "no key is hot, so there is nothing to level"
    assert alone.mean() > 1e-3


def test_sources_that_are_apart_level_their_own_tuples_and_know_nothing_of_the_others() -> None:
    size = QUICK._replace(keys=2)
    few = generated_once(size, "zipf", 0.0, 1, 1)
    windows = cooperation.ideal_windows(size, few, 1, Ideal(4, apart=True))
    assert (windows.sum(axis=1) == size.window * size.slide).all()
    # Each source is within a tuple of level.
    assert (windows.max(axis=1) - windows.mean(axis=1)).max() <= 4
    alone = cooperation.ideal_windows(size, few, 1, Ideal(1, apart=True))
    assert (alone.max(axis=1) - alone.mean(axis=1)).max() < 1
    # Where no key may be split, it does not matter who hears whom.
    rare = generated_once(QUICK._replace(keys=100_000), "zipf", 0.0, 1, 1)
    ways = (Ideal(1), Ideal(16), Ideal(16, apart=True))
    hashed, *others = (cooperation.ideal_windows(QUICK, rare, 1, way).tolist() for way in ways)
    assert others == [hashed, hashed]
