from __future__ import annotations

import csv
import io
import json
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError
from evenflow.grammar.inputs import TimeUnit
from evenflow.settings import InputSettings
from evenflow.sources.event_time import render_times
from evenflow.sources.source import Batch
from producers.records import ValuesAtAnyTime, csv_values, json_values, text_values, values_of

TEXT = st.text(st.characters(exclude_categories=["Cs"])) | st.none()
INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.none()
FLOATS = st.floats(allow_nan=False, allow_infinity=False) | st.none()
ROWS = st.lists(st.tuples(TEXT, INTEGERS, FLOATS, st.booleans() | st.none()), max_size=20)


def table(rows: list[tuple[str | None, int | None, float | None, bool | None]]) -> pa.Table:
    types = {"name": pa.string(), 'odd "name"': pa.int64(), "ratio": pa.float64(), "flag": pa.bool_()}
    return pa.table(
        {
            name: pa.array([row[place] for row in rows], kind)
            for place, (name, kind) in enumerate(types.items())
        }
    )


@given(rows=ROWS)
def test_json_reads_back_as_exactly_what_was_written(rows) -> None:
    read = [tuple(json.loads(value).values()) for value in json_values(table(rows)).to_pylist()]
    assert read == rows
    assert all(isinstance(row[1], int | None) for row in read)


def test_json_fields_keep_their_names_and_order() -> None:
    assert json_values(table([("a", 1, 0.5, None)])).to_pylist() == [
        b'{"name":"a","odd \\"name\\"":1,"ratio":0.5,"flag":null}'
    ]


def test_not_a_number_is_null_and_infinity_is_refused() -> None:
    assert json_values(pa.table({"x": [math.nan, 1.5]})).to_pylist() == [b'{"x":null}', b'{"x":1.5}']
    with pytest.raises(ConfigError, match="infinite"):
        json_values(pa.table({"x": [math.inf]}))


@given(rows=st.lists(st.tuples(TEXT, INTEGERS, TEXT), min_size=1, max_size=20))
def test_csv_reads_back_as_what_was_written(rows) -> None:
    rows = [tuple(v.replace("\x00", "") if isinstance(v, str) else v for v in row) for row in rows]
    columns = pa.table(
        {
            "a": pa.array([row[0] for row in rows], pa.string()),
            "b": pa.array([row[1] for row in rows], pa.int64()),
            "c": pa.array([row[2] for row in rows], pa.string()),
        }
    )
    for value, row in zip(csv_values(columns, ["c", "b"], ";").to_pylist(), rows, strict=True):
        (read,) = csv.reader(io.StringIO(value.decode(), newline=""), delimiter=";")
        assert read == [row[2] or "", "" if row[1] is None else str(row[1])]


def test_csv_tells_an_empty_text_from_a_null() -> None:
    columns = pa.table({"a": pa.array(["", None], pa.string()), "b": [1, 2]})
    assert csv_values(columns, ["a", "b"], ",").to_pylist() == [b'"",1', b",2"]


def test_csv_refuses_columns_that_the_source_does_not_send() -> None:
    with pytest.raises(ConfigError, match="names z"):
        csv_values(pa.table({"a": [1]}), ["a", "z"], ",")


def test_text_is_the_one_column_as_it_is() -> None:
    assert text_values(pa.table({"w": ["héllo", ""]})).to_pylist() == ["héllo".encode(), b""]
    with pytest.raises(ConfigError, match="--value"):
        text_values(pa.table({"a": ["x"], "b": ["y"]}))


def test_objects_are_refused_with_what_to_do() -> None:
    with pytest.raises(ConfigError, match="--columns"):
        json_values(pa.table({"a": [{"b": 1}]}))


def test_no_rows_are_no_records() -> None:
    assert json_values(table([])).to_pylist() == []


UNITS: list[TimeUnit] = ["ms", "s", "us", "iso"]


@given(
    rows=st.lists(st.tuples(TEXT, INTEGERS, FLOATS), max_size=10),
    place=st.integers(0, 3),
    form=st.sampled_from(["json", "csv"]),
    unit=st.sampled_from(UNITS),
    now=st.integers(0, 4_000_000_000_000),
    data=st.data(),
)
def test_values_rendered_around_an_event_time_are_those_rendered_with_it(
    rows, place: int, form: str, unit: TimeUnit, now: int, data: st.DataObject
) -> None:
    types = {"name": pa.string(), "n": pa.int64(), 'odd "x"': pa.float64()}
    columns = {
        name: pa.array([row[at] for row in rows], kind) for at, (name, kind) in enumerate(types.items())
    }
    names = [*columns]
    names.insert(place, "t")
    table = pa.table(columns | {"t": pa.nulls(len(rows), pa.int64())}).select(names)
    batch = Batch(columns=table, keys=pa.nulls(len(rows), pa.binary()), times=np.zeros(len(rows), np.int64))
    words: dict[str, Any] = {"format": form} | ({"columns": names} if form == "csv" else {})
    written = InputSettings(**words)
    low = data.draw(st.integers(0, len(rows)))
    high = data.draw(st.integers(low, len(rows)))
    assert ValuesAtAnyTime.applies(table, written, time="t")
    result = ValuesAtAnyTime(table, written, time="t").at(low, high, render_times(np.array([now]), unit))
    whole = values_of(batch.slice(low, high).at(now, column="t", unit=unit), written, key="name")
    assert result.type == whole.type
    assert result.to_pylist() == whole.to_pylist()


@pytest.mark.parametrize(
    ("form", "time"), [("json", "other"), ("json", None), ("csv", "hidden"), ("text", "t"), ("avro", "t")]
)
def test_records_that_do_not_carry_the_time_or_not_as_text_are_not_rendered_around_it(
    form: str, time: str | None
) -> None:
    extra: dict[str, dict[str, Any]] = {
        "avro": {"registry": {"url": "http://127.0.0.1:1"}},
        "csv": {"columns": ["t"]},
    }
    words: dict[str, Any] = {"format": form} | extra.get(form, {})
    settings = InputSettings(**words)
    assert not ValuesAtAnyTime.applies(pa.table({"t": [1], "hidden": [1]}), settings, time=time)
