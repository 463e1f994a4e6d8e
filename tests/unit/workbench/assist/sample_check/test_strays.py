"""Times of another unit and of wrong clocks: they are named, and no proposal counts them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.settings import Query, Settings
from evenflow.settings.durations import parse_duration
from tests.examples import examples
from tests.unit.workbench.assist.sample_check.samples import NOW, look, named, order, sample
from workbench.assist.sample_check.guess import starting_file
from workbench.assist.sample_check.order import acceptable
from workbench.assist.sample_check.sample import Stretch, TopicRecords

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
MANY = 300


def orders(**strays: int) -> list[dict[str, Any]]:
    """Orders in time. strays: `o17=...` is the time of order 17."""
    rows = [order(number) for number in range(MANY)]
    for name, time in strays.items():
        rows[int(name[1:])]["at"] = time
    return rows


@pytest.mark.parametrize(
    ("rows", "query", "said"),
    [
        (
            orders(o40=NOW // 1000, o90=NOW // 1000),
            {},
            "2 of 300 times (0.7 %) are in s, not ms, e.g. offset 40 ",
        ),
        (
            orders(o40=NOW * 1000),
            {},
            "1 of 300 times (0.3 %) are in us, not ms, e.g. offset 40 of partition 0",
        ),
        (orders(o0=NOW // 1000), {}, "1 of 300 times (0.3 %) are in s, not ms, e.g. offset 0 of partition 0"),
        (orders(o40=NOW - 30 * DAY), {}, "1 of 300 times (0.3 %) come far behind 2027-01-15 07:43:20 UTC"),
        (
            orders(o40=NOW + 30 * MINUTE),
            {},
            "1 of 300 times (0.3 %) lie far ahead of 2027-01-15 07:43:22.990 UTC",
        ),
        (
            [row | {"at": row["at"] / 1000} for row in orders(o40=NOW * 1000)],
            {"time_unit": "s"},
            "1 of 300 times (0.3 %) are in ms, not s, e.g. offset 40 of partition 0",
        ),
    ],
)
def test_strays_are_named_with_their_cause_share_and_an_example(
    rows: list[dict[str, Any]], query: dict[str, Any], said: str
) -> None:
    result = look(sample(rows), query=query)
    (strays,) = named(result, "strays")
    assert strays.what.startswith(said)
    assert '{"user": "u0", "amount"' in strays.what
    assert (strays.status, result.problems, result.proposal) == ("warning", [], {})
    assert "stray" in result.summary()
    assert "1970" not in result.summary()


def test_what_lies_apart_but_in_order_is_no_stray() -> None:
    yesterday = [order(number) | {"at": NOW - DAY + number} for number in range(40)]
    result = look(sample(yesterday + orders()))
    assert named(result, "strays") == []
    assert [one.status for one in named(result, "order")] == ["ok"]


def test_numbered_tuples_have_no_unit_to_stray_from() -> None:
    rows = [order(number, at=number) for number in range(MANY)]
    assert named(look(sample(rows)), "strays") == []


def test_the_proposal_says_how_many_tuples_it_loses() -> None:
    rows = orders(o100=NOW // 1000, o200=NOW // 1000)
    for number in range(50, MANY, 10):
        rows[number]["at"] -= 0 if number in (100, 200) else 3_000
    result = look(sample(rows))
    (found_order,) = named(result, "order")
    assert result.proposal == {"query": {"out_of_orderness": "5s"}}
    assert 'set query.out_of_orderness = "5s": it loses 2 tuples of this sample' in found_order.do
    assert found_order.what.endswith("would be rejected as late; the furthest is 3 s behind")


def test_a_first_settings_file_says_what_its_out_of_orderness_loses() -> None:
    rows = [order(number, at=NOW - HOUR + 1_000 * number) for number in range(MANY)]
    for number in range(100, MANY, 10):
        rows[number]["at"] -= 90_000
    rows[150]["at"] = rows[250]["at"] = NOW // 1000
    lines = starting_file(Settings(), sample(rows), now=NOW).splitlines()
    (line,) = (line for line in lines if line.startswith("out_of_orderness"))
    assert line == 'out_of_orderness = "2m"  # loses 2 tuples of the sample; results come that much later'


@pytest.mark.parametrize(
    ("window", "most"),
    [("1s", MINUTE), ("6s", MINUTE), ("1m", 10 * MINUTE), ("1h", 6 * HOUR), ("1d", 10 * DAY)],
)
def test_what_is_proposed_stays_within_ten_windows_or_a_minute(window: str, most: int) -> None:
    query = Query(window=window)
    assert acceptable(query) == most
    rows = orders()
    for number, row in enumerate(rows):  # every second tuple comes from long ago: no body, and no stray
        row["at"] = NOW - 2_000 * DAY * (number % 2) - (MANY - number) * DAY
    result = look(sample(rows), query={"window": window})
    proposed = result.proposal.get("query", {}).get("out_of_orderness", "0ms")
    assert parse_duration(proposed) <= most
    assert named(result, "strays") == []
    (found_order,) = named(result, "order")
    assert "keeps more of them: look at their producers" in found_order.do


@examples(100)
@given(
    shifts=st.lists(st.integers(0, 20_000), min_size=4, max_size=60),
    strays=st.lists(
        st.tuples(st.integers(0, 59), st.integers(5 * MINUTE, 2**50), st.booleans()), max_size=19
    ),
)
def test_fewer_strays_than_a_third_of_any_size_change_no_proposal(
    shifts: list[int], strays: list[tuple[int, int, bool]]
) -> None:
    rows = [order(number) for number in range(len(shifts))]
    for row, shift in zip(rows, shifts, strict=True):
        row["at"] -= shift
    alone = look(sample(rows)).proposal.get("query", {}).get("out_of_orderness")
    mixed = list(rows)
    for place, size, ahead in strays[: (len(rows) - 1) // 2]:  # fewer than half as many as the others
        mixed.insert(place, order(0) | {"at": NOW + (size if ahead else -size - HOUR)})
    result = look(sample(mixed))
    assert result.proposal.get("query", {}).get("out_of_orderness") == alone
    assert alone is None or parse_duration(alone) <= acceptable(result.settings.query)


def test_a_wrong_unit_is_refused_by_the_majority() -> None:
    few = [order(number) | {"at": (NOW + number) // 1000} for number in range(40)]
    result = look(sample(few + orders()), query={"time_unit": "s"})
    (unit,) = named(result, "time")
    assert unit.status == "problem"
    assert unit.what.startswith("column 'at' read as s gives times at the year 5")
    assert unit.what.endswith("in 300 of 340 records")
    assert result.proposal == {"query": {"time_unit": "ms"}}
    assert look(sample(few + orders())).problems == []
    assert look(sample(few * 10 + orders())).proposal["query"]["time_unit"] == "s"


def test_records_of_which_most_are_unreadable_are_a_problem() -> None:
    rows: list[Any] = [b"{broken"] * 200 + orders()[:100]
    (rejected,) = named(look(sample(rows)), "rejected")
    assert (rejected.status, rejected.what[:35]) == ("problem", "200 of 300 records would be rejecte")


def test_what_the_sample_leaves_out_is_neither_disorder_nor_a_gap() -> None:
    rows = [order(number) | {"at": NOW - 300 * DAY + number} for number in range(50)]
    whole = sample(rows + orders()).stretches[0]
    whole.gaps = [50]
    cut = TopicRecords("orders", (whole, Stretch(1, 0)))
    idle = {"idle_timeout": "5s"}
    assert named(look(cut, partitioner=idle), "partitions") == []
    assert "with a gap of" in named(look(sample(rows + orders(), []), partitioner=idle), "partitions")[0].what
    jumps = look(cut, query={"max_jump": "1h"}, partitioner=idle)
    assert jumps.facts.partitions[0].jumps == 0
    assert [piece.times.size for piece in jumps.facts.partitions[0].pieces] == [50, MANY]
    assert np.array_equal(jumps.facts.partitions[0].times, np.concatenate(jumps.facts.times))
