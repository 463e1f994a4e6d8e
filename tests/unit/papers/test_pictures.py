"""The kept figures show what the pages say beside their pictures. The titles of the pictures claim
nothing.
"""

import json
import re
from itertools import pairwise
from pathlib import Path

from benchmarks import pictures
from evenflow.charts.lines import Line
from papers.cells.run_plan import full_plan
from papers.cells.store import SectionFigures, Store
from papers.group_ahead.grid import SPIKE_BATCHES, spike
from papers.paper_000 import suite
from papers.paper_001 import block_grid, blocks
from papers.paper_002 import grid
from papers.paper_002.formulas import formulas
from papers.paper_004 import page as page_004
from papers.paper_004.grid import data_cell
from papers.pictures import suite_pictures

PLAN = full_plan(Path(), 1)
FOLDER = Path("docs/reproducing")


def kept(section: str) -> SectionFigures:
    return Store(FOLDER / "results.json").figures(section)


def words(picture: str) -> str:
    return (FOLDER / picture).read_text(encoding="utf-8")


def test_the_title_of_the_suite_says_what_is_drawn_and_the_readme_what_its_figures_are() -> None:
    result = kept("windowed")
    for stream in suite_pictures.SKEWED:
        cell = suite._cell(PLAN, stream, "evenflow")
        assert 100 * suite.WORKERS * result.median(cell, "imbalance") < suite_pictures.NEAR
        assert result.median(cell, "ksr") < suite_pictures.FEW_COPIES
    picture = words("suite.svg")
    assert suite_pictures.TITLE in picture
    assert f"medians over seeds {PLAN.seeds[0]} to {PLAN.seeds[-1]}" in picture


def test_a_recovery_counts_from_the_last_slide_that_is_not_level() -> None:
    def said(*percent: float) -> str:
        return suite_pictures.recovery({"evenflow": Line(range(1, len(percent) + 1), percent)})

    assert said(5.0, 0.01, 0.2, 0.01).startswith("4 slides after")
    assert said(0.01, 0.01).startswith("1 slide after")
    assert said(5.0, 0.01, 0.2) == "Balance after the keys have changed"


def test_pkg_gets_worse_with_skew_and_w_choices_stays_level() -> None:
    result = kept("d-choices")
    for n in grid.WORKERS:
        pkg, w = (
            [result.median(grid.balance_cell(PLAN, z, n, rule), "imbalance") for z in grid.ZIPFS]
            for rule in ("pkg", "w-choices")
        )
        assert pkg[-1] > 1e4 * pkg[0]
        assert all(later >= earlier for earlier, later in pairwise(pkg[4:]))
        assert max(w) < 1e-5


def test_by_formula_memory_is_at_most_30_percent_above_pkg() -> None:
    assert "at most 30 % more memory than PKG" in (FOLDER.parent / "reproducing.md").read_text(
        encoding="utf-8"
    )
    assert all(
        ratio <= 1.3 for n in grid.FORMULA_WORKERS for item in formulas(n) for ratio in item.over_pkg.values()
    )


def test_cam_splits_no_key_and_pk_pays_with_copies() -> None:
    result = kept("cardinality")
    for data in ("debs-routes", "words", "retail-stock", "flights-tailnum"):
        cam, hashing, pk = (
            page_004._place(result, data_cell(PLAN, data, 32, rule)) for rule in ("cam:d=5", "hashing", "pkg")
        )
        assert cam[0] == 1 < pk[0]
        assert pk[1] < cam[1] < hashing[1]


def test_the_blocks_of_prompt_are_as_full_as_those_of_shuffling() -> None:
    result = kept("micro-batch")
    for stream in block_grid.streams(PLAN):
        assert all(
            blocks._against(result, PLAN, stream, rule, "hashing", "bsi") < 1e-5
            for rule in ("prompt", "shuffle")
        )


def test_a_plan_that_is_amended_in_mid_group_stops_the_growth_of_the_queue_sooner() -> None:
    result = kept("group-ahead")
    for kind in ("lasting", "single"):
        plain, ahead = (spike(kind, way).cell(PLAN) for way in ("group", "group ahead"))
        assert result.median(ahead, "changed") < result.median(plain, "changed") <= SPIKE_BATCHES
        assert result.median(ahead, "most") <= result.median(plain, "most")


def test_prices_below_the_default_buy_hardly_any_balance_and_prices_above_lose_it() -> None:
    rows = json.loads(Path("docs/evenflow-partitioner/price.json").read_text(encoding="utf-8"))
    for stream in ("Zipf 1.0", "Zipf 1.5", "Zipf 2.0"):
        level = {row["price"]: row["imbalance"] for row in rows if row["stream"] == stream}
        assert level[pictures.PRICE] < 1.5 * level[0.0]
        assert level[0.03] > 3 * level[pictures.PRICE]
        assert level[1.0] > 500 * level[pictures.PRICE]


def test_rows_are_kept_beside_their_picture_and_draw_it_again(tmp_path: Path) -> None:
    rows = [
        {"partitioner": name, "keys": keys, "ns": ns * keys}
        for name, ns in (("evenflow", 2.0), ("d-choices", 1.0), ("hashing", 0.5))
        for keys in (10, 1000)
    ]
    pictures.keep(rows, pictures.growth_keys, tmp_path / "new" / "growth.svg")
    assert json.loads((tmp_path / "new" / "growth.json").read_text(encoding="utf-8")) == rows
    drawn = (tmp_path / "new" / "growth.svg").read_text(encoding="utf-8")
    assert "Cost per tuple, by number of keys" in drawn


def test_every_kept_picture_of_rows_has_its_rows() -> None:
    assert all(Path(f"{stem}.json").exists() and Path(f"{stem}.svg").exists() for stem in pictures.KEPT)


_CLAIMS = re.compile(
    r"%|\d|\b(is|are|be|has|have|do|does|hold|costs|pays?|buys?|lose|plans|stays?|stops|splits|settles?|gets?)\b"
)
"""Figures, and the verbs that titles once had."""


def test_no_kept_picture_has_a_title_that_noise_can_refute() -> None:
    pictures_of_docs = sorted(Path("docs").rglob("*.svg"))
    assert len(pictures_of_docs) > 20
    for picture in pictures_of_docs:
        titles = re.findall(r'font-size="15px"[^>]*>(.*?)</text>', picture.read_text(encoding="utf-8"))
        (title,) = (re.sub(r"<[^>]*>", "", title) for title in titles)
        assert title, picture
        assert not _CLAIMS.search(title), f"{picture}: {title}"
