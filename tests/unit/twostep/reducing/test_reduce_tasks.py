"""Reduce tasks between combiner and buckets: the results are those without them, and no piece can be
missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import DataLossError, IncompatibleStateError, ProtocolError
from evenflow.keys import bucket_of, hash_keys
from evenflow.numeric.arrays import UInt64s
from evenflow.twostep import reduce, reduce_task
from evenflow.twostep.reducing import merging
from evenflow.wire import decode_blob
from tests.examples import examples
from tests.unit.twostep.pipe import (
    EVERYTHING,
    INPUTS,
    INVERTIBLE,
    ROUTED,
    SLIDE,
    Dict,
    Pipe,
    Row,
    direct,
    plan_of,
    streams,
)

HASHES = hash_keys([b"", b"a", b"b", b"c", b"\xff\x00", b"k" * 70])
TABLES = st.one_of(
    st.none(),
    st.sets(st.sampled_from(HASHES.tolist())).map(lambda keys: np.array(sorted(keys), np.uint64)),
)
"""Tables of split keys, right or wrong."""
GROUPS = st.permutations(range(ROUTED)).flatmap(
    lambda order: st.integers(0, ROUTED).map(
        lambda at: tuple(group for group in (tuple(order[:at]), tuple(order[at:])) if group)
    )
)
"""Which routed partitions share a task of the combiner."""
TINY = 60
"""Bytes of a blob that is cut into many parts."""


def _feed(pipe: Pipe, batch: list[Any], tables: list[UInt64s | None]) -> list[Row]:
    rows: list[Row] = []
    for number, (routed, mine, mark) in enumerate(batch):
        for other in range(ROUTED):
            marks = dict.fromkeys(range(INPUTS), mark)
            pipe.write(other, mine if other == routed else [], marks, batch=number, split=tables[number])
        rows += mine
    return rows


@pytest.mark.parametrize("aggregates", [INVERTIBLE, EVERYTHING], ids=["invertible", "tree"])
@examples(20)
@given(stream=streams(), tasks=st.integers(1, 4), buckets=st.integers(1, 3), data=st.data())
def test_results_are_those_of_a_direct_aggregation_whatever_the_tables_say(
    aggregates: dict[str, str], stream: list[Any], tasks: int, buckets: int, data: st.DataObject
) -> None:
    plan = plan_of(aggregates, 3)
    pipe = Pipe(
        plan, buckets=buckets, reduce_tasks=tasks, max_bytes=data.draw(st.sampled_from([TINY, 10**6]))
    )
    rows: list[Row] = []
    for batch in stream:
        pipe.tasks = data.draw(GROUPS)
        rows += _feed(pipe, batch, data.draw(st.lists(TABLES, min_size=len(batch), max_size=len(batch))))
        clusters = [data.draw(st.permutations(blobs)) for blobs in pipe.clusters()]
        pipe.reduce([data.draw(st.permutations(pieces)) for pieces in pipe.merge(clusters)])
    pipe.end()
    assert pipe.results() == direct(plan, rows)


@examples(12)
@given(stream=streams(), one=GROUPS, other=GROUPS, data=st.data())
def test_pieces_depend_on_the_frames_alone_and_not_on_who_combined_them(
    stream: list[Any], one: Any, other: Any, data: st.DataObject
) -> None:
    pipes = [Pipe(plan_of(EVERYTHING, 2), reduce_tasks=3, tasks=tasks) for tasks in (one, other)]
    for batch in stream:
        tables = data.draw(st.lists(TABLES, min_size=len(batch), max_size=len(batch)))
        for pipe in pipes:
            _feed(pipe, batch, tables)
        here, there = (pipe.merge([list(reversed(blobs)) for blobs in pipe.clusters()]) for pipe in pipes)
        assert here == there, "a repeated micro-batch has other bytes"
        for pipe in pipes:
            pipe.reduce(here)


def test_a_key_that_is_not_split_goes_to_the_task_with_least_tuples_and_a_split_one_by_its_hash() -> None:
    pipe = Pipe(plan_of({"n": "count"}, 1), reduce_tasks=2, buckets=1)
    keys = [b"a"] * 4 + [b"b"] * 3 + [b"c"] * 2 + [b"d"]
    rows: list[Row] = [(0, key, 1, 1.0) for key in keys]
    pipe.write(0, rows, {0: 0}, batch=0, split=np.empty(0, np.uint64))
    sizes = [sorted(count for blob in blobs for count in _rows(blob)) for blobs in pipe.clusters()]
    # In descending order of tuples: a to task 0, b to task 1, then again the less loaded task first.
    assert sizes == [[1, 4], [2, 3]]
    pipe.write(0, rows, {0: 0}, batch=1, split=np.sort(hash_keys(keys)))
    for task, blobs in enumerate(pipe.clusters()):
        for blob in blobs:
            of = bucket_of(hash_keys(decode_blob(blob, fingerprint="f").batch["key"]), 2)
            assert (of == task).all()


def test_a_key_counts_as_split_if_one_frame_has_no_table() -> None:
    pipe = Pipe(plan_of({"n": "count"}, 1), reduce_tasks=7, buckets=1)
    rows: list[Row] = [(0, b"%d" % number, 1, 1.0) for number in range(40)]
    pipe.write(0, rows, {0: 0}, batch=0, split=np.empty(0, np.uint64))
    pipe.write(0, rows[:1], {0: 0})
    for task, blobs in enumerate(pipe.clusters()):
        for blob in blobs:
            of = bucket_of(hash_keys(decode_blob(blob, fingerprint="f").batch["key"]), 7)
            assert (of == task).all()


def test_repeated_pieces_change_nothing() -> None:
    pipe, pieces = _written(buckets=2)
    pipe.reduce(pieces)
    before = [dict(state) for state in pipe.states]
    pipe.reduce(pieces)
    assert [dict(state) for state in pipe.states] == before


@pytest.mark.parametrize("max_bytes", [TINY, 10**6], ids=["cut", "whole"])
def test_a_piece_that_is_missing_or_came_twice_stops_everything_and_leaves_the_state_as_it_was(
    max_bytes: int,
) -> None:
    pipe, (pieces,) = _written(max_bytes=max_bytes)
    for at, piece in enumerate(pieces):
        with pytest.raises(ProtocolError, match=r"of the piece of reduce task \d did not come"):
            pipe.reduce([pieces[:at] + pieces[at + 1 :]])
        with pytest.raises(ProtocolError, match=r"of the piece of reduce task \d came twice"):
            pipe.reduce([[*pieces, piece]])
        assert not pipe.states[0]
    pipe.reduce([pieces])


@pytest.mark.parametrize("max_bytes", [TINY, 10**6], ids=["cut", "whole"])
def test_clusters_that_do_not_reach_a_reduce_task_are_noticed_by_the_task_or_by_the_bucket(
    max_bytes: int,
) -> None:
    pipe, _ = _written(max_bytes=max_bytes)
    _write(pipe)
    clusters = pipe.clusters()
    assert len(clusters[0]) > 1
    for task, blobs in enumerate(clusters):
        for at, blob in enumerate(blobs):
            lacks, doubles = list(clusters), list(clusters)
            lacks[task] = blobs[:at] + blobs[at + 1 :]
            doubles[task] = [*blobs, blob]
            with pytest.raises(ProtocolError):
                pipe.reduce(pipe.merge(lacks))
            with pytest.raises(ProtocolError, match="came to a reduce task where those from"):
                pipe.merge(doubles)


def test_a_piece_that_is_missing_would_be_lost_in_silence_if_nobody_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unchecked(blobs: Sequence[object], *, tasks: int) -> list[int]:
        return list(range(len(blobs)))

    pipe, (pieces,) = _written()
    monkeypatch.setattr(merging, "merge_order", unchecked)
    pipe.reduce([pieces[:1]])
    pipe.end()
    assert 0 < sum(row["n"] for row in pipe.results().values()) < 2 * 8 * ROUTED


def test_pieces_of_which_only_some_offsets_were_merged_before_stop_everything() -> None:
    pipe = Pipe(plan_of(INVERTIBLE, 1), buckets=1, reduce_tasks=2)
    pipe.write(0, [(0, b"a", 1, 1.0)], {0: 0})
    first = list(pipe.frames[0])
    pipe.step()
    pipe.frames[0] = first
    pipe.write(1, [(0, b"b", 1, 1.0)], {0: 0})
    before = dict(pipe.states[0])
    with pytest.raises(
        ProtocolError, match=r"offsets 0\.\.0 of routed partition 0 were merged before, but other"
    ):
        pipe.step()
    assert dict(pipe.states[0]) == before
    pipe.frames[0] = first
    pipe.write(0, [(0, b"c", 1, 1.0)], {0: 0})
    with pytest.raises(ProtocolError, match="overlaps what was merged up to offset 0"):
        pipe.step()


def test_frames_that_are_gone_and_input_that_was_routed_twice_are_noticed_as_without_reduce_tasks() -> None:
    pipe = Pipe(plan_of(INVERTIBLE, 1), buckets=2, reduce_tasks=3)
    for routed in range(ROUTED):
        pipe.write(routed, [], {0: 0})
    pipe.step()
    pipe.write(1, [(0, b"a", 1, 1.0)], {0: 0})
    pipe.frames[1].clear()
    pipe.write(1, [(0, b"a", 1, 1.0)], {0: 0})
    with pytest.raises(DataLossError, match="of session 7 comes where frame 1 must"):
        pipe.step()
    for routed in range(ROUTED):
        pipe = Pipe(plan_of(INVERTIBLE, 1), buckets=2, reduce_tasks=3)
        pipe.write(routed, [], {0: 0})
        pipe.write(routed, [], {0: 0})
        pipe.step()
        pipe.offsets[routed] = 0
        pipe.write(routed, [(0, b"a", 1, 1.0)], {0: 0})
        offset, frame = pipe.frames[routed][0]
        pipe.frames[routed] = [(offset + 100, frame)]
        with pytest.raises(ProtocolError, match="the input was routed twice"):
            pipe.step()


def test_blobs_of_the_other_way_are_refused_by_buckets_and_by_reduce_tasks() -> None:
    pipe, (pieces,) = _written()
    plain = Pipe(plan_of(EVERYTHING, 2), buckets=1)
    _write(plain)
    (blobs,) = plain.combine()
    with pytest.raises(ProtocolError, match="no piece of 2 came to a bucket"):
        pipe.reduce([blobs])
    with pytest.raises(ProtocolError, match="no piece of 3 came to a bucket"):
        reduce(pipe.plan, replace(pipe.layout, reduce_tasks=3), pipe.states[0], pieces)
    with pytest.raises(ProtocolError, match="has no reduce tasks before it"):
        plain.reduce([pieces])
    _write(pipe)
    clusters = pipe.clusters()
    with pytest.raises(IncompatibleStateError, match="a blob is of 2 buckets"):
        pipe.reduce([clusters[0]])
    two = replace(pipe.layout, buckets=2)
    with pytest.raises(ProtocolError, match="a blob for reduce task 0 came to a bucket"):
        reduce(pipe.plan, two, Dict(), clusters[0])
    with pytest.raises(ProtocolError, match="a blob for receiver 1 came to reduce task 0"):
        reduce_task(pipe.plan, pipe.layout, 0, clusters[1])


def _written(*, buckets: int = 1, max_bytes: int = 10**6) -> tuple[Pipe, list[list[bytes]]]:
    """A pipe with two reduce tasks, and its pieces of some tuples."""
    pipe = Pipe(plan_of(EVERYTHING, 2), buckets=buckets, reduce_tasks=2, max_bytes=max_bytes)
    _write(pipe)
    return pipe, pipe.combine()


def _write(pipe: Pipe) -> None:
    for routed in range(ROUTED):
        rows: list[Row] = [
            (pane, b"%d" % (number * (routed + 1)), number, 0.5) for pane in (1, 2) for number in range(4)
        ]
        pipe.write(routed, rows, dict.fromkeys(range(INPUTS), SLIDE), batch=0, split=hash_keys([b"0"]))


def _rows(blob: bytes) -> list[int]:
    return decode_blob(blob, fingerprint="f").batch["rows"].to_pylist()
