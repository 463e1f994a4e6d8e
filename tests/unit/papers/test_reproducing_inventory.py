"""Every figure, table and algorithm of the papers has one line on the page, and each place that it names
is there.
"""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from papers.inventory import PAPERS, TITLE, anchor, claims, title
from papers.inventory.item import NOT_MEASURED as NOWHERE
from papers.inventory.item import Item
from papers.inventory.sources import items_of
from papers.report import NOT_MEASURED
from papers.sections import SECTIONS

PAGE = (Path(__file__).parents[3] / "docs/reproducing.md").read_text(encoding="utf-8")
CHAPTER = PAGE.partition(f"## {TITLE}\n")[2]
HEADINGS = {anchor(line.lstrip("# ")) for line in PAGE.splitlines() if re.match(r"#{1,3} ", line)}
ITEMS = [(paper, item) for paper, items in PAPERS.items() for item in items]
BY_NAME = {(paper, item.kind, item.number): item for paper, item in ITEMS}


def chapter(number: int, figures: int) -> list[str]:
    return [f"{number}.{figure}" for figure in range(1, figures + 1)]


def upto(last: int) -> list[str]:
    return [str(number) for number in range(1, last + 1)]


NUMBERED = {
    "000": {"fig.": upto(15), "table": upto(2), "alg.": upto(2)},
    "001": {
        "fig.": [
            *chapter(1, 5),
            *chapter(2, 9),
            *chapter(3, 7),
            *chapter(4, 13),
            *chapter(5, 7),
            *chapter(6, 2),
        ],
        "table": [],
        "alg.": upto(5),
    },
    "002": {"fig.": upto(14), "table": upto(3), "alg.": upto(1)},
    "003": {"fig.": upto(10), "table": upto(2), "alg.": upto(2)},
    "004": {"fig.": upto(13), "table": upto(4), "alg.": upto(5)},
}
"""What the captions of the papers number."""


@pytest.mark.parametrize("paper", NUMBERED)
def test_the_list_has_each_number_of_a_paper_once_and_in_order(paper: str) -> None:
    for kind, numbers in NUMBERED[paper].items():
        assert [item.number for item in PAPERS[paper] if item.kind == kind] == numbers
    assert len(PAPERS[paper]) == sum(map(len, NUMBERED[paper].values()))


@pytest.mark.parametrize(("paper", "item"), ITEMS, ids=lambda value: getattr(value, "name", value))
def test_an_item_has_one_line_on_the_page_and_a_place_that_exists_or_why_not(paper: str, item: Item) -> None:
    lines = [line for line in CHAPTER.splitlines() if line.startswith(f"| {paper}, {item.name} | ")]
    assert len(lines) == 1
    assert item.shows in lines[0]
    assert item.places or len(item.why) > 9
    assert len(set(item.places)) == len(item.places)
    links = re.findall(r"\]\(#([\w-]+)\)", lines[0])
    assert links == [anchor(title(place)) for place in item.places]
    assert set(links) <= HEADINGS
    assert item.why in lines[0]


@pytest.mark.parametrize("section", SECTIONS)
def test_what_a_claim_names_is_listed_with_the_section_of_the_claim(section: str) -> None:
    for claim in SECTIONS[section].CLAIMS:
        for name in items_of(claim.source):
            assert section in BY_NAME[name].places, (claim.source, name)
            assert claims(name[0], BY_NAME[name], section) > 0


def test_what_is_listed_as_not_measured_has_a_row_there_and_the_reverse() -> None:
    rows = {name for source, _, _ in NOT_MEASURED for name in items_of(source)}
    assert rows == {name for name, item in BY_NAME.items() if NOWHERE in item.places}


def test_a_place_that_does_not_exist_is_refused() -> None:
    with pytest.raises(KeyError):
        title("windwed")


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("000, fig. 7-8, 5.1", {("000", "fig.", "7"), ("000", "fig.", "8")}),
        ("000, fig. 9a and 9d, 5.2", {("000", "fig.", "9")}),
        ("000, fig. 7, 9a, 9d, 11", {("000", "fig.", "7"), ("000", "fig.", "9"), ("000", "fig.", "11")}),
        ("000, 3.2 (Alg. 1)", {("000", "alg.", "1")}),
        ("ours, to 000 fig. 9b", {("000", "fig.", "9")}),
        ("001, 2.4.1, fig. 2.9a", {("001", "fig.", "2.9")}),
        ("001, fig. 2.6c-d (other reading)", {("001", "fig.", "2.6")}),
        ("001, fig. 4.7-4.9 on GCM", {("001", "fig.", number) for number in ("4.7", "4.8", "4.9")}),
        ("001, 2.5, Alg. 3", {("001", "alg.", "3")}),
        ("002, fig. 11 and 12", {("002", "fig.", "11"), ("002", "fig.", "12")}),
        ("003, fig. 5-7", {("003", "fig.", number) for number in ("5", "6", "7")}),
        ("004, table 4", {("004", "table", "4")}),
        ("000, theorem 3.4", set()),
        ("fig. 4", set()),
    ],
)
def test_a_source_names_figures_tables_and_algorithms(source: str, names: set[tuple[str, str, str]]) -> None:
    assert items_of(source) == names


@given(st.sampled_from(ITEMS))
def test_an_item_is_named_by_its_own_name(entry: tuple[str, Item]) -> None:
    paper, item = entry
    assert items_of(f"{paper}, {item.name}") == {(paper, item.kind, item.number)}
