"""How long loads take to be level again, by the slides of a course."""

from __future__ import annotations

import pytest

from benchmarks.fleet.course import LEVEL, recovery, zipf_law


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
