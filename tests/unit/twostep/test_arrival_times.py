"""When tuples came: no row is lost, no time moves forward, and there are never more than a few times."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evenflow.twostep.arrival_times import MOST, count_arrivals, merge_arrivals

Rows = list[tuple[int | None, int]]
ROWS = st.lists(st.tuples(st.none() | st.integers(0, 2**62), st.integers(0, 1_000)), max_size=300)


@given(ROWS, ROWS)
def test_rows_are_kept_and_times_only_rounded_down(
    one: list[tuple[int | None, int]], other: list[tuple[int | None, int]]
) -> None:
    both = merge_arrivals(count_arrivals(one), count_arrivals(other))
    known = sorted((came, rows) for came, rows in [*one, *other] if came is not None and rows)
    assert len(both) <= MOST
    assert sum(both.values()) == sum(rows for _, rows in known)
    for bound in both:
        assert sum(n for came, n in both.items() if came <= bound) >= sum(
            n for came, n in known if came <= bound
        )


def test_a_few_times_are_rounded_to_a_tenth_of_a_second() -> None:
    assert count_arrivals([(1_234, 5), (1_299, 1), (1_300, 2), (None, 9), (7, 0)]) == {1_200: 6, 1_300: 2}
