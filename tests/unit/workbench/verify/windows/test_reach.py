"""Results that lag behind, that died, and that retention has deleted: what verify says of rows that are
not there.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.keys import bucket_of, hash_keys
from evenflow.settings import Settings
from tests.examples import examples
from tests.unit.workbench.verify.pipeline_model import Topics, end, record, run

SETTINGS = Settings(
    query={"window": 40, "slide": 10, "aggregates": {"n": "count"}},
    input={"partitions": 1},
    spark={"buckets": 2},
)


def live(until: int = 400) -> Topics:
    """A tuple every 10 ms, the input still running; windows that end up to `until` - 10 are due."""
    return run(SETTINGS, [[record("abcd"[t // 10 % 4], t) for t in range(5, until, 10)]])


def test_a_dead_reducer_is_a_finding_once_the_bound_has_passed() -> None:
    topics = live()
    topics.rows = [row for row in topics.rows if row["window_end"] <= 100]
    fresh = topics.check(seconds=59, due_within=60)
    assert (fresh.exact, fresh.differences, fresh.pending_windows) == (True, 0, 29)
    dead = topics.check(seconds=60, due_within=60)
    assert (dead.exact, dead.differences, dead.kinds) == (False, 0, {"behind": 1})
    assert (dead.reach.written, dead.reach.due, dead.reach.behind) == (100, 390, 290)
    assert "29 windows, 290ms of event time behind" in dead.text()
    assert dead.text().splitlines()[-1] == "0 differences, but results do not reach what is due"
    figures = json.loads(dead.json())["reach"]
    assert figures == {
        "written": 100, "due": 390, "windows": 29, "behind": 290, "seconds": 60, "bound": 60,
    }  # fmt: skip


def test_a_reducer_that_never_wrote_is_a_finding_as_well() -> None:
    topics = live()
    topics.rows = []
    report = topics.check(seconds=1000)
    assert report.kinds == {"behind": 1}
    assert (report.reach.written, report.reach.windows, report.reach.behind) == (None, 39, 390)
    assert "results reach window end none" in report.text()


def test_results_that_reach_what_is_due_are_in_time_however_long_ago_it_was_due() -> None:
    report = live().check(seconds=10_000)
    assert report.exact
    assert report.reach.written == report.reach.due == 390
    assert "behind" not in report.text()


def test_nothing_is_behind_where_nothing_is_due() -> None:
    report = run(SETTINGS, [[record("a", 5)]]).check(seconds=1000)
    assert report.exact
    assert (report.reach.written, report.reach.due) == (None, None)


def test_an_ended_input_has_no_grace() -> None:
    topics = run(SETTINGS, [[record("a", 5), record("a", 95), end(2)]])
    topics.rows = [row for row in topics.rows if row["window_end"] <= 40]
    report = topics.check(seconds=0)
    assert set(report.kinds) == {"missing"}
    assert (report.reach.written, report.reach.due) == (40, 130)


def test_rows_of_windows_that_became_due_meanwhile_are_left_out_and_later_ones_are_too_early() -> None:
    topics = live(400)
    newer = live(500)
    topics.rows = newer.rows
    assert topics.check(now=newer.committed[0].mark).exact
    assert set(topics.check(now=newer.committed[0].mark - 10).kinds) == {"not-due"}


def test_a_row_far_in_the_future_does_not_make_a_dead_reducer_look_alive() -> None:
    topics = live()
    topics.rows = [row for row in topics.rows if row["window_end"] <= 100]
    topics.rows.append({**topics.rows[0], "window_start": 10**12, "window_end": 10**12 + 40})
    assert topics.check(seconds=100).kinds == {"not-due": 1, "behind": 1}


# ---- results that retention has deleted


def kept_rows(topics: Topics, partitions: int, below: dict[int, int]) -> None:
    """As the sink writes: each bucket in order of windows, a key in one partition; then `below` is
    deleted.
    """
    keys = [row["key"].encode() for row in topics.rows]
    buckets = bucket_of(hash_keys(pa.array(keys, pa.binary())), SETTINGS.bucket_count)
    ends = [row["window_end"] for row in topics.rows]
    order = sorted(range(len(keys)), key=lambda i: (ends[i] // 100, buckets[i], ends[i]))
    written = dict.fromkeys(range(partitions), 0)
    rows: list[Any] = []
    for i in order:
        partition = sum(keys[i]) % partitions
        if written[partition] >= below.get(partition, 0):
            topics.places[len(rows)] = (partition, written[partition])
            rows.append(topics.rows[i])
        written[partition] += 1
    topics.rows = rows


def test_rows_that_retention_has_deleted_are_counted_and_are_no_difference() -> None:
    topics = live()
    all_rows = len(topics.rows)
    kept_rows(topics, 1, {0: 40})
    assert set(topics.check().kinds) == {"missing"}
    report = topics.check(results_begin={0: 40})
    assert report.exact
    assert 40 <= report.doubtful_rows < 60
    assert report.rows == all_rows - report.doubtful_rows
    assert "rows are due and not there, but retention has deleted results" in report.text()


def test_a_row_that_is_missing_behind_what_was_deleted_is_found() -> None:
    topics = live()
    kept_rows(topics, 1, {0: 40})
    gone = next(i for i, row in enumerate(topics.rows) if row["window_end"] > 250)
    del topics.rows[gone]
    assert topics.check(results_begin={0: 40}).kinds == {"missing": 1}


def test_where_all_results_were_deleted_verify_is_blind_and_says_so() -> None:
    topics = live()
    topics.rows = []
    report = topics.check(results_begin={0: 900}, seconds=1000)
    assert (report.differences, report.rows, report.kinds) == (0, 0, {"blind": 1})
    assert report.text().splitlines()[-1] == "0 differences, but nothing of what is due could be compared"


def test_typed_results_that_were_trimmed_are_judged_by_bucket() -> None:
    topics = live()
    keys = pa.array([row["key"].encode() for row in topics.rows], pa.binary())
    buckets = np.asarray(bucket_of(hash_keys(keys), SETTINGS.bucket_count))
    of = {row["key"]: int(bucket) for row, bucket in zip(topics.rows, buckets, strict=True)}
    topics.rows = [row for row in topics.rows if row["window_end"] > (100 if of[row["key"]] else 200)]
    report = topics.check(typed=True, results_begin={0: 1, 1: 1})
    assert report.exact
    assert report.doubtful_rows > 0
    topics.rows = topics.rows[:-1]
    assert topics.check(typed=True, results_begin={0: 1, 1: 1}).kinds == {"missing": 1}


@given(
    times=st.lists(st.integers(0, 300), min_size=1, max_size=40),
    keys=st.lists(st.sampled_from("abcdefgh"), min_size=40, max_size=40),
    below=st.dictionaries(st.integers(0, 1), st.integers(0, 30), max_size=2),
    ended=st.booleans(),
)
@examples(40)
def test_however_results_are_trimmed_nothing_is_called_different(
    times: list[int], keys: list[str], below: dict[int, int], ended: bool
) -> None:
    records = [record(key, time) for key, time in zip(keys, sorted(times), strict=False)]
    topics = run(SETTINGS, [[*records, *([end(len(records))] if ended else [])]])
    kept_rows(topics, 2, below)
    report = topics.check(results_begin=below)
    assert report.differences == 0, report.text()
    assert (report.rows == 0 and report.doubtful_rows > 0) == ("blind" in report.kinds)


@pytest.mark.parametrize("at", [0, 3, -1])
def test_a_wrong_value_among_what_is_left_is_found(at: int) -> None:
    topics = live()
    kept_rows(topics, 1, {0: 40})
    topics.rows[at] = {**topics.rows[at], "n": 99}
    assert topics.check(results_begin={0: 40}).kinds == {"value": 1}
