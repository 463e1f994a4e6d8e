"""A frame that is gone between partitioner and reducer is noticed before a result that lacks it.

Rule "a gap is noticed".
"""

from __future__ import annotations

import copy
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import DataLossError, EvenflowError, ProtocolError
from evenflow.twostep import combine_task, reduce
from tests.examples import examples
from tests.unit.partitioner_service.lossy import WORKERS, Run

SEEDS = st.integers(0, 2**32)


@examples(40)
@given(SEEDS)
def test_a_run_that_loses_nothing_gives_every_result_whatever_its_partitioners_do(seed: int) -> None:
    run = Run(Random(seed))
    for _ in range(run.draw.randrange(1, 40)):
        run.step()
        if run.draw.random() < 0.3:
            run.micro_batch()
    run.finish()
    assert run.noticed() is None
    assert run.found == run.expected


@examples(120)
@given(SEEDS)
def test_any_lost_frame_and_any_lost_tail_is_noticed_before_a_result_is_wrong(seed: int) -> None:
    lost, error = losing(Run(Random(seed)), most=40)
    assert (error is not None) == lost
    assert error is None or isinstance(error, DataLossError | ProtocolError)


def test_offsets_that_fell_back_are_noticed_by_every_worker_before_any_tuple_is_routed_again() -> None:
    run = Run(Random(3))
    instance = run.instances[0]
    while run.committed[0].offset < 5:
        run.work(instance)
        run.commit(instance)
    run.micro_batch(all_of_it=True)
    run.committed[0] = replace(run.committed[0], offset=2)
    run.rebalance()
    run.work(instance)
    run.commit(instance)
    for routed in range(WORKERS):
        begun = run.log[routed][run.consumed[routed]]
        expected = rf"offset 2 of input partition 0 came to routed partition {routed}"
        with pytest.raises(ProtocolError, match=expected):
            look_ahead(run, routed, begun)


def look_ahead(run: Run, routed: int, frame: tuple[int, bytes]) -> None:
    """Combine and reduce one more frame of a routed partition. The buckets stay as they are."""
    again = copy.deepcopy(run.buckets)
    for blob in combine_task(run.layout.plan, run.layout, [(routed, [frame])]):
        reduce(run.layout.plan, run.layout, again[blob.bucket], [blob.data])


def losing(run: Run, *, most: int) -> tuple[bool, EvenflowError | None]:
    """Make fewer than `most` steps of a run that loses frames. Whether it lost any, and what combiner or
    reducer said.
    """
    draw, lost = run.draw, False
    error: EvenflowError | None = None
    for number in range(draw.randrange(5, most)):
        run.step()
        if draw.random() < 0.15 or number == 4:
            lost = lose(run) or lost
        try:
            if draw.random() < 0.3:
                run.micro_batch()
        except EvenflowError as raised:
            error = raised
            break
    if error is None:
        if draw.random() < 0.5:
            run.finish()
        lost = lose(run) or lost
        run.restart()
        error = run.noticed()
    return lost, error


def lose(run: Run) -> bool:
    """Lose a frame that was not read yet, or all frames of a routed partition from it on."""
    routed = run.draw.randrange(WORKERS)
    frames, begin = run.log[routed], run.consumed[routed]
    if begin == len(frames):
        return False
    at = run.draw.randrange(begin, len(frames))
    del frames[at : len(frames) if run.draw.random() < 0.5 else at + 1]
    return True
