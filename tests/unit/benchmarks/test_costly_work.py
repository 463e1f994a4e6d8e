"""Where balance decides: placements of others keep the contract, and the figures are those of telemetry."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.spark.costly_work import PLACEMENTS, against_mark, figures
from benchmarks.spark.habits import KeyGroups, Salting
from evenflow.partitioners import create
from evenflow.partitioners.registry import names
from evenflow.telemetry import BatchRecord, PartWork
from evenflow.testing import check_partitioner


@pytest.mark.parametrize("kind", [KeyGroups, Salting])
def test_placements_of_others_keep_the_contract_of_partitioners(kind: type) -> None:
    check_partitioner(kind)


def test_each_placement_names_a_partitioner_that_there_is() -> None:
    for name in PLACEMENTS.values():
        assert ":" in name or name in names()
        create(name, workers=8)


def test_a_salted_key_goes_to_as_many_workers_as_its_salts_name_and_a_key_of_a_group_to_one() -> None:
    keys = np.full(1_000, 7, np.uint64)
    times = np.zeros(1_000, np.int64)
    salted = create(Salting, workers=8).assign(keys, times)
    assert 1 < len(np.unique(salted)) <= 8
    assert (salted[:8] == salted[8:16]).all()
    assert len(np.unique(create(KeyGroups, workers=8).assign(keys, times))) == 1


def test_key_groups_are_ranges_so_that_each_worker_has_sixteen_of_128() -> None:
    keys = np.random.default_rng(1).integers(0, 2**63, 200_000).astype(np.uint64)
    shares = np.bincount(create(KeyGroups, workers=8).assign(keys, np.zeros(len(keys), np.int64))) / len(keys)
    assert shares == pytest.approx([1 / 8] * 8, rel=0.02)


def _record(*, duration_ms: int, loads: list[int]) -> BatchRecord:
    combine = PartWork(
        tasks=8,
        busy_ms=1.0,
        longest_ms=float(duration_ms - 100),
        rows=sum(loads),
        routed=[(worker, tuples, 1.0) for worker, tuples in enumerate(loads)],
    )
    reduce = PartWork(tasks=2, busy_ms=1.0, longest_ms=1.0, rows=40)
    return BatchRecord(
        query="q",
        fingerprint="0" * 16,
        time=0,
        stage="fused",
        batch=1,
        rows=8,
        duration_ms=duration_ms,
        batch_interval_ms=0,
        tuples=sum(loads),
        finished=1,
        parts={"combine": combine, "reduce": reduce},
    )


def test_figures_are_tuples_over_time_and_the_fullest_worker_over_the_mean() -> None:
    result = figures(
        [_record(duration_ms=1_000, loads=[10] * 8), _record(duration_ms=3_000, loads=[80] + [0] * 7)]
    )
    assert result["tuples_per_second"] == 40
    assert (result["fullest_worker"]["min"], result["fullest_worker"]["max"]) == (1, 8)
    assert result["partials"]["median"] == 40


def test_a_throughput_is_compared_with_that_of_perfect_balance_under_the_same_skew() -> None:
    rows = [
        {"zipf": 1.0, "placement": "shuffle", "tuples_per_second": 100},
        {"zipf": 1.0, "placement": "pkg", "tuples_per_second": 50},
        {"zipf": 2.0, "placement": "shuffle", "tuples_per_second": 80},
        {"zipf": 2.0, "placement": "pkg", "tuples_per_second": 20},
    ]
    assert [row["of_perfect"] for row in against_mark(rows)] == [1, 0.5, 1, 0.25]
