"""The share of a family's cases that `make test` runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.families import outside

NAMES = st.lists(st.text("abc[]-", min_size=1, max_size=12), unique=True, min_size=1, max_size=60)


@given(members=st.dictionaries(st.text(max_size=3), NAMES, max_size=4), parts=st.integers(1, 6))
def test_the_parts_of_a_family_are_together_all_of_its_cases(
    members: dict[str, list[str]], parts: int
) -> None:
    for cases in members.values():
        families = {"a test": cases}
        shown = [set(cases) - outside(families, 1 / parts, part) for part in range(parts)]
        assert set.union(*shown) == set(cases)
        # Each part has its share, and a family of few cases is never left out as a whole.
        assert all(max(1, len(cases) // parts) <= len(some) <= -(-len(cases) // parts) for some in shown)


def test_a_run_can_be_repeated_and_neighbours_fall_into_different_parts() -> None:
    cases = [f"test_law[{law}-{name}]" for law in range(10) for name in range(94)]
    one = outside({"test_law": cases}, 0.25)
    assert one == outside({"test_law": list(reversed(cases))}, 0.25)
    run = set(cases) - one
    assert len(run) == 235
    # Nearly every name is met by some law, and each law by many names.
    assert len({case.split("-")[1] for case in run}) > 85
    assert all(sum(case.startswith(f"test_law[{law}-") for case in run) > 10 for law in range(10))


def test_all_cases_run_unless_a_share_is_asked_for() -> None:
    assert outside({"a test": ["a", "b", "c"]}, 1.0) == set()


@pytest.mark.parametrize("share", [0.0, -1.0, 1.5])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(pytest.UsageError, match="EVENFLOW_FAMILIES is a share above 0 and up to 1"):
        outside({}, share)
