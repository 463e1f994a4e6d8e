"""What the cores tell of their work: counts, windows that are open, and where each input partition stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from evenflow.keys import hash_keys
from evenflow.twostep import BucketPosition, Tally, Work, combine_task, reduce_windows
from evenflow.twostep.tally import KEPT, NO_BATCH, sketch
from evenflow.windows import NO_MARK
from tests.unit.twostep.pipe import EVERYTHING, INVERTIBLE, SLIDE, Pipe, Row, direct, feed, plan_of, streams


def test_tallies_add_up_and_the_newest_stand_of_a_bucket_counts() -> None:
    early = BucketPosition(windows=1, panes=1, next_end=10, marks=(5, 9))
    late = BucketPosition(windows=0, panes=0, next_end=None, marks=(20, 30))
    tally = Tally(rows=3, closed={0: 2}, emitted={0: 10}, bucket_stands={0: early, 1: early})
    tally += Tally(rows=1, closed={0: 1, 1: 1}, emitted={1: 20}, bucket_stands={0: late})
    assert (tally.rows, tally.windows, tally.emitted) == (4, 3, {0: 10, 1: 20})
    assert tally.stand == BucketPosition(windows=1, panes=1, next_end=10, marks=(5, 9))
    assert Tally().stand is None


@given(streams(), st.sampled_from([INVERTIBLE, EVERYTHING]), st.sampled_from([1, 3, 4]))
def test_what_is_told_is_what_was_emitted_and_what_is_still_open(
    batches: list[list[tuple[int, list[Row], int]]], aggregates: dict[str, str], panes: int
) -> None:
    pipe = Pipe(plan_of(aggregates, panes))
    tally, rows = Tally(), []
    for batch in batches:
        rows += feed(pipe, batch)
        for state, blobs in zip(pipe.states, pipe.combine(), strict=True):
            told: list[Tally] = []
            for table in reduce_windows(pipe.plan, pipe.layout, state, blobs, on_tally=told.append):
                pipe.found += table.to_pylist()
            tally = sum(told, tally)
    emitted, expected = pipe.results(), direct(pipe.plan, rows)
    assert tally.rows == len(emitted)
    assert max(tally.emitted.values(), default=None) == max(
        (at + pipe.plan.window for at, _ in emitted), default=None
    )
    ends = {start + pipe.plan.window for start, _ in expected.keys() - emitted.keys()}
    if tally.stand is not None:
        assert tally.stand.next_end == min(ends, default=None)
        assert (tally.stand.windows > 0) == bool(ends)


def test_tuples_are_counted_where_they_are_combined() -> None:
    pipe = Pipe(plan_of(EVERYTHING, 1))
    pipe.write(0, [(0, b"a", 1, 1.0), (1, b"b", 1, 1.0)], {0: 5})
    told: list[Tally] = []
    combine_task(pipe.plan, pipe.layout, [(0, pipe.frames[0])], on_tally=told.append)
    assert [tally.tuples for tally in told] == [2]
    assert told[0].input_marks == (5, NO_MARK)
    assert told[0].mark == NO_MARK
    work = told[0].work["combine", NO_BATCH]
    assert (work.rows, round(work.distinct), work.key_replicas) == (2, 2, 2)


def test_a_key_at_two_workers_is_held_twice() -> None:
    pipe = Pipe(plan_of(EVERYTHING, 1))
    pipe.write(0, [(0, b"a", 1, 1.0), (0, b"a", 1, 1.0), (3, b"a", 1, 1.0)], {0: 5})
    pipe.write(1, [(0, b"a", 1, 1.0), (1, b"b", 1, 1.0)], {0: 5})
    told: list[Tally] = []
    combine_task(pipe.plan, pipe.layout, list(enumerate(pipe.frames)), on_tally=told.append)
    work = told[0].work["combine", NO_BATCH]
    assert (work.key_replicas, round(work.distinct)) == (3, 2)


def test_work_adds_up_by_part_and_micro_batch_and_old_micro_batches_are_forgotten() -> None:
    keys = [sketch(hash_keys([f"k{number}" for number in some])) for some in (range(40), range(20, 60))]
    tasks = [
        Tally(work={("combine", NO_BATCH): Work(rows=5, keys=keys[0])}).in_batch(3, 20.0),
        Tally(work={("combine", NO_BATCH): Work(rows=7, keys=keys[1])}).in_batch(3, 30.0),
        Tally(work={("reduce", NO_BATCH): Work(rows=1)}).in_batch(3, 4.0),
    ]
    tally = sum(tasks, Tally())
    combine = tally.work["combine", 3]
    assert (combine.tasks, combine.busy_ms, combine.longest_ms, combine.rows) == (2, 50.0, 30.0, 12)
    assert round(combine.distinct / 60, 1) == 1, "keys of both tasks are counted once"
    assert tally.work["reduce", 3] == Work(tasks=1, busy_ms=4.0, longest_ms=4.0, rows=1)
    for batch in range(4, 40):
        tally += Tally(work={("combine", NO_BATCH): Work()}).in_batch(batch, 1.0)
    assert sorted(tally.work) == [*[("combine", batch) for batch in range(40 - KEPT, 40)], ("reduce", 3)]


def test_a_repeated_blob_is_no_work_for_the_reducer() -> None:
    pipe = Pipe(plan_of(EVERYTHING, 1), buckets=1)
    pipe.write(0, [(0, b"a", 1, 1.0), (0, b"b", 1, 1.0)], {0: 5, 1: 5})
    blobs = pipe.combine()[0]
    told: list[Tally] = []
    for _ in range(2):
        list(reduce_windows(pipe.plan, pipe.layout, pipe.states[0], blobs, on_tally=told.append))
    works = [tally.work["reduce", NO_BATCH] for tally in told]
    assert [(work.rows, round(work.distinct)) for work in works] == [(2, 2), (0, 0)]


def test_a_lane_that_nothing_was_heard_of_has_no_mark() -> None:
    pipe = Pipe(plan_of(EVERYTHING, 1), buckets=1)
    for routed in range(3):
        pipe.write(routed, [(3, b"a", 1, 1.0)], {0: 35})
    told: list[Tally] = []
    list(reduce_windows(pipe.plan, pipe.layout, pipe.states[0], pipe.combine()[0], on_tally=told.append))
    assert told[0].stand == BucketPosition(windows=1, panes=1, next_end=4 * SLIDE, marks=(35, NO_MARK))


def test_a_result_is_as_old_as_the_newest_tuple_of_its_window_also_across_micro_batches() -> None:
    pipe = Pipe(plan_of(INVERTIBLE, 2), buckets=1)
    told: list[Tally] = []

    def step() -> dict[int, int]:
        list(reduce_windows(pipe.plan, pipe.layout, pipe.states[0], pipe.combine()[0], on_tally=told.append))
        return dict(told[-1].work["reduce", NO_BATCH].emitted)

    pipe.write(0, [(0, b"a", 1, 1.0), (0, b"b", 1, 1.0)], {0: 5, 1: 5}, came=1_000)
    assert step() == {}
    pipe.write(0, [(1, b"a", 1, 1.0)], {0: 15, 1: 15}, came=2_000)
    pipe.write(1, [(0, b"c", 1, 1.0)], {0: 15, 1: 15}, came=1_500)
    pipe.write(2, [], {0: 15, 1: 15})
    assert step() == {1_500: 3}, "the window that ends with pane 0"
    for routed in range(3):
        pipe.write(routed, [], {0: 30, 1: 30})
    assert step() == {2_000: 3 + 1}, "those of panes 0 and 1, and of pane 1 alone"
    assert told[-1].stand == BucketPosition(windows=0, panes=0, next_end=None, marks=(30, 30))


def test_what_is_not_known_of_a_pane_is_told_of_no_window_that_holds_it() -> None:
    pipe = Pipe(plan_of(INVERTIBLE, 2), buckets=1)
    told: list[Tally] = []

    def step(mark: int, *rows: Row, came: int | None = None) -> dict[int, int]:
        for routed in range(3):
            pipe.write(routed, list(rows) if routed == 0 else [], {0: mark, 1: mark}, came=came)
        blobs = pipe.combine()[0]
        list(reduce_windows(pipe.plan, pipe.layout, pipe.states[0], blobs, on_tally=told.append))
        return dict(told[-1].work["reduce", NO_BATCH].emitted)

    assert step(10, (0, b"a", 1, 1.0), came=9_000) == {9_000: 1}, "late in coming"
    assert step(20, (1, b"a", 1, 1.0), came=2_000) == {9_000: 1}, "pane 0 is in this window, too"
    assert step(30, (2, b"a", 1, 1.0), came=3_000) == {3_000: 1}, "and not in this one"
    assert step(40, (3, b"a", 1, 1.0)) == {}
    assert step(50, (4, b"a", 1, 1.0), came=5_000) == {}
    assert step(60, (5, b"a", 1, 1.0), came=6_000) == {6_000: 1}
    assert step(900, (80, b"a", 1, 1.0), came=8_000) == {6_000: 1, 8_000: 2}


@given(streams(), st.sampled_from([INVERTIBLE, EVERYTHING]), st.sampled_from([1, 3]))
def test_no_result_is_said_to_be_older_than_the_oldest_tuple_and_all_have_an_age(
    batches: list[list[tuple[int, list[Row], int]]], aggregates: dict[str, str], panes: int
) -> None:
    pipe = Pipe(plan_of(aggregates, panes), buckets=1)
    told: list[Tally] = []
    rows = 0
    for number, batch in enumerate(batches, start=1):
        feed(pipe, batch, came=100 * number)
        tables = reduce_windows(
            pipe.plan, pipe.layout, pipe.states[0], pipe.combine()[0], on_tally=told.append
        )
        rows += sum(table.num_rows for table in tables)
        if told:
            emitted = told[-1].work["reduce", NO_BATCH].emitted
            assert all(100 <= came <= 100 * number for came in emitted)
    assert sum(sum(tally.work["reduce", NO_BATCH].emitted.values()) for tally in told) == rows


class SlowBroker:
    """A clock, and frames that come only after a wait of a second each. Work takes 3 ms between two looks."""

    def __init__(self) -> None:
        self.now = 0.0

    def clock(self) -> float:
        self.now += 0.003
        return self.now

    def frames(self, frames: list[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        for frame in frames:
            self.now += 1.0
            yield frame
        self.now += 1.0


def test_the_time_of_a_worker_is_that_of_its_tuples_and_not_of_the_wait_for_them() -> None:
    pipe, broker, told = Pipe(plan_of(INVERTIBLE, 1)), SlowBroker(), list[Tally]()
    for routed in (0, 2):
        for _ in range(routed + 1):
            pipe.write(routed, [(0, b"a", 1, 1.0), (0, b"b", 1, 1.0)], {0: 5, 1: 5})
    stretches = ((routed, broker.frames(pipe.frames[routed])) for routed in (0, 2))
    combine_task(pipe.plan, pipe.layout, stretches, on_tally=told.append, clock=broker.clock)
    took = told[0].work["combine", NO_BATCH].by_worker
    assert {worker: tuples for worker, (tuples, _) in took.items()} == {0: 2, 2: 6}
    # Two looks before the first frame, two at each frame, and two behind the last one.
    assert {worker: round(ms) for worker, (_, ms) in took.items()} == {0: 9, 2: 15}


def test_workers_that_share_a_partition_share_its_time_by_their_tuples() -> None:
    pipe, broker, told = Pipe(plan_of(INVERTIBLE, 1)), SlowBroker(), list[Tally]()
    rows: list[Row] = [(0, b"a", 1, 1.0), (0, b"b", 1, 1.0), (0, b"a", 2, 1.0), (0, b"c", 1, 1.0)]
    pipe.write(1, rows, {0: 5, 1: 5}, segments=[3, 0, 1])
    pipe.write(2, [], {0: 5, 1: 5}, segments=[0, 0, 0])
    stretches = ((routed, broker.frames(pipe.frames[routed])) for routed in (1, 2))
    combine_task(
        pipe.plan, replace(pipe.layout, shared_by=3), stretches, on_tally=told.append, clock=broker.clock
    )
    work = told[0].work["combine", NO_BATCH]
    assert {worker: (tuples, round(ms, 2)) for worker, (tuples, ms) in work.by_worker.items()} == {
        1: (3, 6.75), 7: (1, 2.25), 2: (0, 9.0),
    }  # fmt: skip
    assert (work.rows, work.key_replicas) == (4, 3), (
        "the first and the last worker share the partial of a key"
    )


def test_times_of_workers_add_up_over_tasks() -> None:
    one, other = Work(by_worker={0: (2, 1.0), 1: (1, 4.0)}), Work(by_worker={1: (3, 2.0)})
    assert (one + other).by_worker == {0: (2, 1.0), 1: (4, 6.0)}
    assert (Work() + other).by_worker == (other + Work()).by_worker == other.by_worker


def test_without_a_clock_nothing_is_told_of_times() -> None:
    pipe, told = Pipe(plan_of(INVERTIBLE, 1)), list[Tally]()
    pipe.write(0, [(0, b"a", 1, 1.0)], {0: 5, 1: 5})
    combine_task(pipe.plan, pipe.layout, [(0, iter(pipe.frames[0]))], on_tally=told.append)
    assert told[0].work["combine", NO_BATCH].by_worker == {}
