"""JSON arrays built by Arrow are those of Python's own writer."""

from __future__ import annotations

import json
from datetime import date

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from evenflow.json_text import arrays

_TEXTS = st.text(st.characters(codec="utf-8"), max_size=6)
_ROWS = st.tuples(_TEXTS, st.integers(-(2**63), 2**63 - 1), st.booleans(), st.dates(), _TEXTS)


def _as_python(row: tuple[object, ...]) -> str:
    values = [value.isoformat() if isinstance(value, date) else value for value in row]
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


@given(st.lists(_ROWS, min_size=1, max_size=5))
def test_every_row_is_what_json_dumps_makes_of_it(rows: list[tuple[object, ...]]) -> None:
    kinds = [pa.string(), pa.int64(), pa.bool_(), pa.date32(), pa.string()]
    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
    assert arrays(columns).to_pylist() == [_as_python(row) for row in rows]


def test_a_row_with_a_null_is_null() -> None:
    columns = [pa.array(["a", None]), pa.array([None, 1], pa.int64())]
    assert arrays(columns).to_pylist() == [None, None]
