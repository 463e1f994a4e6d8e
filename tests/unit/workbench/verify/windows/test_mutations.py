"""Whatever the aggregate, `verify` sees a frame that was lost, doubled or altered (rule "a gap is noticed").

The aggregates come from the registry, so a new one is taken in by itself. Each stands alone in its query,
because beside a `count` every loss is seen.

One altered value may be invisible, and then only for one of two reasons. Either no result row is other than
before, as where a value that is no maximum is changed under `max`. Or the aggregate is an approximation, and
the changed result lies within the bound that docs/aggregates.md promises. A test below holds that more
altered values than the bound allows are seen for these, too.
"""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

from evenflow.aggregates import AGGREGATES
from evenflow.settings import Settings
from tests.unit.workbench.verify.cores import Change, Cores, compared
from workbench.verify.core import Recomputation
from workbench.verify.windows.oracles import oracles

ALONE = {
    form.replace("column", "v"): "int64" if "int64" in aggregate.over else "string"
    for aggregate in AGGREGATES.values()
    for form in aggregate.forms
} | {"quantile(v, 0.5)": "float64", "sum(v)": "float64", "top_k(v, 3, 8)": "int64"}
"""Every form of every aggregate -> the type of its column, and forms over other types that are computed
another way.
"""
OF_VALUES = [spec for spec in ALONE if "(v" in spec]
"""Those that have a column. Frames of `count` hold no value that could be altered."""
MODES = [(spec, emit) for spec in ALONE for emit in ("all", "changes")] + [
    (spec, "top(2, one)")
    for spec in ALONE
    if spec.partition("(")[0] not in ("top_k", "collect", "clusters")  # `top` orders by no list
]
KEYS = ("a", "b", "c", "d")


def settings_of(spec: str, kind: str, emit: str) -> Settings:
    return Settings.model_validate(
        {
            "query": {
                "window": 200,
                "slide": 100,
                "out_of_orderness": 5,
                "aggregates": {"one": spec},
                "types": {"v": kind} if "(v" in spec else {},
                "emit": emit,
            },
            "input": {"partitions": 1, "format": "json"},
            "partitioner": {"workers": 2},
            "spark": {"buckets": 2},
        }
    )


@cache
def made(spec: str, kind: str, emit: str) -> tuple[Cores, Recomputation, pa.Table]:
    """The cores, what verify expects of them, and the records without any mutation."""
    chance = random.Random(24)
    value = {
        "int64": lambda: chance.randint(1, 400),
        "float64": lambda: chance.uniform(1, 400),
        "string": lambda: f"word {chance.randint(1, 40)}",
    }[kind]
    blocks = [
        [
            {"key": chance.choice(KEYS), "time": at - chance.randint(0, 4), "v": value()}
            for at in range(100 * block, 100 * (block + 1))
        ]
        for block in range(6)
    ]
    cores = Cores(settings_of(spec, kind, emit), blocks)
    return cores, cores.recomputed(), cores.results()


def the_frame(cores: Cores) -> int:
    """The number of a frame in the middle that has many tuples."""
    return max(range(4, 8), key=lambda number: cores.rows_of(number).num_rows)


def lost(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows.slice(0, 0)


def doubled(rows: pa.RecordBatch) -> pa.RecordBatch:
    return pa.Table.from_batches([rows, rows]).combine_chunks().to_batches()[0]


def altered(column: int, value: Any, *, rows: slice = slice(7, 8)) -> Change:
    """Puts the value in this column of these rows."""

    def change(batch: pa.RecordBatch) -> pa.RecordBatch:
        values = batch.column(column).to_pylist()
        values[rows] = [value(one) for one in values[rows]]
        columns = list(batch.columns)
        columns[column] = pa.array(values, batch.schema.types[column])
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    return change


def other(value: Any) -> Any:
    """Another value of the same type, far from all of the stream."""
    return "another word" if isinstance(value, str) else type(value)(100_000)


PANE, KEY = 0, 1
SEEN = {
    "a frame lost": lost,
    "a frame doubled": doubled,
    "a tuple lost": lambda rows: rows.slice(1),
    "another key": altered(KEY, lambda key: b"a" if key != b"a" else b"b"),
    "another pane": altered(PANE, lambda pane: pane + 1),
}


@pytest.mark.family
@pytest.mark.parametrize(("spec", "emit"), MODES)
def test_without_a_mutation_there_is_no_difference(spec: str, emit: str) -> None:
    _, due, written = made(spec, ALONE[spec], emit)
    report = compared(due, written)
    assert report.first == ()
    assert report.rows > 10
    assert report.tuples.due == report.tuples.merged > 500


@pytest.mark.family
@pytest.mark.parametrize("spec", ALONE)
@pytest.mark.parametrize("mutation", SEEN)
def test_a_tuple_that_is_lost_doubled_or_elsewhere_is_seen_whatever_the_aggregate(
    spec: str, mutation: str
) -> None:
    cores, due, _ = made(spec, ALONE[spec], "all")
    report = compared(due, cores.results({the_frame(cores): SEEN[mutation]}))
    assert "value" in report.kinds or "missing" in report.kinds


@pytest.mark.family
@pytest.mark.parametrize("spec", OF_VALUES)
def test_an_altered_value_is_seen_unless_no_row_changes_or_it_stays_within_the_promised_bound(
    spec: str,
) -> None:
    cores, due, written = made(spec, ALONE[spec], "all")
    mutated = cores.results({the_frame(cores): altered(_value(cores), other)})
    report = compared(due, mutated)
    (oracle,) = oracles(cores.settings.query)
    exact = oracle.wrong is None and oracle.tolerance == "0"
    if mutated.equals(written):
        assert report.exact, "no row is other than before, so there is nothing to see"
    elif exact:
        assert report.kinds.keys() == {"value"}


@pytest.mark.parametrize("spec", OF_VALUES)
def test_altered_values_beyond_every_bound_are_seen(spec: str) -> None:
    cores, due, written = made(spec, ALONE[spec], "all")
    changes = {
        number: altered(_value(cores), other, rows=slice(None))
        for number in range(len(cores.frames))
        if cores.rows_of(number).num_rows
    }
    mutated = cores.results(changes)
    assert mutated.equals(written) == (spec == "count(v)")
    assert ("value" in compared(due, mutated).kinds) == (spec != "count(v)")


@pytest.mark.family
@pytest.mark.parametrize(("spec", "emit"), [mode for mode in MODES if mode[1] != "all"])
@pytest.mark.parametrize("mutation", ["a frame doubled", "a tuple lost"])
def test_where_not_every_key_has_a_row_the_rows_of_others_tell_of_lost_and_doubled_tuples(
    spec: str, emit: str, mutation: str
) -> None:
    cores, due, _ = made(spec, ALONE[spec], emit)
    report = compared(due, cores.results({the_frame(cores): SEEN[mutation]}))
    assert not report.exact


@pytest.mark.parametrize("emit", ["changes", "top(2, one)"])
def test_a_tuple_of_a_key_that_has_no_row_is_missed_in_the_rows_of_other_keys(emit: str) -> None:
    """Key `still` has the same least value in every pane, so its row never changes, and it is never among
    the first.
    """
    keys = {"a": 10, "b": 10, "c": 10, "d": 10, "still": 0}
    tuples = [
        {"key": key, "time": 100 * pane + at, "v": keys[key] * (pane + at)}
        for pane in range(6)
        for at in range(40)
        for key in keys
    ]
    cores = Cores(settings_of("max(v)", "int64", emit), [tuples])
    number = next(n for n in range(len(cores.frames)) if b"still" in _keys(cores, n))
    kept = [at for at, key in enumerate(_keys(cores, number)) if key == b"still"]
    with cores.recomputed() as due:
        assert compared(due, cores.results()).exact
        mutated = cores.results({number: lambda rows: _without(rows, kept[100])})
        report = compared(due, mutated)
    assert {one.column for one in report.first} == {"_tuples_of_all"}
    assert {one.got - one.expected for one in report.first} == {-1}
    assert len(report.first) == 2, "both windows that the tuple is in"


def _keys(cores: Cores, number: int) -> list[bytes]:
    return cores.rows_of(number)["key"].to_pylist()


def _without(rows: pa.RecordBatch, row: int) -> pa.RecordBatch:
    return rows.filter(pa.array([at != row for at in range(rows.num_rows)]))


def _value(cores: Cores) -> int:
    """Number of the value column in frames."""
    return cores.rows_of(the_frame(cores)).schema.get_field_index("v:v")
