"""Aggregates of one's own: loaded by name, computed in two steps as the others, held to the laws, refused
in words.
"""

from __future__ import annotations

import re
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.aggregates import AGGREGATES, AggregatePlan
from evenflow.aggregates.own.checking import LAWS, BrokenAggregateLawError, check_aggregate
from evenflow.aggregates.registry import aggregate, known_aggregates
from evenflow.errors import ConfigError
from evenflow.settings import AggregateSpec, Query
from tests.examples import examples
from tests.unit.aggregates import own_aggregates_for_tests as own

MODULE = own.__name__


def plan_of(*forms: str, **query: Any) -> AggregatePlan:
    types = {"i": "int64", "s": "string", "d": "decimal(2)"}
    return AggregatePlan.of(
        Query(
            aggregates={f"out{n}": f"{MODULE}:{form}" for n, form in enumerate(forms)},
            types={name: type_ for name, type_ in types.items() if any(f"({name}" in form for form in forms)},
            **query,
        )
    )


def rows_of(plan: AggregatePlan, rows: list[tuple[int, bytes, Any]]) -> pa.Table:
    columns = {
        "pane": [row[0] for row in rows],
        "key": [row[1] for row in rows],
        "time": [0 for _ in rows],
    }
    return pa.table(
        {
            field.name: pa.array(columns.get(field.name, [row[2] for row in rows]), field.type)
            for field in plan.frame_schema
        }
    )


def results_of(plan: AggregatePlan, table: pa.Table) -> dict[bytes, Any]:
    return dict(zip(table["key"].to_pylist(), plan.finish(table)["out0"].to_pylist(), strict=True))


@pytest.mark.parametrize("name", ["Total", "Seen", "Cents", "Arrays", "TableSum"])
def test_a_right_aggregate_of_ones_own_passes(name: str) -> None:
    check_aggregate(f"{MODULE}:{name}")
    check_aggregate(getattr(own, name), rounds=5)


@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("Averaged", "any split"),
        ("First", "any split"),
        ("Empty", "any split"),
        ("Tuples", "bytes"),
        ("Shared", "new state"),
    ],
)
def test_an_aggregate_that_breaks_a_law_is_told_which(name: str, law: str) -> None:
    with pytest.raises(BrokenAggregateLawError) as broken:
        check_aggregate(f"{MODULE}:{name}")
    assert broken.value.law == law
    assert LAWS[law] in str(broken.value)


def test_a_result_of_another_type_is_refused_with_the_value() -> None:
    with pytest.raises(ConfigError, match="the result 'many' is a str, and its column is int64"):
        check_aggregate(own.Words)


@pytest.mark.parametrize(
    "form",
    [
        form.replace("10)", "2)")
        for each in AGGREGATES.values()
        for form in each.forms
        if "(" in form and "1000" not in form
    ],
)
def test_the_aggregates_of_evenflow_obey_the_same_laws(form: str) -> None:
    check_aggregate(form, rounds=8)


ROWS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from([b"a", b"b"]), st.one_of(st.none(), st.integers(-9, 9))),
    max_size=30,
)


@pytest.mark.parametrize("form", ["Total(i)", "Arrays(i)"])
@examples(20)
@given(rows=ROWS, data=st.data())
def test_a_plan_computes_it_from_any_split_over_panes_and_workers(
    form: str, rows: Any, data: st.DataObject
) -> None:
    plan = plan_of(form)
    workers = data.draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    parts = [[row for row, worker in zip(rows, workers, strict=True) if worker == w] for w in range(3)]
    panes = plan.merge([plan.combine(rows_of(plan, part)) for part in parts])
    merged = plan.merge([panes.drop_columns(["pane"])])
    expected: dict[bytes, int] = defaultdict(int)
    for _, key, value in rows:
        expected[key] += value or 0
    assert results_of(plan, merged) == expected
    assert not plan.invertible


def test_the_same_call_twice_is_one_partial_column() -> None:
    assert [p.name for p in plan_of("Total(i)", "Total(i)").partials] == ["rows", f"{MODULE}:Total(i)"]
    assert len(plan_of("Limited(i, 3)", "Limited(i, 4)").partials) == 3


def test_a_state_beyond_its_room_is_null_for_good_and_counts_as_unfit() -> None:
    plan = plan_of("Seen(s)", max_state_bytes=100)
    short, long = [(0, b"a", "x")], [(0, b"b", letter * 30) for letter in "abcd"]
    parts = [plan.combine(rows_of(plan, short + long[:2])), plan.combine(rows_of(plan, long[2:]))]
    merged = plan.merge(parts)
    assert results_of(plan, merged) == {b"a": "x", b"b": None}
    assert plan.unfit(merged) == 1
    again = plan.merge([merged, plan.combine(rows_of(plan, [(0, b"b", "x")]))])
    assert results_of(plan, again)[b"b"] is None


def test_a_whole_number_or_a_text_that_does_not_fit_is_null_and_counts() -> None:
    plan = plan_of("Total(i)")
    table = plan.combine(rows_of(plan, [(0, b"a", 2**62)] * 3 + [(0, b"b", 1)]))
    assert results_of(plan, table) == {b"a": None, b"b": 1}
    assert plan.unfit(table) == 1
    plan = plan_of("Seen(s)", max_result_bytes=100)
    table = plan.combine(rows_of(plan, [(0, b"a", letter * 30) for letter in "abcd"]))
    assert results_of(plan, table) == {b"a": None}
    assert plan.unfit(table) == 1


def test_a_key_with_nulls_alone_has_the_result_of_no_value() -> None:
    plan = plan_of("Total(i)")
    assert results_of(plan, plan.combine(rows_of(plan, [(0, b"a", None)]))) == {b"a": 0}
    plan = plan_of("TableSum(f)")
    assert results_of(plan, plan.combine(rows_of(plan, [(0, b"a", None)]))) == {b"a": None}


def test_a_state_may_be_any_bytes() -> None:
    plan = plan_of("Cents(d)")
    table = plan.combine(rows_of(plan, [(0, b"a", Decimal("0.10"))] * 3))
    assert results_of(plan, table) == {b"a": Decimal("0.30")}


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("Total", "names no column; write '.*:Total\\(column\\)'"),
        ("Total(s)", "column 's' is a string, but .*:Total needs one of int64"),
        ("Total(i, 3)", "does not take the options"),
        ("Limited(i)", "does not take the options"),
        ("Limited(i, 0)", "most must be 1 or more, not 0"),
        ("Limited(i, 1, 2)", r"does not take the options .*; write '.*:Limited\(column, most\)'"),
        ("Nothing(i)", "module .* has no Nothing"),
        ("Half(i)", "has no add and no merge; PlainAggregate says what they must do"),
        ("PlainAggregate(i)", "has no init and no add and no merge and no finish"),
        ("Decimal(i)", "is the class Decimal, and not an aggregate; derive a class from"),
        (
            "Grows(i)",
            "sum of its state is string, which has no fixed size; a state of any size is for a Plain",
        ),
        ("Odd(i)", "result = 'number' is no type of a column"),
    ],
)
def test_what_cannot_be_used_is_refused_when_settings_are_read(form: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan_of(form)


def test_a_function_that_fails_is_blamed_with_its_line() -> None:
    plan = plan_of("Fails(i)")
    with pytest.raises(
        ConfigError, match=r"adding values raised TypeError: .*own_aggregates_for_tests.py, line"
    ):
        plan.combine(rows_of(plan, [(0, b"a", 1)]))


def test_a_table_with_other_columns_is_refused_with_those_that_are_seen() -> None:
    plan = plan_of("Unnamed(f)")
    with pytest.raises(ConfigError, match="returned group, sum_sum, and not a table of group, sum"):
        plan.combine(rows_of(plan, [(0, b"a", 1.0)]))


def test_an_aggregate_without_an_oracle_cannot_be_checked() -> None:
    with pytest.raises(ConfigError, match="has no oracle"):
        check_aggregate(own.NoOracle)


def test_what_is_written_is_read_back() -> None:
    spec = AggregateSpec.parse(f"{MODULE}:Limited( i , 3)")
    assert str(spec) == f"{MODULE}:Limited(i, 3)"
    assert AggregateSpec.parse(str(spec)) == spec
    assert aggregate(spec.function).takes_column


def test_a_name_that_nobody_offers_is_answered_with_how_to_write_ones_own() -> None:
    with pytest.raises(ConfigError, match=r"there is no aggregate 'SUM'; did you mean 'sum'\?"):
        aggregate("SUM")
    with pytest.raises(ConfigError, match=r"One of your own is written as 'module:Class\(column\)'"):
        aggregate("spread")


def test_a_package_offers_a_name_and_one_of_evenflows_stays_evenflows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "own_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-package\nVersion: 1.0\n")
    points = f"[evenflow.aggregates]\ngrand-total = {MODULE}:Total\nsum = {MODULE}:Total\n"
    (info / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "grand-total" in known_aggregates()
    query = Query(aggregates={"t": "grand-total(i)", "s": "sum(i)"}, types={"i": "int64"})
    assert [output.aggregate.name for output in AggregatePlan.of(query).outputs] == ["grand-total", "sum"]
    assert aggregate("sum") is AGGREGATES["sum"]
    check_aggregate("grand-total", rounds=5)


EXAMPLE = Path(__file__).parents[3] / "examples" / "plugin"


@pytest.mark.parametrize("form", ["Spread", "Spread(x, 100)", "GeometricMean"])
def test_the_aggregates_of_the_example_pass(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    check_aggregate(f"turnstile.aggregates:{form}", rounds=15)


PAGE = (Path(__file__).parents[3] / "docs" / "your-own-aggregates.md").read_text()


def test_the_python_of_the_page_runs() -> None:
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(block, "docs/your-own-aggregates.md", "exec"), names)
    assert {"Spread", "Entropy", "GeometricMean", "check_aggregate"} <= set(names), (
        "the page checks all three"
    )


def test_the_page_has_every_law() -> None:
    for law, words in LAWS.items():
        assert f"| {law} | {words} |" in PAGE
