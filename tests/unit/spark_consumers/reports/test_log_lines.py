"""What the Spark application says, from what Spark and its workers tell of micro-batches."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from evenflow.settings import load_settings
from evenflow.telemetry import BatchRecord
from evenflow.twostep import BucketPosition, Tally
from evenflow.windows import END_MARK, NO_MARK
from spark_consumers.reports.log_lines import LogLines
from tests.unit.reporting.clock import Clock

BEGIN = 1_700_000_000_000
SETTINGS = load_settings(
    query={"name": "q", "window": "10s", "slide": "5s", "out_of_orderness": "2s"}, input={"partitions": 2}
)


class Application:
    """Micro-batches of a fused query, and the clock."""

    def __init__(self, unread: int | None = 0) -> None:
        self.clock = Clock()
        self.unread = unread
        self.asked = 0
        self.tally = Tally()
        self.unanswered = 0.0
        self.talk = LogLines(SETTINGS, self._ask, unanswered=lambda: self.unanswered, clock=self.clock)

    def _ask(self) -> int | None:
        self.asked += 1
        return self.unread

    def batch(
        self, *marks: int, load: float = 0.5, rows: int = 0, windows: int = 3, backlog: int = 7
    ) -> None:
        """Two frames, 100 tuples; a window closes if there are rows."""
        stand = BucketPosition(
            windows=windows, panes=windows, next_end=BEGIN + 10_000 if windows else None, marks=marks
        )
        closed = {0: 1} if rows else {}
        ends = {0: BEGIN + 5_000} if rows else {}
        self.tally += Tally(tuples=100, rows=rows, closed=closed, emitted=ends, bucket_stands={0: stand})
        record = BatchRecord(
            query="q",
            fingerprint=SETTINGS.fingerprint,
            time=0,
            stage="fused",
            batch=1,
            rows=2,
            finished=1,
            load=load,
            duration_ms=int(1_000 * load),
            batch_interval_ms=1_000,
            backlog=backlog,
        )
        self.talk.progress(record, self.tally)

    def wait(self, seconds: int) -> None:
        for _ in range(seconds):
            self.clock.now += 1
            self.talk.look()


@pytest.fixture(autouse=True)
def _heard(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "evenflow.spark")


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_line_every_ten_seconds_says_what_came_what_went_and_what_is_next(
    caplog: pytest.LogCaptureFixture,
) -> None:
    application = Application()
    application.batch(BEGIN + 6_000, BEGIN + 9_000, rows=40)
    application.wait(10)
    assert caplog.messages == [
        "fused read 2 frames, 100 tuples (10/s), 40 rows out, 1 windows closed (to 2023-11-14 22:13:25 UTC),"
        " 3 open, the next closes at 2023-11-14 22:13:30 UTC (mark 2023-11-14 22:13:26 UTC), micro-batch 500"
        " ms of 1 s, backlog 7"
    ]
    fields: Any = caplog.records[0].__dict__["evenflow_fields"]
    assert (fields["tuples"], fields["windows_closed"], fields["least_mark"]) == (100, 1, BEGIN + 6_000)
    application.wait(40)
    assert len(caplog.messages) == 1, "nothing happened, nothing is said"


def test_windows_that_no_mark_has_closed_yet_send_the_reader_to_who_knows_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    application = Application()
    for _ in range(7):
        application.batch(BEGIN + 60_000, NO_MARK)
        application.wait(10)
    (said,) = warned(caplog)
    assert said.startswith(
        "3 windows are open; the next one, [2023-11-14 22:13:20 UTC, 2023-11-14 22:13:30 UTC), closes when"
        " every input partition has passed its end by 2 s; no mark has come yet that closes it: the"
        " partitioner's log, "
    )
    application.batch(BEGIN + 60_000, BEGIN + 6_000)
    application.wait(1)
    assert caplog.messages[-1] == "windows close again"


def test_windows_that_need_newer_data_are_named_a_minute_after_the_last(
    caplog: pytest.LogCaptureFixture,
) -> None:
    application = Application()
    application.batch(BEGIN + 5_000, BEGIN + 6_000)
    application.wait(59)
    assert warned(caplog) == []
    application.wait(2)
    said = warned(caplog)[0]
    assert "partitions 0-1 have not: partition 0 stood at 2023-11-14 22:13:27 UTC when the marks were" in said
    application.wait(200)
    assert len(warned(caplog)) == 1
    application.batch(END_MARK, END_MARK, windows=0)
    application.wait(10)
    assert "the input has ended" in caplog.messages[-1]


def test_an_input_that_nobody_routes_is_named_after_a_minute_without_frames(
    caplog: pytest.LogCaptureFixture,
) -> None:
    application = Application(unread=12_000)
    application.wait(59)
    assert (application.asked, warned(caplog)) == (0, [])
    application.wait(20)
    assert application.asked == 1, "the broker is not asked at every look"
    assert (
        "although 12,000 records of q.input are not routed yet: does `evenflow partition` run"
        in warned(caplog)[0]
    )
    application.batch(BEGIN, BEGIN, windows=0)
    application.wait(1)
    assert "frames come again" in caplog.messages
    for unknown in (None, 0, 2):  # nobody says, nothing is left, or marks of transactions
        other = Application(unread=unknown)
        other.wait(100)
    assert len(warned(caplog)) == 1


def test_micro_batches_longer_than_their_interval_are_named_after_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    application = Application()
    for second in range(70):
        application.batch(BEGIN + second, BEGIN + second, load=1.5, windows=0)
        application.wait(1)
    assert warned(caplog)[0].startswith(
        "micro-batches of fused take longer than their interval for over a minute"
    )
    application.batch(BEGIN + 100, BEGIN + 100, load=0.5, windows=0)
    application.wait(1)
    assert caplog.messages[-1] == "micro-batches take no longer than their interval again"


def test_a_backlog_that_the_bound_of_a_micro_batch_keeps_is_said_after_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    application = Application()
    for _ in range(7):
        application.batch(BEGIN, BEGIN, backlog=20_000)
        application.wait(10)
    said = warned(caplog)[-1]
    assert "read at most 400 frames, and 20,000 wait: raise spark.max_frames_per_batch, or" in said
    application.batch(BEGIN, BEGIN, backlog=400)
    application.wait(1)
    assert "micro-batches read all that waits again" in caplog.messages


def test_a_broker_that_is_gone_is_named_and_no_advice_is_given_meanwhile(
    caplog: pytest.LogCaptureFixture,
) -> None:
    application = Application(unread=100)
    application.batch(BEGIN + 6_000, BEGIN + 9_000, backlog=20_000)
    application.wait(30)
    application.unanswered = 6.9
    application.wait(1)
    assert warned(caplog) == []
    application.unanswered = 7.0
    application.wait(200)
    (said,) = warned(caplog)
    assert (
        said == "Kafka at 127.0.0.1:9092 has not answered for 7 s: nothing is read or written until it does."
        " Nothing is lost"
    )
    assert application.asked == 0, "a question that nobody answers holds up the application"
    application.unanswered = 0.0
    application.wait(1)
    assert caplog.messages[-1] == "Kafka at 127.0.0.1:9092 answers again"


def test_advice_that_was_given_is_not_taken_back_because_the_broker_is_gone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    application = Application()
    for _ in range(70):
        application.batch(BEGIN + 6_000, BEGIN + 9_000, load=1.5)
        application.wait(1)
    application.unanswered = 7.0
    application.wait(1)
    assert not [line for line in caplog.messages if "no longer than their interval again" in line]
