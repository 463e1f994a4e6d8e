"""Lists and ranges mean what a person reads in them, and anything else is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError
from evenflow.sweep.ranges import decimals, whole_numbers
from tests.examples import examples


@given(
    first=st.integers(-500, 500), count=st.integers(1, 40), step=st.integers(1, 30), beyond=st.integers(0, 29)
)
@examples(100)
def test_a_range_has_every_step_from_its_first_number_to_its_last(
    first: int, count: int, step: int, beyond: int
) -> None:
    last = first + (count - 1) * step + beyond % step
    expected = tuple(range(first, last + 1, step))
    assert whole_numbers("--x", f"{first}:{last}:{step}") == expected
    assert len(expected) == count
    if step == 1:
        assert whole_numbers("--x", f"{first}:{last}") == expected


@given(numbers=st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=30, unique=True))
@examples(100)
def test_a_list_has_its_numbers_in_its_order(numbers: list[int]) -> None:
    assert whole_numbers("--x", ",".join(map(str, numbers))) == tuple(numbers)
    assert whole_numbers("--x", " , ".join(map(str, numbers))) == tuple(numbers)


@given(first=st.integers(0, 50), count=st.integers(1, 30), step=st.integers(1, 25))
@examples(100)
def test_decimal_steps_do_not_drift(first: int, count: int, step: int) -> None:
    last = first + (count - 1) * step
    result = decimals("--zipf", f"{first / 100}:{last / 100}:{step / 100}")
    assert result == tuple((first + at * step) / 100 for at in range(count))


def test_lists_and_ranges_may_be_mixed() -> None:
    assert whole_numbers("--x", "1:3,8:24:8,100") == (1, 2, 3, 8, 16, 24, 100)
    assert whole_numbers("--x", "1e2") == (100,)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "'' is neither a number nor a range"),
        ("1,,2", "'' is neither a number nor a range"),
        ("1:2:3:4", "'1:2:3:4' is neither"),
        ("9:1", "the range '9:1' descends"),
        ("1:9:0", "the step of '1:9:0' is not more than 0"),
        ("1:9:-1", "the step of '1:9:-1' is not more than 0"),
        ("1:", "'' is not a number"),
        ("many", "'many' is not a number"),
        ("nan", "'nan' is out of range"),
        ("1e99", "'1e99' is out of range"),
        ("1:1e9", "more than 100,000 numbers"),
        ("1:5,3", "3 is given twice"),
        ("1,1.0", "1.0 is given twice"),
        ("1.5", "1.5 is not a whole number"),
        ("1:2:0.5", "1.5 is not a whole number"),
    ],
)
def test_anything_else_is_refused_with_what_is_wrong(text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        whole_numbers("--workers", text)
    assert expected in caught.value.message
    assert caught.value.message.startswith("--workers: ")
    assert caught.value.hint
