"""ContTune: the Big phase doubles, and the Small phase takes what has been measured to be enough."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.elasticity import Bounds, Observation, Policy, StageObservation, create
from evenflow.elasticity.policies.conttune import expected_capacity
from tests.examples import examples
from tests.unit.elasticity.observations import INTERVAL_MS

BOUNDS = Bounds(p_max=32)


def made(**options: Any) -> Policy:
    return create("conttune", bounds=BOUNDS, **{"wait_s": 0, "target": 1.0, **options})


def seen(step: int, p: int, rate: float, *, capacity: float | None = None) -> Observation:
    """A combiner whose p workers do 10 tuples/s each, or `capacity` in all."""
    able = 10.0 * p if capacity is None else capacity
    stage = StageObservation(load=rate / able, arrivals=rate, capacity=able, queue=0)
    return Observation(
        step=step,
        interval_ms=INTERVAL_MS,
        p=p,
        r=1,
        wiring="split",
        load=rate / able,
        rate=rate,
        stages={"combine": stage},
    )


def test_under_backpressure_every_part_doubles_until_it_keeps_up() -> None:
    policy = made()
    assert [policy.decide(seen(step, p, 100.0)).p for step, p in ((1, 2), (2, 4), (3, 8))] == [4, 8, 16]
    assert policy.decide(seen(4, 16, 100.0)).p == 10, "then the fewest that are enough"


def test_at_the_bounds_doubling_says_so() -> None:
    policy = made()
    assert policy.decide(seen(1, 20, 300.0)).p == 32
    decision = policy.decide(seen(2, 32, 900.0))
    assert (decision.p, decision.cause) == (32, "bounds")


def test_an_idle_part_takes_the_fewest_units_that_were_measured_to_be_enough() -> None:
    policy = made(low=0.7)
    for step, p in enumerate((4, 5, 6, 7), start=1):
        policy.decide(seen(step, p, 9.5 * p))
    decision = policy.decide(seen(5, 7, 45.0))
    assert decision.p == 5
    assert "by what was measured" in decision.reason


def test_far_from_what_was_measured_it_reckons_like_ds2() -> None:
    policy = made(low=0.7)
    for step, p in enumerate((24, 25, 26), start=1):
        policy.decide(seen(step, p, 9.5 * p))
    decision = policy.decide(seen(4, 26, 45.0))
    assert decision.p == 5
    assert "nothing near was measured" in decision.reason


def test_what_is_neither_overloaded_nor_idle_stays() -> None:
    decision = made().decide(seen(1, 10, 80.0))
    assert (decision.p, decision.cause) == (10, "stable")


def test_nothing_happens_within_the_wait_after_a_change() -> None:
    policy = made(wait_s=10)
    assert policy.decide(seen(1, 2, 100.0)).p == 4
    assert [policy.decide(seen(step, 4, 100.0)).p for step in (2, 3, 4)] == [4, 4, 8]


def test_what_was_learned_at_one_load_serves_another() -> None:
    policy = made(alpha=3, low=0.7)

    def capacity(p: int) -> float:
        return 100 * p**0.8  # not linear: DS2 would take too few

    step, p = 0, 4
    for rate in (600.0, 200.0, 900.0, 300.0, 600.0):
        for _ in range(8):
            step += 1
            p = policy.decide(seen(step, p, rate, capacity=capacity(p))).p
        assert capacity(p) >= rate
    changes = []
    for rate in (900.0, 300.0, 600.0):
        before = p
        for _ in range(8):
            step += 1
            p = policy.decide(seen(step, p, rate, capacity=capacity(p))).p
            changes.append(p != before)
            before = p
    assert sum(changes) <= 6, "at most two changes for each load"


@examples(60)
@given(
    slope=st.floats(1, 1e6),
    bend=st.floats(0.5, 1.0),
    units=st.lists(st.integers(1, 40), min_size=3, max_size=20, unique=True),
)
def test_the_process_goes_through_what_was_measured(slope: float, bend: float, units: list[int]) -> None:
    at = np.array(sorted(units), np.float64)
    capacities = slope * at**bend
    np.testing.assert_allclose(
        expected_capacity(at, capacities, at), capacities, atol=0.05 * capacities.max()
    )


def test_only_the_last_five_capacities_at_a_number_of_units_count() -> None:
    policy: Any = made()
    for step in range(1, 9):
        policy.decide(seen(step, 10, 80.0, capacity=100.0 + step))
    assert policy._memory.combine[-1].capacities == pytest.approx([104, 105, 106, 107, 108])
