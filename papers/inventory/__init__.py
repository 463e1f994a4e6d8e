"""Every figure, table and algorithm of the five papers, with where it stands on the page, or why it does not
exist here.

The lists are made from the captions in the papers. A module for each paper has its `ITEMS`. `PAPERS` has them
all, and `text` makes the last chapter of the page.
"""

from __future__ import annotations

import re

from papers.inventory import paper_000, paper_001, paper_002, paper_003, paper_004
from papers.inventory.item import NOT_MEASURED, Item
from papers.inventory.sources import items_of
from papers.markdown import table
from papers.sections import SECTIONS

PAPERS: dict[str, tuple[Item, ...]] = {
    module.__name__.rpartition("_")[2]: module.ITEMS
    for module in (paper_000, paper_001, paper_002, paper_003, paper_004)
}
"""The items by paper."""
TITLE = "Every figure, table and algorithm of the papers"
_NOT_MEASURED_TITLE = "Not measured here"


def text() -> list[str]:
    """The chapter: one line for each item."""
    rows = [
        [f"{paper}, {item.name}", item.shows, _where(paper, item), item.why or "-"]
        for paper, items in PAPERS.items()
        for item in items
    ]
    return [
        f"## {TITLE}",
        "",
        (
            "One line for each figure, table and algorithm that a paper numbers, in its order. *Where* names"
            " the sections of this page, with the number of claims there that name the item, and the list of"
            " what is not measured. A line without a place says why the item does not exist here."
        ),
        "",
        *table(["item", "what it shows", "where", "what is not here, and why"], rows, left=4),
    ]


def title(place: str) -> str:
    """The heading of a place on the page. KeyError for a place that does not exist."""
    return _NOT_MEASURED_TITLE if place == NOT_MEASURED else str(SECTIONS[place].TITLE)


def anchor(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def claims(paper: str, item: Item, place: str) -> int:
    """How many claims of a section name the item in their source."""
    if place == NOT_MEASURED:
        return 0
    return sum((paper, item.kind, item.number) in items_of(claim.source) for claim in SECTIONS[place].CLAIMS)


def _where(paper: str, item: Item) -> str:
    return ", ".join(_link(paper, item, place) for place in item.places) or "-"


def _link(paper: str, item: Item, place: str) -> str:
    count = claims(paper, item, place)
    counted = f" ({count} {'claim' if count == 1 else 'claims'})" if count else ""
    return f"[{place}](#{anchor(title(place))}){counted}"
