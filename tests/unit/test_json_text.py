"""JSON arrays built by Arrow are those of Python's own writer, and are read back as the columns that they
were.
"""

from __future__ import annotations

import json
from datetime import date

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenflow.text.json_text import arrays, parts

_TEXTS = st.text(st.characters(codec="utf-8"), max_size=6)
_ROWS = st.tuples(_TEXTS, st.integers(-(2**63), 2**63 - 1), st.booleans(), st.dates(), _TEXTS)


_KINDS = [pa.string(), pa.int64(), pa.bool_(), pa.date32(), pa.string()]


def _columns(rows: list[tuple[object, ...]]) -> list[pa.Array]:
    return [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), _KINDS, strict=True)]


def _as_python(row: tuple[object, ...]) -> str:
    values = [value.isoformat() if isinstance(value, date) else value for value in row]
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


@given(st.lists(_ROWS, min_size=1, max_size=5))
def test_every_row_is_what_json_dumps_makes_of_it(rows: list[tuple[object, ...]]) -> None:
    assert arrays(_columns(rows)).to_pylist() == [_as_python(row) for row in rows]


def test_a_row_with_a_null_is_null() -> None:
    columns = [pa.array(["a", None]), pa.array([None, 1], pa.int64())]
    assert arrays(columns).to_pylist() == [None, None]


@given(st.lists(_ROWS, min_size=1, max_size=5))
def test_the_columns_are_read_back_and_written_again_they_are_the_same_text(
    rows: list[tuple[object, ...]],
) -> None:
    columns = _columns(rows)
    result = parts(arrays(columns), _KINDS)
    assert [column.to_pylist() for column in result] == [column.to_pylist() for column in columns]
    assert [column.type for column in result] == _KINDS
    assert arrays(result).equals(arrays(columns))
    assert [column.to_pylist() for column in parts(pa.array([], pa.string()), _KINDS)] == [[]] * 5


@given(st.lists(_TEXTS | st.sampled_from(['["a",1]', '["b",-2]']), min_size=1, max_size=3))
@example(['["a",1],["b",2]'])
@example(['["a",1', "2]"])
@example(['["a", 1]'])
@example(['["a",1.0]'])
@example(['["a",true]'])
@example(['["a",null]'])
@example(['["a"]'])
@example(['["a",1,2]'])
@example(['["a",9223372036854775808]'])
@example(['["\\ud800",1]'])
@example(['["\\u0061",1]'])
@example(["[" * 100_000])
@example(['{"a":1,"b":2}'])
def test_a_text_that_is_no_such_array_is_refused(texts: list[str]) -> None:
    kinds = [pa.string(), pa.int64()]
    try:
        result = parts(pa.array(texts, pa.string()), kinds)
    except ValueError:
        return
    assert arrays(result).to_pylist() == texts


def test_the_refusal_shows_the_text() -> None:
    with pytest.raises(ValueError, match=r"'\[\"b\", 2\]' is not an array of string, int64"):
        parts(pa.array(['["a",1]', '["b", 2]']), [pa.string(), pa.int64()])
