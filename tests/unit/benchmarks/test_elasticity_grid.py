"""The grid of loads: its tables stand in the guide as the kept figures say, and bear out what the guide
recommends.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import median

import pytest

from benchmarks.elasticity.grid.__main__ import FIGURES, PAGE, main
from benchmarks.elasticity.grid.loads import LOADS, STATED
from benchmarks.elasticity.grid.measuring import POLICIES, SEEDS, measure
from benchmarks.elasticity.grid.page import PARTS, RECOMMENDED, Grid
from evenflow import elasticity
from evenflow.elasticity.registry import built_in
from evenflow.settings.sections.control import ControlSettings

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def grid() -> Grid:
    kept: Grid = json.loads((ROOT / FIGURES).read_text())
    return kept


@pytest.mark.parametrize("part", PARTS)
def test_the_guide_has_the_tables_of_the_kept_figures(grid: Grid, part: str) -> None:
    page = (ROOT / PAGE).read_text()
    assert f"<!-- elasticity_grid {part} -->\n{PARTS[part](grid)}\n" in page, (
        "run python -m benchmarks.elasticity.grid"
    )


def test_every_policy_has_figures_of_every_load_and_seed(grid: Grid) -> None:
    assert set(grid) == set(POLICIES)
    assert {policy.partition(":")[0] for policy in POLICIES} == set(built_in())
    for row in grid.values():
        assert set(row) == {load.name for load in LOADS}
        assert all(len(values) == len(SEEDS) for figures in row.values() for values in figures.values())


def test_the_guide_recommends_exactly_one_policy_and_the_figures_bear_it_out(grid: Grid) -> None:
    assert re.findall(r"`([a-z0-9-]+)` \(recommended\)", (ROOT / PAGE).read_text()) == [RECOMMENDED]
    assert ControlSettings().policy == RECOMMENDED, "what runs if nothing is set"
    assert RECOMMENDED in elasticity.names()
    late = {policy: max(median(row[load]["late"]) for load in STATED) for policy, row in grid.items()}
    assert late[RECOMMENDED] <= 0.02
    assert sum(sum(figures["collapsed"]) for figures in grid[RECOMMENDED].values()) == 0
    for policy, share in late.items():
        if share <= late[RECOMMENDED]:
            units = [
                sum(median(row[load]["units"]) for load in STATED)
                for row in (grid[policy], grid[RECOMMENDED])
            ]
            assert units[0] >= units[1], f"{policy} is no later, and uses fewer units"


def test_the_bandit_that_is_offered_never_collapsed_and_the_papers_objective_did(grid: Grid) -> None:
    collapsed = {policy: sum(sum(f["collapsed"]) for f in row.values()) for policy, row in grid.items()}
    assert collapsed["mblinucb"] == 0
    assert collapsed["mblinucb:objective=paper"] > 0


def test_the_same_seed_gives_the_same_figures() -> None:
    first, again = (measure("ds2", LOADS[1], seeds=(1, 2), steps=30) for _ in range(2))
    assert first == again


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(SystemExit):
        main(["ds3"])
