"""The page at `/` says the main figures from the first moment on, and takes nothing from a settings file
as HTML.
"""

from __future__ import annotations

from typing import Any

from evenflow.settings import load_settings
from partitioner_service.web.pages import front_page

RUNNING: dict[str, Any] = {
    "state": "running",
    "assignment": {"0": {"lag": 5}, "1": {"lag": None}},
    "tuples": 1_000,
    "tuples_per_second": 50.0,
    "rejected_by_reason": {"late": 3},
}


def test_the_front_page_has_the_main_figures_and_links() -> None:
    page = front_page(load_settings(query={"name": "q"}, input={"partitions": 4}), RUNNING, {"healthy": True})
    for shown in (
        "query q",
        "2 of 4",
        "1,000 (50/s)",
        "late 3",
        "5 records",
        "yes",
        '"/status/"',
        '"/alive/"',
    ):
        assert shown in page
    assert "http" not in page, "no external resources"


def test_a_service_that_begins_has_a_front_page_too() -> None:
    settings = load_settings(input={"topic": "a<b>", "partitions": 4})
    page = front_page(settings, {"state": "starting"}, {"healthy": False, "reason": "<script>"})
    assert "starting" in page
    assert "no: &lt;script&gt;" in page
    assert "a&lt;b&gt;" in page
