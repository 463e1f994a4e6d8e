"""Placements of keys whose states are large."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.cores.large_state import COST_US, HASHED_HOMES, SKEWS, run
from benchmarks.spark.costly_work import PLACEMENTS
from evenflow.testing import check_aggregate


def test_the_histogram_obeys_the_laws_of_an_aggregate() -> None:
    check_aggregate("benchmarks.cores.large_state:Histogram(x, 16)")


def test_splitting_no_key_makes_fewest_partials_and_all_placements_have_the_same_results() -> None:
    """`run` itself compares the results with those of one worker."""
    rows: Any = run(smoke=True)["rows"]
    partials = {(row["zipf"], row["placement"]): row["partials"]["median"] for row in rows}
    assert set(partials) == {(zipf, title) for zipf in SKEWS for title in (*PLACEMENTS, HASHED_HOMES)}
    for zipf in SKEWS:
        fewest = partials[zipf, "hash of the key"]
        assert fewest == partials[zipf, "128 key groups"]
        assert fewest < partials[zipf, HASHED_HOMES] < partials[zipf, "shuffle"]
        assert fewest < partials[zipf, "evenflow"] < partials[zipf, "shuffle"]


def test_the_time_of_the_slowest_worker_is_a_measured_and_a_counted_part() -> None:
    rows: Any = run(smoke=True)["rows"]
    for row in rows:
        parts = row["slowest_worker_measured_s"]["median"] + row["slowest_worker_counted_s"]["median"]
        assert row["slowest_worker_s"]["median"] == pytest.approx(parts, abs=0.002)
        assert row["counted_s"]["median"] == pytest.approx(2_000 * COST_US / 1e6)


def test_the_rows_of_evenflow_have_the_goal() -> None:
    rows: Any = run(smoke=True)["rows"]
    assert {row["placement"] for row in rows if "goal" in row} == {"evenflow", HASHED_HOMES}
