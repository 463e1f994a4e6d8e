"""Scaling out sooner: the tables stand in the guide as the kept figures say, and bear out what it says."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

import pytest

from benchmarks.elasticity.grid.page import RECOMMENDED
from benchmarks.elasticity.scale_out.__main__ import FIGURES, PAGE, main
from benchmarks.elasticity.scale_out.measuring import POLICY, SEEDS, VARIANTS, measure
from benchmarks.elasticity.scale_out.page import PARTS, Runs
from workbench.elastic import SHAPES

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def runs() -> Runs:
    kept: Runs = json.loads((ROOT / FIGURES).read_text())
    return kept


@pytest.mark.parametrize("part", PARTS)
def test_the_guide_has_the_tables_of_the_kept_figures(runs: Runs, part: str) -> None:
    page = (ROOT / PAGE).read_text()
    assert f"<!-- elasticity_scale_out {part} -->\n{PARTS[part](runs)}\n" in page, (
        "run python -m benchmarks.elasticity.scale_out"
    )


def test_every_variant_has_figures_of_every_shape_and_seed_and_is_of_the_recommended_policy(
    runs: Runs,
) -> None:
    assert POLICY == RECOMMENDED
    assert set(runs) == {variant.name for variant in VARIANTS}
    for row in runs.values():
        assert set(row) == set(SHAPES)
        assert all(len(values) == len(SEEDS) for figures in row.values() for values in figures.values())


def test_one_executor_in_reserve_meets_the_goal_with_every_seed(runs: Runs) -> None:
    reserve = runs["reserve"]
    for shape in ("spike", "flash-crowd"):
        assert max(reserve[shape]["overloaded"]) <= 0.12
        assert max(reserve[shape]["p99"]) < 10
    assert max(late for figures in reserve.values() for late in figures["late"]) == 0
    assert max(p99 for figures in reserve.values() for p99 in figures["p99"]) <= 9.95
    assert max(share for figures in reserve.values() for share in figures["overloaded"]) <= 0.16
    assert median(runs["as it is"]["spike"]["overloaded"]) > 0.12, "without one it is missed"


def test_a_flash_crowd_needs_a_partitioner_that_splits_its_hot_key(runs: Runs) -> None:
    hashing = runs["reserve, hashing"]
    assert min(hashing["flash-crowd"]["overloaded"]) > 0.4 > 0.1 > max(hashing["spike"]["overloaded"])
    assert min(hashing["flash-crowd"]["p99"]) > max(runs["reserve"]["flash-crowd"]["p99"])


def test_a_forecast_halves_the_overload_of_the_spike_and_misses_the_goal_by_itself(runs: Runs) -> None:
    before, after = (median(runs[name]["spike"]["overloaded"]) for name in ("as it is", "forecast"))
    assert 0.12 < after < before / 2
    before, after = (median(runs[name]["staircase"]["overloaded"]) for name in ("as it is", "forecast"))
    assert after < 0.3 * before


def test_a_bound_changes_nothing_with_a_reserve_and_needs_an_exact_capacity_without_one(runs: Runs) -> None:
    def p99(name: str, shape: str) -> float:
        return median(runs[name][shape]["p99"])

    for shape in SHAPES:
        assert p99("reserve, bound 1", shape) == pytest.approx(p99("reserve", shape), abs=0.1)
        assert p99("bound 0.8", shape) > p99("as it is", shape)
    assert p99("bound 1", "spike") < p99("bound 1.25", "spike") < p99("as it is", "spike")
    assert max(runs["bound 0.8"]["spike"]["late"]) > 0
    for shape in ("staircase", "sine"):
        assert p99("bound 1, 1 s to switch", shape) > p99("as it is", shape)


def test_the_kept_figures_are_what_a_run_gives(runs: Runs) -> None:
    again = measure(VARIANTS[1], "spike", seeds=SEEDS[:2])
    assert again == {name: values[:2] for name, values in runs["reserve"]["spike"].items()}


def test_a_quick_run_prints_the_tables_and_writes_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["--quick"]) == 0
    assert "| reserve, forecast |" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
