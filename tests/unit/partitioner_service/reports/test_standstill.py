"""Each thing that stands still is named, with what to do, and nothing is named that only takes its time."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from evenflow.progress import PartitionState
from evenflow.settings import Settings, load_settings
from partitioner_service.reports.log_lines import LogLines
from partitioner_service.reports.rejections import RejectionCounts
from tests.unit.reporting.clock import Clock

BEGIN = 1_700_000_000_000


class Instance:
    """An instance that owns all four input partitions; `shown` is changed by the tests."""

    def __init__(self, **parts: Any) -> None:
        self.settings: Settings = load_settings(
            input={"partitions": 4},
            **{"query": {"name": "q", "window": "10s", "slide": "5s"}, "partitioner": {}} | parts,
        )
        self.clock = Clock()
        self.wall = Clock()
        self.wall.now = BEGIN / 1000 + 20
        self.rejected = RejectionCounts(self.settings)
        self.talk = LogLines(self.settings, clock=self.clock, wall=self.wall)
        self.shown: dict[str, dict[str, Any]] = {
            str(p): {
                "lag": 0, "at_end_s": None, "max_time": BEGIN, "watermark": BEGIN, "ended": False,
                "idle": False,
                "paused": False, "read": 10,
            }
            for p in range(4)
        }  # fmt: skip

    def tell(self, *, seconds: float = 0.0, read: int = 0) -> list[dict[str, Any]]:
        """`seconds` later, in steps of one; each partition that is not at its end reads so many records a
        step.
        """
        standing = self._step()
        for _ in range(int(seconds)):
            self.clock.now += 1
            self.wall.now += 1
            for shown in self.shown.values():
                if shown["at_end_s"] is None:
                    shown["read"] += read
                else:
                    shown["at_end_s"] += 1
            standing = self._step()
        return standing

    def _step(self) -> list[dict[str, Any]]:
        return self.talk.tell(self.status(), self.rejected, self.everyone()).still

    def everyone(self) -> dict[int, PartitionState]:
        return {
            int(p): PartitionState(
                fingerprint="f", topic_id="t", offset=s["read"], max_time=s["max_time"],
                first_time=s["max_time"],
                steady_from=s["max_time"], read=s["read"], routed=s["read"],
            )
            for p, s in self.shown.items()
        }  # fmt: skip

    def status(self) -> dict[str, Any]:
        return {
            "state": "running",
            "input_partitions": self.settings.input_partitions,
            "assignment": self.shown,
            "tuples": sum(shown["read"] for shown in self.shown.values()) - self.rejected.total,
            "read": sum(shown["read"] for shown in self.shown.values()),
            "filtered": 0,
            "rejected": self.rejected.total,
            "rejected_by_reason": dict(self.rejected.by_reason),
            "loads": [3, 1],
        }


@pytest.fixture(autouse=True)
def _heard(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "partitioner_service")


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_partition_without_a_tuple_is_named_after_ten_seconds_with_what_to_set(
    caplog: pytest.LogCaptureFixture,
) -> None:
    instance = Instance()
    instance.shown["3"] |= {"max_time": None, "watermark": None, "at_end_s": 0.0, "read": 0}
    assert instance.tell(seconds=9)[0]["what"] == "waits for a first tuple"
    assert warned(caplog) == []
    standing = instance.tell(seconds=60)
    assert len(warned(caplog)) == 1
    assert "input partition 3 had no tuple yet: no window closes before" in warned(caplog)[0]
    assert 'idle_timeout = "30s" (now: none)' in warned(caplog)[0]
    assert standing[0]["seconds"] >= 60
    instance.shown["3"] |= {"max_time": BEGIN, "at_end_s": None, "read": 1}
    assert instance.tell() == []
    assert caplog.messages[-1].endswith("waits for a first tuple any more")


def test_with_an_idle_timeout_that_is_waited_for_first(caplog: pytest.LogCaptureFixture) -> None:
    instance = Instance(partitioner={"idle_timeout": "30s"})
    instance.shown["3"] |= {"max_time": None, "watermark": None, "at_end_s": 0.0}
    instance.tell(seconds=35)
    assert warned(caplog) == []
    instance.shown["3"]["idle"] = True
    assert instance.tell(seconds=100) == []
    assert warned(caplog) == []


def test_an_input_without_any_record_is_no_matter_for_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    instance = Instance()
    for shown in instance.shown.values():
        shown |= {"max_time": None, "watermark": None, "at_end_s": 0.0, "read": 0}
    assert instance.tell(seconds=1_000) == []
    assert caplog.messages == []


def test_a_partition_that_falls_silent_is_named_while_the_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    instance = Instance()
    instance.shown["1"]["at_end_s"] = 0.0
    for p in "023":
        instance.shown[p]["max_time"] = BEGIN + 60_000
    standing = instance.tell(seconds=61, read=5)
    assert [some["what"] for some in standing] == ["waits for newer tuples"]
    assert standing[0]["seconds"] >= 60
    assert (
        "input partition 1 had nothing new for over a minute and stood at 2023-11-14 22:13:20 UTC"
        in warned(caplog)[0]
    )
    for p in "023":
        instance.shown[p]["at_end_s"] = 0.0
    assert instance.tell(seconds=61) == [], "nothing comes any more: that is the end of the data, not a hang"
    instance.shown["2"] |= {"paused": True, "lag": 9, "at_end_s": None}
    assert [some["what"] for some in instance.tell(seconds=61)] == ["waits for newer tuples"], (
        "more would come"
    )


def test_nothing_read_while_records_wait_is_named_after_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    instance = Instance()
    for shown in instance.shown.values():
        shown["lag"] = 500
    instance.tell(seconds=30, read=1)
    assert warned(caplog) == []
    standing = instance.tell(seconds=11)
    assert warned(caplog) == ["nothing is read, although 2,000 records wait in partitions 0-3"]
    assert standing[0]["what"] == "nothing read"
    instance.tell(seconds=2, read=1)
    assert caplog.messages[-1] == "records are read again"


def test_marks_of_transactions_behind_the_last_record_are_no_lag(caplog: pytest.LogCaptureFixture) -> None:
    instance = Instance()
    for shown in instance.shown.values():
        shown |= {"lag": 1, "at_end_s": 0.0}
    assert instance.tell(seconds=100) == []
    assert warned(caplog) == []


def test_a_watermark_ahead_of_the_clock_is_named_at_once(caplog: pytest.LogCaptureFixture) -> None:
    off = {"name": "q", "window": "10s", "slide": "5s", "max_ahead_of_clock": "off"}
    for query, advice in (
        (off, "max_ahead_of_clock is off"),
        (off | {"max_ahead_of_clock": "1h"}, "let through"),
    ):
        instance = Instance(query=query)
        instance.shown["2"]["max_time"] = BEGIN * 1_000
        instance.tell()
        assert "input partition 2 reached" in warned(caplog)[-1]
        assert "query.time_unit" in warned(caplog)[-1]
        assert advice in warned(caplog)[-1]


def test_idle_partitions_that_do_not_follow_a_leap_are_named_with_what_to_do(
    caplog: pytest.LogCaptureFixture,
) -> None:
    instance = Instance(partitioner={"idle_timeout": "30s"})
    instance.shown["2"]["max_time"] = BEGIN + 3_600_000
    for p in "013":
        instance.shown[p]["at_end_s"] = 0.0
    standing = instance.tell(seconds=29, read=1)
    assert [some["what"] for some in standing] == []
    standing = instance.tell(seconds=15, read=1)
    assert [some["what"] for some in standing] == ["leapt away"]
    assert "input partition 2 leapt to 2023-11-14 23:13:20 UTC" in warned(caplog)[-1]
    assert "set partitioner.max_skew to more than the gap" in warned(caplog)[-1]
    instance.shown["1"]["max_time"] = BEGIN + 3_600_500
    instance.tell()
    assert caplog.messages[-1] == "idle input partitions follow the others again"


def test_a_partition_that_is_paused_for_a_minute_is_named_with_the_one_it_waits_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    instance = Instance()
    instance.shown["2"] |= {"paused": True, "max_time": BEGIN + 10**6, "lag": 50}
    instance.tell(seconds=59, read=1)
    assert [text for text in warned(caplog) if "paused" in text] == []
    instance.tell(seconds=2, read=1)
    assert "input partition 2 paused for over a minute to wait for partition 0" in warned(caplog)[-1]


def test_one_of_several_instances_says_that_it_is_not_alone(caplog: pytest.LogCaptureFixture) -> None:
    instance = Instance()
    del instance.shown["3"]
    instance.tell(seconds=10)
    assert [text for text in warned(caplog) if "owns 3 of 4 input partitions" in text] == warned(caplog)
    assert len(warned(caplog)) == 1
    several = Instance(partitioner={"instances": 2})
    del several.shown["3"]
    several.tell(seconds=10)
    assert len(warned(caplog)) == 1


def test_a_line_every_ten_seconds_says_what_was_read_and_where_the_input_stands(
    caplog: pytest.LogCaptureFixture,
) -> None:
    instance = Instance()
    instance.tell(seconds=10, read=25)
    assert caplog.messages == [
        "read 1,040 (104/s), routed 1,040, lag 0, watermark 2023-11-14 22:13:20 UTC (30 s behind the clock), "
        "largest load 50.0 % above the mean"
    ]
    fields = caplog.records[0].evenflow_fields
    assert (fields["read"], fields["lag"], fields["watermark"]) == (1_040, 0, BEGIN)
    for shown in instance.shown.values():
        shown["at_end_s"] = 0.0
    instance.tell(seconds=600)
    assert len(caplog.messages) == 1, "nothing happened, nothing is said"
