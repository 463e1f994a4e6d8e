"""A finished micro-batch as a record: what Spark says of it, and what the workers told."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.settings import load_settings
from evenflow.telemetry import BatchRecord, PartWork, parse
from evenflow.twostep import BucketPosition, Tally, Work
from evenflow.windows import NO_MARK
from spark_consumers.cluster.executors import ExecutorState
from spark_consumers.reports.batch_limits import BatchLimits
from spark_consumers.reports.micro_batches import batch_record
from spark_consumers.reports.pulse import Run

SETTINGS = load_settings(query={"name": "q"}, input={"partitions": 2})
PROGRESS: dict[str, Any] = {
    "name": "q fused",
    "batchId": 7,
    "timestamp": "2026-01-01T00:00:00.000Z",
    "numInputRows": 3,
    "durationMs": {"triggerExecution": 500},
    "sources": [{"endOffset": {"q.routed": {"0": 4}}}],
}
STAND = BucketPosition(windows=3, panes=2, next_end=70, marks=(60, 65))


def record(
    progress: dict[str, Any], before: Tally | None = None, now: Tally | None = None, interval: int = 1000
) -> BatchRecord:
    settings = SETTINGS.model_copy(
        update={"spark": SETTINGS.spark.model_copy(update={"batch_interval": interval})}
    )
    standing = ExecutorState(slots=6, executors=3, epoch=2)
    return batch_record(
        PROGRESS | progress,
        settings,
        before=before or Tally(),
        now=now or Tally(),
        standing=standing,
        limits=BatchLimits(400, 4),
        run=Run(finished=3, warm_ms=40),
    )


def test_it_says_stage_rows_load_and_where_the_application_stands() -> None:
    said = record({})
    assert (said.stage, said.batch, said.rows, said.load) == ("fused", 7, 3, 0.5)
    assert (said.slots, said.executors, said.epoch) == (6, 3, 2)
    assert (said.finished, said.warm_ms) == (3, 40)
    assert (said.frames_per_batch, said.combine_tasks) == (400, 4)
    assert said.offsets == [{"q.routed": {"0": 4}}]
    assert record({}, interval=0).load is None
    assert parse(said.encode()) == said


def test_it_says_how_many_frames_lay_behind_the_micro_batch() -> None:
    behind = {"endOffset": {"q.routed": {"0": 4, "1": 7}}, "latestOffset": {"q.routed": {"0": 9, "1": 7}}}
    assert record({"sources": [behind]}).backlog == 5
    assert record({}).backlog is None, "unknown is not 0"
    assert record({"sources": [behind | {"endOffset": None}]}).backlog is None


def test_what_the_workers_told_is_the_difference_the_newest_stand_and_the_work_of_this_micro_batch() -> None:
    before = Tally(tuples=10, rows=4, unfit=1, closed={0: 2}, emitted={0: 50})
    mine = Work(tasks=2, busy_ms=30.0, longest_ms=20.0, rows=5)
    now = before + Tally(
        tuples=5,
        rows=2,
        closed={0: 1},
        emitted={0: 60},
        bucket_stands={0: STAND},
        work={("combine", 7): mine, ("combine", 6): Work(tasks=9), ("reduce", 8): Work(tasks=9)},
    )
    said = record({}, before, now)
    assert (said.tuples, said.rows_out, said.windows_closed, said.unfit) == (5, 2, 1, 0)
    assert (said.last_window_end, said.open_windows, said.next_window_end, said.mark) == (60, 3, 70, 60)
    assert said.open_panes == 2
    assert said.parts == {"combine": PartWork(tasks=2, busy_ms=30.0, longest_ms=20.0, rows=5, keys=0.0)}


def test_each_of_two_queries_in_one_application_says_only_what_its_own_part_did() -> None:
    now = Tally(
        tuples=5,
        rows=2,
        bucket_stands={0: STAND},
        work={("combine", 7): Work(rows=5), ("reduce", 7): Work(rows=3)},
    )
    combine, reduce = record({"name": "q combine"}, now=now), record({"name": "q reduce"}, now=now)
    assert (combine.tuples, combine.rows_out, combine.open_windows, set(combine.parts)) == (
        5,
        0,
        None,
        {"combine"},
    )
    assert (reduce.tuples, reduce.rows_out, reduce.open_windows, set(reduce.parts)) == (0, 2, 3, {"reduce"})


def test_a_combiner_alone_says_the_least_mark_that_it_was_told_and_none_before_all_have_told_one() -> None:
    assert record({"name": "q combine"}, now=Tally(input_marks=(NO_MARK, 7))).mark is None
    assert (
        record({"name": "q combine"}, now=Tally(input_marks=(NO_MARK, 7)) + Tally(input_marks=(9, 5))).mark
        == 7
    )


def test_what_is_no_progress_of_a_stage_is_refused() -> None:
    with pytest.raises((ValueError, KeyError)):
        record({"name": "another query"})
