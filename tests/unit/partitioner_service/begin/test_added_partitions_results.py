"""Input partitions that are added while a query lives: every result is exact, whenever they are taken in."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import DataLossError, ProtocolError
from evenflow.windows import NO_MARK
from tests.examples import examples
from tests.unit.partitioner_service import small_kafka as kafka
from tests.unit.partitioner_service.growing import GrowingRun
from tests.unit.partitioner_service.kafka.test_lost_frames import losing
from tests.unit.partitioner_service.lossy import INPUTS

SEEDS = st.integers(0, 2**32)


@pytest.fixture(autouse=True, scope="module")
def small_kafka() -> Iterator[None]:
    with kafka.reached():
        yield


def a_run(seed: int, *, most: int = 60) -> GrowingRun:
    run = GrowingRun(Random(seed))
    for _ in range(run.draw.randrange(1, most)):
        run.step()
        if run.draw.random() < 0.3:
            run.micro_batch()
    return run


@examples(100)
@given(SEEDS)
def test_results_are_exact_whenever_partitions_are_added_and_whoever_takes_them_in(seed: int) -> None:
    run = a_run(seed)
    run.finish()
    assert run.noticed() is None
    assert run.found == run.expected


@examples(80)
@given(SEEDS)
def test_any_lost_frame_is_noticed_while_partitions_are_added(seed: int) -> None:
    lost, error = losing(GrowingRun(Random(seed)), most=50)
    assert (error is not None) == lost
    assert error is None or isinstance(error, DataLossError | ProtocolError)


def test_runs_take_partitions_in_at_every_kind_of_moment() -> None:
    runs = [a_run(seed) for seed in range(60)]
    marks = [mark for run in runs for mark in run.taken_at.values()]
    assert any(mark == NO_MARK for mark in marks)
    assert any(mark > 3_000 for mark in marks)
    assert any(len(run.committed) > INPUTS + 2 for run in runs)
    assert sum(run.kafka.given_up for run in runs) > 5
    assert any(run.refused for run in runs)
