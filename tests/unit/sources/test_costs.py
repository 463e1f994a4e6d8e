"""A column of numbers as costs: what is rounded, what is cut off, and what is said of it."""

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError
from evenflow.partitioners.costs import MAX_COST, checked_costs
from evenflow.sources.costs import CostColumn, cost_column, in_settings


def read(values: object) -> CostColumn:
    return cost_column(pa.chunked_array([values]), name="bytes", where="orders.csv")


@given(st.lists(st.one_of(st.none(), st.floats(), st.floats(0, 9), st.integers(-3, 2_000_000).map(float))))
def test_every_column_of_numbers_becomes_costs_that_a_partitioner_takes(drawn: list[float | None]) -> None:
    result = read(pa.array(drawn, pa.float64()))
    assert checked_costs(result.costs, len(drawn)).tolist() == [_cost(value) for value in drawn]
    known = [value for value in drawn if value is not None and value == value]
    rounded = [np.rint(value) for value in known]
    assert result.low == len(drawn) - len(known) + sum(value < 1 for value in rounded)
    assert result.high == sum(value > MAX_COST for value in rounded)
    pairs = zip(known, rounded, strict=True)
    assert result.rounded == sum(1 <= whole <= MAX_COST and value != whole for value, whole in pairs)


def _cost(value: float | None) -> int:
    if value is None or math.isnan(value) or value < 1:
        return 1
    return MAX_COST if value > MAX_COST else round(value)


@given(st.lists(st.integers(1, MAX_COST), min_size=1))
def test_costs_are_the_same_as_integers_decimals_and_texts(drawn: list[int]) -> None:
    columns = [
        pa.array(drawn, pa.int64()),
        pa.array(drawn, pa.uint32()),
        pa.array([Decimal(cost) for cost in drawn], pa.decimal128(20, 2)),
        pa.array([f" {cost}" for cost in drawn]),
        pa.array([f"{cost}.0" for cost in drawn], pa.large_string()).dictionary_encode(),
    ]
    for column in columns:
        result = read(column)
        assert result.costs.tolist() == drawn
        assert (result.rounded, result.low, result.high) == (0, 0, 0)


def test_what_was_changed_is_said_once_with_counts() -> None:
    assert read(pa.array(["2.5", "", "0.4", "-7", "3", "2e9"])).remarks == (
        (
            "values of the cost column 'bytes' were changed: 1 rounded to whole numbers; 3 below 1 or"
            " missing, which count as 1; 1 above 1,000,000, which count as 1,000,000 (a larger unit would"
            " tell them apart)"
        ),
    )
    assert read(pa.array([2, 3])).remarks == ()
    assert read(pa.array([], pa.int64())).remarks == ()


def test_costs_that_are_all_equal_are_named() -> None:
    assert read(pa.array([7, 7, 7])).same == 7
    assert read(pa.array([7, 7, 8])).same is None
    (sentence,) = read(pa.array([7, 7])).remarks
    assert sentence == "every tuple has the cost 7 in 'bytes', so weighing changes nothing"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pa.array(["3", "", "n/a", "x"]), "the cost column 'bytes' holds 'n/a', which is not a number"),
        (pa.array([True, False]), "the cost column 'bytes' holds bool, not numbers"),
        (pa.array([None, None]), "the cost column 'bytes' holds null, not numbers"),
        (pa.array([{"a": 1}]), "the cost column 'bytes' holds struct<a: int64>, not numbers"),
        (pa.array(np.array([1], "datetime64[s]")), "holds timestamp"),
    ],
)
def test_a_column_without_numbers_is_refused(values: pa.Array, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read(values)


@pytest.mark.parametrize(
    ("column", "expected"),
    [("ms", "ms"), ("user.bytes", "user.bytes"), ("unit price", '"unit price"'), ('a"b', '"a""b"')],
)
def test_a_name_that_is_not_plain_stands_in_quotes_in_the_settings(column: str, expected: str) -> None:
    assert in_settings(column) == expected
