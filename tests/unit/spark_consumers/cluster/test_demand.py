"""How many executors (p, r) asks for, by wiring."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.plans import Plan
from evenflow.settings import Settings, load_settings
from evenflow.telemetry import Stage
from spark_consumers.cluster.demand import executors_wanted, most_executors

FUSED: tuple[Stage, ...] = ("fused",)
COMBINE: tuple[Stage, ...] = ("combine",)
REDUCE: tuple[Stage, ...] = ("reduce",)
BOTH: tuple[Stage, ...] = ("combine", "reduce")


def settings(*, partitions: int = 32, **spark: Any) -> Settings:
    return load_settings(
        query={"name": "q"},
        partitioner={"workers": 8, "max_workers": 32, "routed_partitions": partitions},
        spark={"buckets": 6, "reducers": 3, "partitions_per_slot": 4} | spark,
    )


@pytest.mark.parametrize(
    ("stages", "p", "r", "cores", "wanted"),
    [
        (FUSED, 8, 1, 1, 2),
        (FUSED, 8, 3, 1, 3),
        (FUSED, 9, 3, 2, 2),
        (FUSED, 32, 3, 2, 4),
        (COMBINE, 9, 6, 1, 3),
        (REDUCE, 32, 5, 2, 3),
        (BOTH, 32, 5, 2, 4),
        (BOTH, 4, 5, 2, 3),
        (FUSED, 1, 1, 16, 1),
    ],
)
def test_a_plan_asks_for_the_cores_of_the_larger_part(
    stages: tuple[Stage, ...], p: int, r: int, cores: int, wanted: int
) -> None:
    plan = Plan(epoch=1, p=p, r=r)
    assert executors_wanted(settings(executor_cores=cores), stages, plan) == wanted


def test_before_the_first_plan_the_settings_say_p_and_r() -> None:
    assert executors_wanted(settings(), COMBINE, None) == 2
    assert executors_wanted(settings(), REDUCE, None) == 3
    assert executors_wanted(settings(reducers=None), REDUCE, None) == 6, "all buckets at once"


@given(
    p=st.integers(1, 4096),
    r=st.integers(1, 4096),
    most=st.none() | st.integers(1, 5),
    reserve=st.integers(0, 3),
    partitions=st.integers(1, 32),
)
def test_no_plan_asks_for_more_than_the_bound_or_than_there_is_work_for_and_a_reserve(
    p: int, r: int, most: int | None, reserve: int, partitions: int
) -> None:
    bounded = settings(partitions=partitions, max_executors=most, reserve_executors=reserve)
    for stages in (FUSED, COMBINE, REDUCE, BOTH):
        wanted = executors_wanted(bounded, stages, Plan(epoch=1, p=p, r=r))
        ceiling = max(min(8, partitions), 6) + reserve
        assert 1 <= wanted <= most_executors(bounded, stages) <= min(ceiling, most or ceiling)
    largest = executors_wanted(bounded, COMBINE, Plan(epoch=1, p=4096, r=1))
    assert largest == most_executors(bounded, COMBINE), "the application may have what the largest plan needs"


@pytest.mark.parametrize(("reserve", "most", "wanted"), [(0, None, 3), (2, None, 5), (2, 4, 4)])
def test_a_reserve_stands_beside_what_the_plan_needs_within_the_bound(
    reserve: int, most: int | None, wanted: int
) -> None:
    one_more = settings(reserve_executors=reserve, max_executors=most)
    assert executors_wanted(one_more, FUSED, Plan(epoch=1, p=9, r=1)) == wanted
