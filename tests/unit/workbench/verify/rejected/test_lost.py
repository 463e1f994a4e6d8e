"""An input, or rejected records, of which retention has deleted the beginning: what is compared all the
same.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

from evenflow.settings import Settings
from tests.examples import examples
from tests.unit.workbench.verify.pipeline_model import Record, Topics, end, record, run
from workbench.verify import LogBegins
from workbench.verify.inputs import gone_below


def _settings(**query: Any) -> Settings:
    base = {
        "window": 40,
        "slide": 10,
        "out_of_orderness": 20,
        "aggregates": {"n": "count", "total": "sum(v)"},
    }
    return Settings(
        query={**base, "types": {"v": "int64"}, **query},
        input={"partitions": 2},
        partitioner={"block_tuples": 10},
    )


def _stream(count: int = 100, ended: bool = True) -> Topics:
    """Two partitions, a tuple every 10 ms in each; every tenth is late, every thirteenth unreadable."""

    def one(i: int, shift: int) -> Record:
        if i % 13 == 12:
            return Record(b"{", None)
        behind = 70 if i % 10 == 9 else 0
        return record("abc"[i % 3], i * 10 + shift - behind, v=i)

    partitions = [[one(i, shift) for i in range(count)] for shift in (0, 5)]
    tail = [end(count)] if ended else []
    return run(_settings(), [[*records, *tail] for records in partitions])


@pytest.mark.parametrize("ended", [True, False])
def test_a_trimmed_input_is_no_difference_and_later_windows_are_compared(ended: bool) -> None:
    topics = _stream(ended=ended)
    kept = topics.trim(0, 41)
    report = topics.check(log_starts=kept)
    assert report.exact, report.text()
    (lost,) = report.lost
    assert (lost.partition, lost.before, lost.tuples) == (0, 41, 41)
    assert 390 <= (lost.until or 0) <= 440
    assert report.compared_from == (lost.until or 0) + 1
    later = {row["window_end"] for row in topics.rows if row["window_start"] >= report.compared_from}
    assert report.windows == len(later) > 40
    assert report.skipped_windows == len({row["window_end"] for row in topics.rows}) - len(later)
    assert "are gone or no longer judged: 41 tuples" in report.text()
    assert f"{report.skipped_windows} windows that begin before" in report.text()
    assert json.loads(report.json())["lost"][0]["tuples"] == 41


def test_a_trimmed_input_is_full_of_differences_where_it_is_not_known_to_be_trimmed() -> None:
    topics = _stream()
    topics.trim(0, 41)
    assert {"counters", "value"} <= set(topics.check().kinds)


def test_a_row_that_is_wrong_or_missing_after_what_was_lost_is_found() -> None:
    topics = _stream()
    kept = topics.trim(0, 41)
    after = [i for i, row in enumerate(topics.rows) if row["window_start"] >= 500]
    topics.rows[after[0]] = {**topics.rows[after[0]], "n": 77}
    del topics.rows[after[5]]
    assert topics.check(log_starts=kept).kinds == {"value": 1, "missing": 1}


def test_a_wrong_row_of_a_window_that_holds_lost_tuples_cannot_be_seen_and_is_not_counted() -> None:
    topics = _stream()
    kept = topics.trim(0, 41)
    before = next(i for i, row in enumerate(topics.rows) if row["window_start"] < 300)
    topics.rows[before] = {**topics.rows[before], "n": 77}
    assert topics.check(log_starts=kept).exact


@pytest.mark.parametrize("change", [{"read": 99}, {"routed": 7}, {"rejected": 2}, {"max_time": 5000}])
def test_counters_and_progress_of_a_trimmed_partition_are_still_bounded(change: dict[str, Any]) -> None:
    topics = _stream()
    kept = topics.trim(0, 41)
    topics.recommit(0, **change)
    assert {"counters", "state"} & set(topics.check(log_starts=kept).kinds)


def test_a_late_tuple_that_was_let_through_after_the_trimmed_part_is_found() -> None:
    topics = _stream()
    kept = topics.trim(0, 41)
    late = next(
        r for r in topics.rejected if r["reason"] == "late" and r["offset"] > 60 and r["partition"] == 0
    )
    topics.rejected.remove(late)
    report = topics.check(log_starts=kept)
    assert any(d.kind == "not-rejected" and d.offset == late["offset"] for d in report.first)


def test_a_log_that_began_above_zero_before_the_query_began_has_lost_nothing() -> None:
    topics = _stream()
    for part in (topics.inputs, topics.rejected):
        for row in part:
            row["offset"] += 1000
    topics.committed = [replace(state, offset=state.offset + 1000) for state in topics.committed]
    report = topics.check(log_starts=LogBegins(inputs={0: 1000, 1: 1000}))
    assert (report.exact, report.lost, report.compared_from) == (True, (), None)
    assert report.rows == len(topics.rows)


def test_a_partition_whose_end_marker_was_deleted_may_have_ended() -> None:
    topics = run(_settings(), [[record("a", 5), end(1), record("a", 6)], [record("b", 5), end(1)]])
    kept = topics.trim(0, 2)
    report = topics.check(log_starts=kept)
    assert report.kinds == {"blind": 1}
    assert report.differences == 0


def test_when_nothing_is_left_verify_is_blind_and_says_so() -> None:
    topics = _stream()
    kept = LogBegins(inputs={**topics.trim(0, 101).inputs, **topics.trim(1, 101).inputs})
    report = topics.check(log_starts=kept)
    assert report.kinds == {"blind": 1}
    assert report.text().splitlines()[-1] == "0 differences, but nothing of what is due could be compared"
    assert not report.exact


def test_lost_rejections_take_the_records_they_may_have_stood_for_with_them() -> None:
    topics = _stream()
    gone = [r for r in topics.rejected if r["partition"] == 0][:4]
    topics.rejected = [r for r in topics.rejected if r not in gone]
    assert not topics.check().exact
    report = topics.check(log_starts=LogBegins(rejected={0: 4}))
    assert report.differences == 0, report.text()
    assert report.lost[0].before > gone[-1]["offset"]
    assert report.windows > 30


_tuples = st.builds(record, st.sampled_from("abc"), st.integers(0, 300), v=st.none() | st.integers(-9, 9))
_records = st.one_of(_tuples, _tuples, _tuples, st.just(Record(b"{", None)))


@given(
    partitions=st.lists(st.lists(_records, max_size=15), min_size=2, max_size=2),
    below=st.lists(st.integers(0, 16), min_size=2, max_size=2),
    ended=st.booleans(),
    jump=st.sampled_from([None, 60]),
    idle=st.booleans(),
)
@examples(60, suppress_health_check=[HealthCheck.too_slow])
def test_wherever_the_input_is_trimmed_nothing_is_called_different(
    partitions: list[list[Record]], below: list[int], ended: bool, jump: int | None, idle: bool
) -> None:
    if ended:
        partitions = [[*records, end(len(records))] for records in partitions]
    settings = _settings(max_jump=jump, jump_confirmations=2)
    other = run(settings, partitions).committed[1]
    mark = other.max_time - 20 if idle and other.max_time is not None else None
    topics = run(settings, partitions, idle_mark=mark)
    kept = LogBegins(inputs={p: topics.trim(p, first).inputs[p] for p, first in enumerate(below)})
    report = topics.check(log_starts=kept)
    assert report.differences == 0, report.text()
    if report.compared_from is not None:
        later = [row for row in topics.rows if row["window_start"] >= report.compared_from]
        assert report.rows == len(later)


@given(partitions=st.lists(st.lists(_records, max_size=15), min_size=2, max_size=2), gone=st.integers(1, 9))
@examples(30, suppress_health_check=[HealthCheck.too_slow])
def test_however_many_rejections_are_lost_nothing_is_called_different(
    partitions: list[list[Record]], gone: int
) -> None:
    topics = run(_settings(), [[*records, end(len(records))] for records in partitions])
    mine = [r for r in topics.rejected if r["partition"] == 0]
    assume(mine)
    topics.rejected = [r for r in topics.rejected if r not in mine[:gone]]
    assert topics.check(log_starts=LogBegins(rejected={0: gone})).differences == 0


def test_where_a_query_began_is_no_loss_and_hides_no_difference() -> None:
    topics = run(_settings(), [[record("a", 5), record("b", 27), end(2)], [end(0)]])
    topics.inputs = [row | {"offset": row["offset"] + 100 * (row["partition"] == 0)} for row in topics.inputs]
    topics.recommit(0, begin=100, offset=topics.committed[0].offset + 100)
    for left in ({0: 0, 1: 0}, {0: 100, 1: 0}):
        kept = LogBegins(inputs=gone_below(left, topics.committed))
        assert topics.check(log_starts=kept).exact
    topics.recommit(0, read=3, routed=3)
    report = topics.check(log_starts=kept)
    assert report.kinds == {"counters": 2}
    assert report.lost == ()
