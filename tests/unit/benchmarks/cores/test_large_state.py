"""Placements of keys whose states are large."""

from __future__ import annotations

from typing import Any

from benchmarks.cores.large_state import SKEWS, run
from benchmarks.spark.costly_work import PLACEMENTS
from evenflow.testing import check_aggregate


def test_the_histogram_obeys_the_laws_of_an_aggregate() -> None:
    check_aggregate("benchmarks.cores.large_state:Histogram(x, 16)")


def test_splitting_no_key_makes_fewest_partials_and_all_placements_have_the_same_results() -> None:
    """`run` itself compares the results with those of one worker."""
    rows: Any = run(smoke=True)["rows"]
    partials = {(row["zipf"], row["placement"]): row["partials"]["median"] for row in rows}
    assert set(partials) == {(zipf, title) for zipf in SKEWS for title in PLACEMENTS}
    for zipf in SKEWS:
        fewest = partials[zipf, "hash of the key"]
        assert fewest == partials[zipf, "128 key groups"]
        assert fewest < partials[zipf, "evenflow"] < partials[zipf, "shuffle"]
