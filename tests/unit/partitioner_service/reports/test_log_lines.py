"""The line about progress counts what is read, whatever becomes of it."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from evenflow.settings import load_settings
from partitioner_service.reports.log_lines import LogLines
from partitioner_service.reports.rejections import RejectionCounts

SETTINGS = load_settings(query={"name": "q"}, input={"partitions": 1})


def status(**counts: Any) -> dict[str, Any]:
    result: dict[str, Any] = {
        "assignment": {}, "input_partitions": 1, "loads": [], "tuples": 0, "read": 0, "filtered": 0,
        "rejected": 0,
        "rejected_by_reason": {},
    }  # fmt: skip
    return result | counts


def said(caplog: pytest.LogCaptureFixture, *seen: dict[str, Any]) -> list[str]:
    """Lines that these statuses, ten seconds from each other, make."""
    now = [0.0]
    talk = LogLines(SETTINGS, clock=lambda: now[0], wall=lambda: now[0])
    with caplog.at_level(logging.INFO):
        for one in seen:
            now[0] += 10
            talk.tell(one, RejectionCounts(SETTINGS), {})
    return caplog.messages


def test_a_filter_that_keeps_nothing_is_told_of_too(caplog: pytest.LogCaptureFixture) -> None:
    """Else silence would look like death."""
    first, second = said(caplog, status(read=500, filtered=500), status(read=1_500, filtered=1_500))
    assert "read 500 (50/s), routed 0, filtered 500" in first
    assert "read 1,500 (100/s), routed 0, filtered 1,500" in second


def test_the_share_of_the_rejected_is_of_what_is_read(caplog: pytest.LogCaptureFixture) -> None:
    few = status(read=5_000, filtered=4_990, tuples=5, rejected=5, rejected_by_reason={"late": 5})
    (line,) = said(caplog, few)
    assert "rejected 5 (0.1 %: late 5)" in line


def test_where_records_are_taken_apart_tuples_are_more_than_records(caplog: pytest.LogCaptureFixture) -> None:
    many = status(read=1_500, tuples=100_000, rejected=500, rejected_by_reason={"unreadable": 500})
    (line,) = said(caplog, many)
    assert "read 1,500 (150/s), routed 100,000, rejected 500 (33.3 %" in line
