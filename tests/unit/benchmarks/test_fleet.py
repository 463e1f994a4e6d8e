"""How long loads take to be level again, by the slides of a course, and the tables of that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.fleet.__main__ import PAGE
from benchmarks.fleet.course import LEAST, LEVEL, beside_others, levels, recovery, zipf_law
from benchmarks.fleet.tables import PARTS, instances_table
from benchmarks.fleet.virtual import played

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("after", "slides"),
    [
        ([0.01] * 6, 0),
        ([0.05, 0.03, 0.01, 0.01, 0.01, 0.01], 2),
        ([0.05] * 6, 6),
        ([0.01, 0.01, 0.05, 0.01, 0.01, 0.01], 3),
        ([0.01 * LEVEL] * 6, 0),
    ],
)
def test_loads_are_level_again_once_the_rest_of_the_phase_is_as_level_as_before_on_average(
    after: list[float], slides: int
) -> None:
    assert recovery([0.9, *[0.01] * 6, *after], 7, len(after)) == slides


def test_a_zipf_law_sums_to_one_and_falls_by_its_exponent() -> None:
    law = zipf_law(1_000, 1.5)
    assert law.sum() == pytest.approx(1)
    assert law[3] / law[1] == pytest.approx(2**-1.5)


def a_course(seed: int, *, before: float, after: float, title: str = "evenflow") -> dict[str, Any]:
    """Two phases of twelve slides. In the second one windows are level again after its third slide."""
    windows = [before] * 12 + [after] * 3 + [before] * 9
    return {
        "title": title,
        "seed": seed,
        "length": 12,
        "events": {"": 0, "shift": 12},
        "windows": windows,
        "rounds": [3, None],
    }


def test_levels_are_of_the_windows_before_an_event_and_of_its_phase_with_and_without_a_floor() -> None:
    result = levels(a_course(1, before=LEAST / 10, after=LEAST / 2), "shift")
    assert result.before == pytest.approx(LEAST / 10)
    assert (result.greatest, result.after) == (LEAST / 2, pytest.approx(LEAST / 10))
    assert (result.again, result.without_least) == (0, 3)


def test_a_table_has_one_row_for_all_seeds_of_an_event_from_the_smallest_to_the_greatest() -> None:
    rows = [a_course(seed, before=0.01 * seed, after=0.2) for seed in (1, 2, 3)]
    line = instances_table(rows).splitlines()[-1]
    assert line == "| `evenflow` | shift | 3 | 0.010 to 0.030 | 0.200 | 0.010 to 0.030 | 3 | 3 |"


def test_a_run_keeps_the_rows_of_other_seeds_beside_its_own(tmp_path: Path) -> None:
    first, again, other = (
        a_course(seed, before=0.1, after=at) for seed, at in ((1, 0.2), (1, 0.3), (0, 0.2))
    )
    picture = tmp_path / "course.svg"
    assert beside_others([first], picture) == [first]
    picture.with_suffix(".json").write_text(json.dumps([first]))
    assert beside_others([again, other], picture) == [other, again]


def test_windows_of_evenflow_are_level_again_within_three_slides_in_virtual_time() -> None:
    row = played("evenflow", 3)
    assert max(levels(row, event).again for event, at in row["events"].items() if at) <= 3


@pytest.mark.parametrize("name", PARTS)
def test_the_page_has_the_tables_of_the_kept_courses(name: str) -> None:
    rows = json.loads((ROOT / PAGE.with_suffix("") / f"{name}.json").read_text())
    assert f"<!-- fleet {name} -->\n{PARTS[name](rows)}\n" in (ROOT / PAGE).read_text(), (
        "run python -m benchmarks.fleet"
    )
