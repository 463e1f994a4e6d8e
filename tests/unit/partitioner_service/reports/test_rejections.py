"""The first rejection of each reason is said at once, and so is a share that nobody can mean."""

from __future__ import annotations

import logging

import numpy as np
import pyarrow as pa
import pytest

from evenflow.reporting import Concerns
from evenflow.settings import load_settings
from partitioner_service.block import Rejections
from partitioner_service.reports.rejections import RejectionCounts
from tests.unit.reporting.clock import Clock

SETTINGS = load_settings(
    query={"name": "q", "window": "10s", "slide": "5s", "out_of_orderness": "2s", "allowed_lateness": "1s"}
)
LOG = logging.getLogger("test.rejected")


def unreadable(count: int) -> list[Rejections]:
    details = pa.array([b"lacks column usr"] * count, pa.binary())
    return [Rejections(3, "unreadable", np.arange(count), details)]


def test_the_first_rejection_names_topic_partition_and_an_example(caplog: pytest.LogCaptureFixture) -> None:
    clock, rejected = Clock(), RejectionCounts(SETTINGS)
    said = Concerns(LOG, clock=clock)
    said.now(rejected.concerns(500))
    for _ in range(100):
        rejected.note(unreadable(1))
        said.now(rejected.concerns(10**6))
        clock.now += 1
    assert caplog.messages == [
        "1 of 1,000,000 records rejected as unreadable, unchanged to q.rejected; for example of partition 3: "
        "lacks column usr"
    ]
    assert rejected.by_reason == {"unreadable": 100}


def test_what_a_record_holds_stays_out_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    rejected = RejectionCounts(SETTINGS)
    details = pa.array([b'column usr holds text where a number is needed ("secret")'], pa.binary())
    words = "column usr holds text where a number is needed (...)"
    rejected.note([Rejections(3, "unreadable", np.arange(1), details, words=words)])
    Concerns(LOG, clock=Clock()).now(rejected.concerns(10**6))
    assert words in caplog.text
    assert "secret" not in caplog.text


def test_a_share_above_one_percent_is_said_and_ten_times_that_again(caplog: pytest.LogCaptureFixture) -> None:
    rejected = RejectionCounts(SETTINGS)
    said = Concerns(LOG, clock=Clock())
    rejected.note(unreadable(9))
    said.now(rejected.concerns(1_000))
    assert len(caplog.messages) == 1
    rejected.note(unreadable(41))
    said.now(rejected.concerns(2_000))
    assert "2.5 % of the records are rejected (unreadable 50)" in caplog.messages[1]
    rejected.note(unreadable(450))
    said.now(rejected.concerns(2_500))
    assert "20 % of the records are rejected" in caplog.messages[2]
    said.now(rejected.concerns(2_500))
    assert len(caplog.messages) == 3


def test_what_a_filter_drops_is_read_and_not_rejected() -> None:
    """5 of 5,000 records were late, and a filter kept as many: a tenth of a percent is rejected, not a
    half.
    """
    rejected = RejectionCounts(SETTINGS)
    rejected.note(unreadable(5))
    assert len(rejected.concerns(5_000)) == 1


def test_late_tuples_are_said_with_the_setting_that_would_have_kept_them() -> None:
    rejected = RejectionCounts(SETTINGS)
    largest, time = 100_000, 81_000  # its pane ended at 85,000; the mark is largest - 2,000 - 1,000
    details = pa.array([b"the pane ended"] * 2, pa.binary())
    marks, times = np.array([largest - 3_000] * 2), np.array([time, time + 1_000])
    rejected.note([Rejections(0, "late", np.arange(2), details, marks, times)])
    (late, _) = rejected.concerns(10)
    assert "The latest came 19 s of event time behind its partition" in late.text
    assert 'query.out_of_orderness = "19s" would have kept all' in late.text
    assert rejected.concerns(10) == [], "none came since"
