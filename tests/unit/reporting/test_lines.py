"""Log lines as JSON, and numbers as words."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from evenflow.reporting import JsonLines, lines, on_every_line, with_fields
from evenflow.reporting.words import by_reason, clock, moment, numbers, partitions, share, span


def record(**extra: object) -> logging.LogRecord:
    made = logging.LogRecord("evenflow.x", logging.INFO, "x.py", 1, "read %d\nlines", (3,), None)
    made.__dict__.update(extra)
    return made


def test_a_record_is_one_line_of_json_with_its_fields() -> None:
    line = JsonLines().format(record(**with_fields({"read": 3, "level": "of a well"})))
    assert "\n" not in line
    shown = json.loads(line)
    assert (shown["level"], shown["logger"], shown["message"]) == ("INFO", "evenflow.x", "read 3\nlines")
    assert shown["read"] == 3
    assert shown["ts"].endswith("+00:00")


def test_a_traceback_is_a_field() -> None:
    try:
        raise ValueError("no")
    except ValueError:
        shown = json.loads(JsonLines().format(record(exc_info=sys.exc_info())))
    assert shown["error"].endswith("ValueError: no")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (moment(1_700_000_000_000), "2023-11-14 22:13:20 UTC"),
        (moment(1_700_000_000_250), "2023-11-14 22:13:20.250 UTC"),
        (moment(-1), "1969-12-31 23:59:59.999 UTC"),
        (moment(2**62), "the year 146,140,482"),
        (clock(1_700_000_000_250), "2023-11-14 22:13:20.250"),
        (clock(1_700_000_000_250, minutes=True), "2023-11-14 22:13"),
        (span(850), "850 ms"),
        (span(2_500), "2.5 s"),
        (span(-7_200_000), "-2 h"),
        (span(3_600_000 * 24 * 400), "400 d"),
        (share(1, 8), "12.5 %"),
        (share(1, 1_000_000), "under 0.1 %"),
        (share(0, 0), "0 %"),
        (share(9_999, 10_000), "over 99.9 %"),
        (share(7, 7), "100 %"),
        (numbers([7, 0, 1, 2]), "0-2, 7"),
        (partitions([3]), "partition 3"),
        (partitions([4, 3]), "partitions 3-4"),
        (by_reason({"late": 3, "unreadable": 1_000}), "unreadable 1,000, late 3"),
    ],
)
def test_numbers_read_well(said: str, words: str) -> None:
    assert said == words


def test_every_line_of_a_process_says_whose_it_is_and_its_own_fields_win(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lines, "_PROCESS", {})
    on_every_line(query="q", part="partitioner 3", epoch=0)
    on_every_line(epoch=7, level="no field of ours")
    shown = json.loads(JsonLines().format(record()))
    assert (shown["query"], shown["part"], shown["epoch"]) == ("q", "partitioner 3", 7)
    assert shown["level"] == "INFO"
    assert json.loads(JsonLines().format(record(**with_fields({"epoch": 9}))))["epoch"] == 9
