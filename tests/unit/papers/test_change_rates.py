"""Throughput while keys change (figures 9a and 9d of 000): what a cell gives, and which slides count."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from papers.cells.run_plan import RunPlan, StreamCache
from papers.drawn_streams import TURNS
from papers.paper_000.change_rates import PERIOD, PERIODS, cells, measure, rate_cell
from papers.paper_000.grid import SLIDES
from papers.paper_000.word_count import MEASURED, slide_tuples

PLAN = RunPlan("quick", (1,), Path())


def test_windows_of_the_slides_that_count_lie_within_a_period() -> None:
    assert SLIDES + MEASURED <= PERIOD
    stream = rate_cell(PLAN, "by-turns", "hashing").stream
    codes = stream.opened(Path()).codes
    slide = slide_tuples(PLAN)
    shares = []
    for end in range(2 * PERIOD, (TURNS + 1) * PERIOD, PERIOD):
        counted = np.bincount(codes[(end - SLIDES - MEASURED) * slide : end * slide])
        shares.append(counted.max() / counted.sum())
    assert all(share > 0.3 for share in shares[::2]), "Zipf 1.5"
    assert all(share < 0.02 for share in shares[1::2]), "uniform"


@pytest.mark.parametrize("stream", PERIODS)
def test_a_cell_has_a_rate_for_each_of_twice_the_seeds(stream: str) -> None:
    for rule in ("hashing", "dalton"):
        cell = rate_cell(PLAN, stream, rule)
        assert cell in cells(PLAN)
        result = measure(cell, StreamCache(cell.stream, PLAN), PLAN)
        assert set(result) == {"ours"} | ({"skewed", "flat"} if stream == "by-turns" else {"all"})
        assert all(len(series) == 2 and min(series) > 0 for series in result.values())


def test_the_exponents_are_drawn_anew_with_each_seed() -> None:
    stream = rate_cell(PLAN, "random-zipf", "hashing").stream
    one, other = (stream.opened(Path(), seed=seed).codes for seed in (1, 2))
    assert np.bincount(one).max() != np.bincount(other).max()
