from __future__ import annotations

from pathlib import Path

from evenflow.aggregates.page import page


def test_the_page_of_aggregates_is_current() -> None:
    assert (Path(__file__).parents[3] / "docs" / "aggregates.md").read_text() == page(), "run `make docs`"
