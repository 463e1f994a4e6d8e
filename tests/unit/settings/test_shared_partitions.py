"""How many workers there can be, and how many routed partitions they have."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.elasticity.demand import needed_executors
from evenflow.errors import ConfigError
from evenflow.settings import Settings, load_settings
from evenflow.settings.sections.sharing import (
    LEAST_BUCKETS,
    MOST_ALONE,
    MOST_BUCKETS,
    MOST_SHARED,
    chosen_buckets,
    chosen_partitions,
)


def of(spark: dict[str, Any] | None = None, **partitioner: Any) -> Settings:
    return load_settings(partitioner=partitioner, spark=spark or {}, input={"partitions": 4})


@given(st.integers(1, 1_024))
def test_chosen_partitions_have_about_the_same_number_of_workers(workers: int) -> None:
    partitions = chosen_partitions(workers)
    most, least = -(-workers // partitions), workers // partitions
    assert most - least <= 1
    if workers <= MOST_ALONE:
        assert partitions == workers
    else:
        assert 43 <= partitions <= MOST_SHARED


@pytest.mark.parametrize(
    ("settings", "most", "partitions", "together"),
    [
        ({"workers": 8}, 8, 8, 1),
        ({"workers": 8, "routed_partitions": 12}, 12, 12, 1),
        ({"workers": 8, "routed_partitions": 3}, 8, 3, 3),
        ({"workers": 8, "max_workers": 20}, 20, 20, 1),
        ({"workers": 8, "max_workers": 20, "routed_partitions": 10}, 20, 10, 2),
        ({"workers": 128}, 128, 128, 1),
        ({"workers": 129}, 129, 43, 3),
        ({"workers": 1_000}, 1_000, 63, 16),
        ({"workers": 8, "max_workers": 1_024}, 1_024, 64, 16),
        ({"workers": 1_000, "routed_partitions": 1_000}, 1_000, 1_000, 1),
    ],
)
def test_workers_and_partitions_that_are_not_set_follow_those_that_are(
    settings: dict[str, Any], most: int, partitions: int, together: int
) -> None:
    made = of(**settings)
    assert (made.max_workers, made.routed_partitions, made.workers_per_partition) == (
        most,
        partitions,
        together,
    )


@given(st.integers(1, 5_000))
def test_chosen_buckets_grow_with_the_workers_within_their_bounds(workers: int) -> None:
    buckets = chosen_buckets(workers)
    assert LEAST_BUCKETS <= buckets <= MOST_BUCKETS
    assert buckets <= chosen_buckets(workers + 1)
    assert buckets in (LEAST_BUCKETS, MOST_BUCKETS) or 0 <= 16 * buckets - workers < 16


@pytest.mark.parametrize(
    ("settings", "spark", "buckets"),
    [
        ({"workers": 8}, {}, 2),
        ({"workers": 32}, {}, 2),
        ({"workers": 8, "max_workers": 64}, {}, 4),
        ({"workers": 1_000}, {}, 63),
        ({"workers": 1_000}, {"buckets": 5}, 5),
    ],
)
def test_buckets_that_are_not_set_follow_the_largest_number_of_workers(
    settings: dict[str, Any], spark: dict[str, Any], buckets: int
) -> None:
    made = of(spark, **settings)
    assert (made.bucket_count, made.reducers, made.buckets.number) == (buckets, buckets, buckets)
    assert made.identity()["spark"] == {"buckets": buckets}


def test_what_spark_is_asked_for_is_no_part_of_what_a_query_is() -> None:
    assert of(spark={"partitions_per_slot": 1}, workers=1_000).fingerprint == of(workers=1_000).fingerprint


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"workers": 5, "max_workers": 4}, "workers.*5.*exceeds partitioner.max_workers .4."),
        ({"workers": 2, "max_workers": 4, "routed_partitions": 6}, "2 partitions would never have a worker"),
        ({"workers": 2_000}, "more than the 1,024 workers"),
        ({"max_workers": 1_025}, "less than or equal to 1024"),
    ],
)
def test_numbers_that_do_not_fit_are_refused_with_what_is_wrong(
    settings: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        of(**settings)


def test_what_is_shared_is_part_of_the_query_and_queries_that_share_nothing_are_what_they_were() -> None:
    alone = of(workers=6)
    assert "max_workers" not in alone.identity()["partitioner"]
    shared = of(workers=6, routed_partitions=3)
    assert shared.identity()["partitioner"] == {"routed_partitions": 3, "max_workers": 6}
    assert of(workers=2, routed_partitions=3, max_workers=6).fingerprint == shared.fingerprint
    assert of(workers=3, routed_partitions=3).fingerprint != shared.fingerprint


@pytest.mark.parametrize(
    ("began", "now", "lines"),
    [
        (
            {"workers": 200, "routed_partitions": 200},
            {"workers": 200},
            ["routed_partitions: 200 -> 50 (to go on: max_workers = 200, routed_partitions = 200)"],
        ),
        (
            {"workers": 200, "routed_partitions": 200},
            {"workers": 100},
            [
                "max_workers: 200 -> 100 (to go on: max_workers = 200, routed_partitions = 200)",
                "spark.buckets: 13 -> 7 (to go on: spark.buckets = 13)",
            ],
        ),
        (
            {"workers": 3},
            {"workers": 4},
            ["max_workers: 3 -> 4 (to go on: max_workers = 3, routed_partitions = 3, workers at most 3)"],
        ),
        (
            {"workers": 8, "routed_partitions": 3},
            {"workers": 6, "routed_partitions": 3},
            ["max_workers: 8 -> 6 (to go on: max_workers = 8, routed_partitions = 3)"],
        ),
        (
            {"routed_partitions": 12},
            {"routed_partitions": 24},
            ["routed_partitions: 12 -> 24 (to go on: max_workers = 12, routed_partitions = 12)"],
        ),
        (
            {"workers": 4, "routed_partitions": 12},
            {"workers": 4, "max_workers": 8, "routed_partitions": 8},
            ["max_workers: 12 -> 8", "routed_partitions: 12 -> 8"],
        ),
        (
            {"workers": 12, "routed_partitions": 8},
            {"workers": 8},
            ["max_workers: 12 -> 8 (to go on: max_workers = 12, routed_partitions = 8)"],
        ),
        ({"workers": 8, "max_workers": 64}, {"workers": 5, "max_workers": 64}, []),
    ],
)
def test_a_query_that_began_with_other_numbers_is_told_what_to_set_to_go_on(
    began: dict[str, Any], now: dict[str, Any], lines: list[str]
) -> None:
    first = of(**began)
    changed = [line.replace("partitioner.", "") for line in of(**now).changes_since(first.identity())]
    assert changed == lines
    if lines and "to go on" in lines[0]:
        numbers = {"max_workers": first.max_workers, "routed_partitions": first.routed_partitions}
        back = of(**now | numbers | {"workers": min(now.get("workers", 8), first.max_workers)})
        assert back.changes_since(first.identity()) == []


@pytest.mark.parametrize("number", [None, True, 0, -1, 10**9, 1.5, "x" * 10_000, [1], [[1]], {"a": 1}])
def test_an_identity_with_numbers_that_cannot_be_is_a_change_like_any_other(number: Any) -> None:
    for name in ("max_workers", "routed_partitions"):
        identity = of(workers=8, routed_partitions=3).identity()
        identity["partitioner"][name] = number
        lines = of(workers=8).changes_since(identity)
        assert lines
        assert not any("to go on" in line for line in lines)


def test_workers_that_share_a_partition_share_a_core() -> None:
    cluster = {"master": "spark://host:7077", "executor_cores": 1}

    def executors(p: int, spark: dict[str, Any] | None = None, **partitioner: Any) -> int:
        return needed_executors(of(spark={**cluster, **(spark or {})}, **partitioner), ["combine"], p=p, r=1)

    assert executors(1_000, workers=1_000) == 63, "a core for each routed partition"
    assert executors(32, workers=1_000) == 8
    assert executors(8, workers=8) == executors(8, workers=8, max_workers=1_000) == 2
    assert executors(8, {"partitions_per_slot": 1}, workers=8, routed_partitions=2) == 2, "one a partition"
