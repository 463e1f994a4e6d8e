"""Two-step aggregation against a direct one in plain dicts: any routing, cut, repetition and order."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import DataLossError, IncompatibleStateError, ProtocolError
from evenflow.twostep import combine_task, reduce
from evenflow.twostep import combiner as combiner_module
from evenflow.windows import NO_MARK
from evenflow.wire import decode_blob
from tests.examples import examples
from tests.unit.twostep.pipe import (
    EVERYTHING,
    INPUTS,
    INVERTIBLE,
    ROUTED,
    SLIDE,
    Pipe,
    Row,
    direct,
    feed,
    plan_of,
    streams,
)


@pytest.mark.parametrize("aggregates", [INVERTIBLE, EVERYTHING], ids=["invertible", "tree"])
@examples(120)
@given(stream=streams(), panes=st.sampled_from([1, 2, 3, 5, 7, 8]), data=st.data())
def test_results_are_those_of_a_direct_aggregation(
    aggregates: dict[str, str], stream: list[Any], panes: int, data: st.DataObject
) -> None:
    pipe = Pipe(
        plan_of(aggregates, panes),
        buckets=data.draw(st.integers(1, 3)),
        max_bytes=60,
        forwarding_seed=data.draw(st.sampled_from([None, 7])),
    )
    rows: list[Row] = []
    for batch in stream:
        rows += feed(pipe, batch)
        blobs = pipe.combine()
        for bucket, made in enumerate(blobs):
            repeated = (
                data.draw(st.lists(st.sampled_from(pipe.history[bucket] + made), max_size=4)) if made else []
            )
            blobs[bucket] = data.draw(st.permutations(made + repeated))
        pipe.reduce(blobs)
    pipe.end()
    assert pipe.results() == direct(pipe.plan, rows)
    for state in pipe.states:
        assert not [name for name in state if name.startswith("node/")], (
            "all windows are out, so no pane is left"
        )


@pytest.mark.parametrize("aggregates", [INVERTIBLE, EVERYTHING], ids=["invertible", "tree"])
@examples(40)
@given(stream=streams(), data=st.data())
def test_parts_of_a_blob_may_arrive_in_different_micro_batches_and_more_than_once(
    aggregates: dict[str, str], stream: list[Any], data: st.DataObject
) -> None:
    pipe = Pipe(plan_of(aggregates, 3), buckets=1, max_bytes=1)
    rows: list[Row] = []
    for batch in stream:
        rows += feed(pipe, batch)
        made = pipe.combine()[0]
        at = data.draw(st.integers(0, len(made)))
        again = data.draw(st.integers(0, at))
        pipe.reduce([made[:at]])
        pipe.reduce([made[again:]])
    pipe.end()
    assert pipe.results() == direct(pipe.plan, rows)


def test_replayed_blobs_change_nothing() -> None:
    pipe = Pipe(plan_of(EVERYTHING, 3))
    feed(pipe, [(0, [(0, b"a", 1, 1.0), (1, b"b", 2, None)], 0), (1, [(2, b"a", 3, 0.5)], 20)])
    pipe.step()
    before = [dict(state) for state in pipe.states]
    pipe.reduce([list(blobs) for blobs in pipe.history])
    assert [dict(state) for state in pipe.states] == before


def test_a_blob_that_overlaps_what_was_merged_stops_everything() -> None:
    pipe = Pipe(plan_of(INVERTIBLE, 1), buckets=1)
    pipe.write(0, [(0, b"a", 1, 1.0)], {0: 0})
    first = list(pipe.frames[0])
    pipe.step()
    pipe.write(0, [(0, b"a", 1, 1.0)], {0: 0})
    pipe.frames[0] = first + pipe.frames[0]
    with pytest.raises(
        ProtocolError, match=r"routed partition 0, offsets 0\.\.2, overlaps what was merged up to offset 0"
    ):
        pipe.step()


def test_a_blob_that_comes_while_another_lacks_parts_stops_everything() -> None:
    pipe = Pipe(plan_of(INVERTIBLE, 1), buckets=1, max_bytes=1)
    pipe.write(0, [(0, b"a", 1, 1.0), (0, b"b", 1, 1.0)], {0: 0})
    halves = pipe.combine()[0]
    assert len(halves) == 2
    pipe.reduce([halves[:1]])
    pipe.write(0, [(0, b"a", 1, 1.0)], {0: 0})
    with pytest.raises(ProtocolError, match="only 1 of 2 rows had come"):
        pipe.step()


def test_marks_of_a_blob_count_only_with_its_last_part() -> None:
    pipe = Pipe(plan_of(INVERTIBLE, 1), buckets=1, max_bytes=1)
    for routed in range(ROUTED):
        pipe.write(routed, [(0, b"a", 1, 1.0), (0, b"b", 1, 1.0)], dict.fromkeys(range(INPUTS), SLIDE))
    made = pipe.combine()[0]
    pipe.reduce([made[:-1]])
    assert pipe.found == []
    pipe.reduce([made[-1:]])
    assert len(pipe.found) == 2


def test_a_partial_for_a_closed_pane_stops_everything_and_leaves_the_state_as_it_was() -> None:
    pipe = Pipe(plan_of(INVERTIBLE, 1), buckets=1)
    feed(pipe, [(0, [(0, b"a", 1, 1.0)], 30)])
    pipe.step()
    before = dict(pipe.states[0])
    pipe.write(1, [(2, b"a", 1, 1.0)], {0: 30})
    with pytest.raises(ProtocolError, match="a partial for pane 2, but every pane before 3 is closed"):
        pipe.step()
    assert dict(pipe.states[0]) == before


def test_a_pane_waits_for_every_lane() -> None:
    pipe = Pipe(plan_of(INVERTIBLE, 1), buckets=1)
    for routed in range(ROUTED):
        for partition in range(INPUTS):
            assert pipe.found == []
            pipe.write(routed, [(0, b"a", 1, 1.0)] if routed == partition == 0 else [], {partition: SLIDE})
            pipe.step()
    assert pipe.results() == {(0, b"a"): {"n": 1, "s": 1, "m": 1.0}}


@pytest.mark.parametrize("aggregates", [INVERTIBLE, EVERYTHING], ids=["invertible", "tree"])
def test_a_year_without_tuples_is_skipped_in_one_step(aggregates: dict[str, str]) -> None:
    year = 365 * 86_400_000
    pipe = Pipe(plan_of(aggregates, 6), buckets=1)
    rows: list[Row] = [(0, b"a", 1, 1.0)]
    feed(pipe, [(0, rows, 0)])
    for n in range(1, 40):
        rows += feed(pipe, [(n % ROUTED, [(n * year // SLIDE, b"a", n, 0.5)], n * year)])
        pipe.step()
    pipe.end()
    assert pipe.results() == direct(pipe.plan, rows)


@pytest.mark.parametrize("aggregates", [INVERTIBLE, EVERYTHING], ids=["invertible", "tree"])
def test_state_stays_bounded_over_many_windows_and_is_written_rarely(aggregates: dict[str, str]) -> None:
    pipe = Pipe(plan_of(aggregates, 60), buckets=1)
    sizes, puts, rows = [], [], []
    for pane in range(400):
        made: list[Row] = [(pane, b"key%d" % (pane * 7 % 50 + n), pane, pane / 8) for n in range(5)]
        rows += feed(pipe, [(pane % ROUTED, made, pane * SLIDE)])
        before = pipe.states[0].puts
        pipe.step()
        puts.append(pipe.states[0].puts - before)
        sizes.append((len(pipe.states[0]), sum(map(len, pipe.states[0].values()))))
    pipe.end()
    assert pipe.results() == direct(pipe.plan, rows)
    assert max(count for count, _ in sizes) <= 60 + 8
    assert max(size for _, size in sizes[240:]) <= 1.1 * max(size for _, size in sizes[60:240])
    assert max(puts) <= 5 + 7


def test_windows_before_emit_from_are_not_emitted() -> None:
    pipe = Pipe(plan_of(INVERTIBLE, 3, emit_from=20))
    rows = feed(pipe, [(0, [(n, b"a", n, None) for n in range(6)], 0)])
    pipe.end()
    assert pipe.results() == direct(pipe.plan, rows)
    assert min(start for start, _ in pipe.results()) == 20


def test_event_times_before_1970_work() -> None:
    pipe = Pipe(plan_of(EVERYTHING, 4))
    rows = feed(pipe, [(0, [(-9, b"a", 1, 1.0), (-5, b"a", 2, 2.0), (0, b"a", 3, 4.0)], -100)])
    pipe.end()
    assert pipe.results() == direct(pipe.plan, rows)


def test_a_megabyte_key_travels_in_a_part_of_its_own() -> None:
    pipe = Pipe(plan_of(EVERYTHING, 2), max_bytes=100_000)
    rows = feed(pipe, [(0, [(0, b"x" * 1_000_000, 1, 1.0), (0, b"y", 1, 1.0)], 0)])
    pipe.end()
    assert pipe.results() == direct(pipe.plan, rows)


def test_every_bucket_gets_a_blob_whenever_a_frame_was_read() -> None:
    pipe = Pipe(plan_of(INVERTIBLE, 1), buckets=3)
    pipe.write(1, [], {0: 5})
    blobs = pipe.combine()
    headers = [decode_blob(made[0], fingerprint="f").header for made in blobs]
    assert [len(made) for made in blobs] == [1, 1, 1]
    assert [header.segments for header in headers] == [((1, 0, 0, 0, 0, 0, 0),)] * 3
    assert [header.marks.tolist() for header in headers] == [[[5, NO_MARK]]] * 3
    assert [header.lanes.tolist() for header in headers] == [[], [(1, 0, 0, 1)], []], "one bucket watches"
    assert pipe.combine() == [[], [], []]


def test_a_blob_carries_the_largest_mark_of_its_frames() -> None:
    pipe = Pipe(plan_of(INVERTIBLE, 1), buckets=1)
    pipe.write(0, [(5, b"a", 1, None)], {0: 7, 1: 9})
    pipe.write(0, [], {0: 20})
    header = decode_blob(pipe.combine()[0][0], fingerprint="f").header
    assert header.marks.tolist() == [[20, 9]]


def test_folding_early_gives_the_same_blobs_each_time_and_the_same_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run() -> tuple[list[list[bytes]], dict[Any, Any], list[Row]]:
        pipe = Pipe(plan_of(EVERYTHING, 2))
        rows = []
        for n in range(10):
            rows += feed(pipe, [(0, [(m % 3, b"k%d" % (m % 5), n * m, n / 8) for m in range(20)], 0)])
        blobs = pipe.combine()
        pipe.reduce(blobs)
        pipe.end()
        return blobs, pipe.results(), rows

    _, expected, rows = run()
    monkeypatch.setattr(combiner_module, "FOLD_ROWS", 45)
    blobs, result, _ = run()
    assert result == expected == direct(plan_of(EVERYTHING, 2), rows)
    assert run()[0] == blobs


def test_frames_out_of_order_of_another_query_or_of_other_columns_are_refused() -> None:
    pipe = Pipe(plan_of(INVERTIBLE, 1))
    pipe.write(0, [(0, b"a", 1, None)], {0: 0})
    frames, layout = pipe.frames[0], pipe.layout
    with pytest.raises(ProtocolError, match="offset 0 was read after 0"):
        combine_task(pipe.plan, layout, [(0, frames * 2)])
    with pytest.raises(ProtocolError, match="in two stretches"):
        combine_task(pipe.plan, layout, [(0, frames), (0, frames)])
    with pytest.raises(IncompatibleStateError, match="written for query f"):
        combine_task(pipe.plan, replace(layout, fingerprint="other"), [(0, frames)])
    with pytest.raises(
        IncompatibleStateError, match="the frame is of 3 routed partitions, but this query has 4"
    ):
        combine_task(pipe.plan, replace(layout, routed_partitions=4), [(0, frames)])
    with pytest.raises(
        IncompatibleStateError, match="of 1 workers that share a partition, but in this query 2"
    ):
        combine_task(pipe.plan, replace(layout, shared_by=2), [(0, frames)])
    with pytest.raises(ProtocolError, match="columns"):
        combine_task(plan_of(EVERYTHING, 1), layout, [(0, frames)])
    with pytest.raises(ProtocolError, match="routed partition 2, offset 7: this record is no evenflow frame"):
        combine_task(pipe.plan, layout, [(2, [(7, b"nonsense")])])


def test_state_of_another_query_topic_or_version_is_refused() -> None:
    pipe = Pipe(plan_of(INVERTIBLE, 1), buckets=1)
    feed(pipe, [(0, [(0, b"a", 1, None)], 0)])
    blobs = pipe.combine()[0]
    pipe.reduce([blobs])
    with pytest.raises(IncompatibleStateError, match="is of query f, but this is g"):
        reduce(pipe.plan, replace(pipe.layout, fingerprint="g"), pipe.states[0], [])
    pipe.write(0, [], {0: 0})
    other = combine_task(pipe.plan, replace(pipe.layout, topic_id="u"), [(0, pipe.frames[0])])
    with pytest.raises(DataLossError, match="deleted and made again"):
        reduce(pipe.plan, pipe.layout, pipe.states[0], [other[0].data])
    wider = combine_task(pipe.plan, replace(pipe.layout, buckets=2), [(0, pipe.frames[0])])
    with pytest.raises(IncompatibleStateError, match="of 2 buckets"):
        reduce(pipe.plan, pipe.layout, pipe.states[0], [wider[0].data])
    meta = json.loads(pipe.states[0]["meta"])
    pipe.states[0]["meta"] = json.dumps({**meta, "v": 99}).encode()
    with pytest.raises(IncompatibleStateError, match="version 99"):
        reduce(pipe.plan, pipe.layout, pipe.states[0], [])
