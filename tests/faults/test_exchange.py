"""Instances that tell each other, in the simulator: every result is there whatever becomes of what they
tell.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.faults.run import run
from tests.faults.schedules.drawing import drawn
from tests.faults.schedules.schedule import Schedule

_EACH = 40


def with_exchange(seed: int, partitioner: str) -> Schedule:
    """The schedule of this seed, for a partitioner whose instances tell each other."""
    schedule = drawn(seed)
    shape = schedule.shape
    shape = replace(shape, partitioner=partitioner, instances=max(2, shape.instances))
    return replace(schedule, shape=shape)


@pytest.mark.parametrize("partitioner", ["evenflow", "dalton-cooperative"])
def test_runs_with_an_exchange_that_delays_loses_and_repeats_give_every_result(partitioner: str) -> None:
    tables = 0
    for seed in range(_EACH):
        outcome = run(with_exchange(seed, partitioner))
        assert not outcome.violations, (seed, outcome.violations)
        tables += outcome.tables
    assert tables > _EACH // 4, "tables were heard"


@pytest.mark.long
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("partitioner", ["evenflow", "dalton-cooperative"])
def test_many_more_runs_with_an_exchange_give_every_result(partitioner: str) -> None:
    for seed in range(_EACH, 40 * _EACH):
        outcome = run(with_exchange(seed, partitioner))
        assert not outcome.violations, (seed, outcome.violations)
