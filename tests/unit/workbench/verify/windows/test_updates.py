"""Verify of `late = "update"`: the row of the highest revision counts, and only once no update can be on
its way.
"""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.settings import Settings
from tests.unit.workbench.verify.pipeline_model import Topics, end, record, run

LATENESS = 30


def made(*, ended: bool = True, aggregates: dict[str, str] | None = None) -> Topics:
    """Windows of which every third row came out with one tuple less, before the row that is right."""
    query = {
        "window": 40,
        "slide": 10,
        "allowed_lateness": LATENESS,
        "late": "update",
        "aggregates": aggregates or {"n": "count", "s": "sum(v)"},
    }
    settings = Settings(query=query, input={"partitions": 1})
    records = [record("abcd"[time // 10 % 4], time, v=1.5) for time in range(5, 400, 3)]
    topics = run(settings, [[*records, *([end(len(records))] if ended else [])]])
    rows = []
    for number, row in enumerate(topics.rows):
        if number % 3 == 0:
            rows.append(row | {"revision": 0, counted(row): row[counted(row)] - 1})
        rows.append(row | {"revision": 2 if number % 3 == 0 else 0})
    topics.rows = rows
    return topics


def counted(row: dict[str, Any]) -> str:
    return "n" if "n" in row else "_tuples"


@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.parametrize("aggregates", [None, {"s": "max(v)"}])
def test_rows_that_were_replaced_are_no_differences(typed: bool, aggregates: dict[str, str] | None) -> None:
    topics = made(aggregates=aggregates)
    report = topics.check(typed=typed)
    assert report.first == ()
    assert report.rows > 100
    topics.rows += [dict(row) for row in topics.rows[-7:]]
    assert topics.check(typed=typed).first == (), "a micro-batch that was repeated"


def test_an_update_that_did_not_come_out_is_seen() -> None:
    topics = made()
    place = next(at for at, row in enumerate(topics.rows) if row["revision"] == 2)
    del topics.rows[place]
    assert topics.check().kinds == {"value": 1}


def test_a_row_that_came_out_again_and_is_wrong_is_seen() -> None:
    topics = made()
    topics.rows.append(topics.rows[9] | {"revision": 3, "n": 0})
    assert "value" in topics.check().kinds


def test_equal_revisions_with_other_values_are_seen() -> None:
    topics = made()
    topics.rows.append(topics.rows[5] | {"s": 0.25})
    assert "duplicate" in topics.check().kinds


def test_rows_of_windows_that_are_open_are_no_differences_while_the_input_runs() -> None:
    topics = made(ended=False)
    mark = topics.committed[0].mark
    early = {"window_start": mark + 1 - 40, "window_end": mark + 1, "key": "a", "n": 1, "s": 1.5}
    late = (mark // 10 + 2) * 10
    topics.rows.append(early | {"window_start": late - 40, "window_end": late, "revision": 0})
    report = topics.check()
    assert report.first == ()
    assert report.rows > 100


def test_while_an_update_may_be_on_its_way_verify_waits_for_it() -> None:
    topics = made(ended=False)
    due = topics.committed[0].mark // 10 * 10
    late = next(at for at, row in enumerate(topics.rows) if row["window_end"] == due)
    topics.rows[late]["n"] -= 1
    waiting = topics.check(seconds=3, due_within=60)
    assert (waiting.first, waiting.pending_windows) == ((), LATENESS // 10)
    assert not waiting.settled
    assert "value" in topics.check(seconds=60, due_within=60).kinds
