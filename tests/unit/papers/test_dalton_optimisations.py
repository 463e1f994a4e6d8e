"""Figures 7, 10, 11 and 12 of 000: kept times, the variants of Dalton, and their rates."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from benchmarks.partitioners.statistics import LAWS as TIMED_LAWS
from benchmarks.partitioners.statistics import WAYS as TIMED_WAYS
from benchmarks.partitioners.statistics import Counting
from evenflow.simulation import Scenario, entrant
from evenflow.simulation.streams import rank_hashes
from papers.cells.run_plan import StreamCache, full_plan, quick_plan
from papers.cells.store import Store
from papers.paper_000 import word_count
from papers.paper_000.overhead import heavy_hitters, kept_times, optimisations, statistics
from papers.paper_000.overhead.heavy_hitters import COMBINERS, DEFINED, KEYS, LIMITS, rule
from papers.paper_000.reducers import PLACES
from papers.paper_000.word_count import NON_HYBRID, TEXTS, WITH, WITHOUT, with_partitioner, word_cell
from papers.unit_costs import unit_costs

ROOT = Path(__file__).parents[3]
KEPT = Store(ROOT / "docs/reproducing/results.json").figures("windowed")
PLAN, FULL = quick_plan(Path(), 1), full_plan(Path(), 1)


@pytest.mark.parametrize("part", [statistics, heavy_hitters, optimisations])
def test_every_time_that_the_page_cites_is_kept_with_one_value_for_each_turn(part: object) -> None:
    cells = [cell for cell in part.cells(PLAN) if "times" in cell.experiment]  # type: ignore[attr-defined]
    assert cells
    for cell in cells:
        kept = kept_times.timed_values(cell)
        assert len(kept["ns"]) >= 9
        assert all(value > 0 for value in (*kept["ns"], *kept["MB"]))


def test_a_time_that_is_not_kept_is_an_error() -> None:
    cell = heavy_hitters.deciding_cells()[0]
    with pytest.raises(KeyError):
        kept_times.timed_values(replace(cell, workers=cell.workers + 1))


def test_the_kept_times_are_those_of_the_scenarios_settings() -> None:
    assert kept_times.LAWS == TIMED_LAWS
    assert kept_times.WAYS == TIMED_WAYS


@pytest.mark.parametrize("way", TIMED_WAYS)
def test_a_way_counts_all_tuples_and_hybrid_takes_the_sketch_behind_a_window_with_many_keys(
    way: str,
) -> None:
    keys = np.tile(rank_hashes(12_000), 3)
    counting = Counting(way, keys, 12_000)
    assert counting() > 0
    assert counting.by_sketch == (way != "exact")
    few = Counting(way, rank_hashes(100), 50)
    assert few.by_sketch == (way == "sketch")


def test_the_definition_makes_four_keys_hot_and_other_thresholds_about_as_many_as_they_say() -> None:
    shares = 1 / np.arange(1, KEYS + 1)
    shares /= shares.sum()
    assert (shares >= 1 / COMBINERS).sum() == DEFINED
    for limit in LIMITS:
        if limit != DEFINED:
            theta = float(rule(limit).partition("=")[2])
            assert (shares >= theta).sum() == limit


def test_a_partitioner_in_front_only_ever_lowers_a_rate() -> None:
    assert with_partitioner([1.0, 30.0], 100.0) == [1.0, 10.0]


@pytest.mark.parametrize("stream", TEXTS)
def test_the_drawn_texts_have_the_published_share_of_the_most_frequent_key(stream: str) -> None:
    keys, zipf = TEXTS[stream]
    p1 = 1 / (np.arange(1, keys + 1) ** -zipf).sum()
    assert p1 == pytest.approx(
        {"T4SA, drawn": 0.0269, "Elections, drawn": 0.072}.get(stream, 0.3845), rel=0.01
    )


@pytest.mark.parametrize("places", [8, 64])
def test_the_non_hybrid_variant_decides_for_every_tuple_and_splits_more_keys(places: int) -> None:
    at = {name: word_cell(PLAN, "Zipf 1.5", places, name) for name in ("dalton", NON_HYBRID)}
    result = {}
    for name, cell in at.items():
        stream = StreamCache(cell.stream, PLAN).at()
        scenario = Scenario(workers=cell.workers, window_ms=100, slide_ms=10)
        (partitioner,) = scenario.partitioners(entrant(name), stream)
        partitioner.assign(stream.keys, stream.times)
        result[name] = partitioner.observe().head_keys
        assert set(word_count.measure(cell, StreamCache(cell.stream, PLAN), PLAN)) >= {WITH, WITHOUT, "ksr"}
    assert result["dalton"] < result[NON_HYBRID]
    last = stream.times > stream.times[-1] - 100
    assert result[NON_HYBRID] >= len(np.unique(stream.codes[last]))


def test_forwarding_is_never_slower_on_the_kept_rates_of_texts_with_many_keys() -> None:
    for stream, places in product(("T4SA, drawn", "Elections, drawn"), PLACES):
        cell = word_cell(FULL, stream, places, "dalton")
        assert KEPT.median(cell, WITH) >= KEPT.median(cell, WITHOUT)


def test_rates_of_the_kept_page_stay_below_what_combiners_alone_allow() -> None:
    """A combiner folds each tuple, so no rate is above combiners over the cost of a tuple."""
    for stream, places in product(TEXTS, PLACES):
        cell = word_cell(FULL, stream, places, "shuffle")
        assert median(KEPT.values(cell, WITHOUT)) <= 1e3 * cell.workers / unit_costs().tuple
