"""A micro-batch that was torn and is repeated with other settings: no row is lost, none counted twice.

Rule "parts name their rows".
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ProtocolError
from tests.examples import examples
from tests.unit.twostep.pipe import EVERYTHING, INVERTIBLE, ROUTED, Pipe, Row, direct, feed, plan_of, streams

TASKS = [((0, 1, 2),), ((0,), (1,), (2,)), ((2, 0), (1,)), ((1,), (0, 2))]


def sixty_rows(pipe: Pipe) -> list[Row]:
    return feed(pipe, [(0, [(n % 3, b"key-%d" % n, n, n / 8) for n in range(60)], 0)])


@pytest.mark.parametrize(("before", "after"), [(200, 1_000), (1_000, 200), (300, 70), (10_000, 100)])
def test_other_frame_bytes_after_a_torn_micro_batch_lose_nothing(before: int, after: int) -> None:
    """What the first attempt delivered of a segment counts, and of the second one only the rest."""
    pipe = Pipe(plan_of(EVERYTHING, 1), buckets=1, max_bytes=before)
    rows = sixty_rows(pipe)
    frames = [list(entries) for entries in pipe.frames]
    torn = pipe.combine()[0]
    pipe.reduce([torn[: max(1, len(torn) // 2)]])
    pipe.frames, pipe.max_bytes = frames, after
    pipe.step()
    pipe.end()
    assert pipe.results() == direct(pipe.plan, rows)


@examples(60)
@given(stream=streams(), data=st.data())
def test_other_tasks_and_sizes_after_a_torn_micro_batch_change_no_result(
    stream: list[Any], data: st.DataObject
) -> None:
    pipe = Pipe(plan_of(INVERTIBLE, 3), buckets=data.draw(st.integers(1, 3)))
    rows: list[Row] = []
    for batch in stream:
        rows += feed(pipe, batch)
        frames = [list(entries) for entries in pipe.frames]
        for _ in range(data.draw(st.integers(0, 2))):
            pipe.tasks, pipe.max_bytes = data.draw(st.sampled_from(TASKS)), data.draw(st.integers(1, 400))
            torn = [made[: data.draw(st.integers(0, len(made)))] for made in pipe.combine()]
            pipe.reduce(torn)
            pipe.frames = [list(entries) for entries in frames]
        pipe.tasks, pipe.max_bytes = data.draw(st.sampled_from(TASKS)), data.draw(st.integers(1, 400))
        pipe.step()
    pipe.end()
    assert pipe.results() == direct(pipe.plan, rows)


def test_parts_behind_a_missing_one_wait_for_the_repeated_attempt() -> None:
    pipe = Pipe(plan_of(EVERYTHING, 1), buckets=1, max_bytes=200)
    rows = sixty_rows(pipe)
    parts = pipe.combine()[0]
    pipe.reduce([[parts[0], *parts[2:]]])
    pipe.reduce([parts])
    pipe.end()
    assert pipe.results() == direct(pipe.plan, rows)


def test_rows_that_never_come_stop_everything() -> None:
    pipe = Pipe(plan_of(EVERYTHING, 1), buckets=1, max_bytes=200)
    sixty_rows(pipe)
    parts = pipe.combine()[0]
    pipe.reduce([[parts[0], *parts[2:]]])
    sixty_rows(pipe)
    with pytest.raises(ProtocolError, match="rows had come"):
        pipe.step()


def test_the_same_floats_come_out_whatever_tasks_the_routed_partitions_share() -> None:
    result = []
    for tasks in TASKS:
        pipe = Pipe(plan_of(EVERYTHING, 2), buckets=2, tasks=tasks)
        rows: list[Row] = [(0, b"k%d" % (n % 7), n, [0.1, 1e16, -1e16][n % 3]) for n in range(ROUTED * 20)]
        for routed in range(ROUTED):
            pipe.write(routed, rows[routed::ROUTED], dict.fromkeys(range(2), 0))
        pipe.step()
        pipe.end()
        result.append(pipe.results())
    assert all(results == result[0] for results in result)
