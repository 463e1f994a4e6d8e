"""Plain records are read as Arrow reads them, and what is not plain is left alone."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitioner_service.parse import _read_json
from partitioner_service.plain_json import PlainReader

SCHEMA = pa.schema([("k", pa.string()), ("t", pa.int64()), ("f", pa.float64())])
READER = PlainReader(SCHEMA)
PLAIN = [
    b'{"k":"a","t":1,"f":2.5}',
    b'{"t":-17,"f":-0.125,"k":""}',
    b'{"k": "b", "t": 999999999999999999, "f": 123456789.123456}',
    b'{"other":"x","t":0,"k":"c","more":-12.5,"flag":true,"no":false,"nil":null,"f":7}',
    b'{"f":null,"k":null,"t":null}',
    b'{"x":1}',
    '{"k":"Zürich","t":5,"f":0.1}'.encode(),
]
NOT_PLAIN = [
    b'{"k":"a\\n","t":1}',
    b'{"k":"a","t":1.5}',
    b'{"k":"a","t":1e3}',
    b'{"k":"a","t":9999999999999999999}',
    b'{"k":"a","t":01}',
    b'{"k":"a","t":-0}',
    b'{"k":"a","t":"1"}',
    b'{"k":5,"t":1}',
    b'{"k":true,"t":1}',
    b'{"k":"a","t":1,"t":2}',
    b'{"k":"a","t":1,"o":{"t":2}}',
    b'{"k":"a","t":1,"o":[1]}',
    b'{"k":"a","t":1,}',
    b'{"k":"a" "t":1}',
    b'{"k":"a","t":}',
    b'{"k":"a","t":-}',
    b'{"k":"a","f":1.}',
    b'{"k":"a","f":0.1234567890123456}',
    b'{"k":"a","t":1}{"k":"b","t":2}',
    b'{"k":"a\n","t":1}',
    b'{"k":"a","t":1}\n{"k":"b","t":2}',
    b'{"k":"a","t":1} ',
    b' {"k":"a","t":1}',
    b'{"k":"a","t":nul',
    b'{"k":"a',
    b'{"k',
    b"{",
    b"{}",
    b"",
    b"null",
    b"[]",
    b'{"\\u006b":"a","t":1}',
]


def test_plain_records_are_read_as_arrow_reads_them() -> None:
    assert READER.read(PLAIN).equals(_read_json(PLAIN, SCHEMA).combine_chunks())
    for record in PLAIN:
        assert READER.read([record, record]) is not None


@pytest.mark.parametrize("record", NOT_PLAIN)
def test_what_is_not_plain_is_left_to_arrow_wherever_it_stands(record: bytes) -> None:
    assert READER.read([record]) is None
    assert READER.read([PLAIN[0], record]) is None
    assert READER.read([record, PLAIN[0]]) is None


ROWS = st.fixed_dictionaries(
    {},
    optional={
        "k": st.text() | st.none() | st.integers(),
        "t": st.integers() | st.none() | st.text(),
        "f": st.floats(allow_nan=False, allow_infinity=False)
        | st.integers(-(2**60), 2**60)
        | st.decimals(-999, 999, places=3).map(float),
        "x": st.text() | st.booleans() | st.none() | st.lists(st.integers()) | st.floats(allow_nan=False),
    },
)


@given(st.lists(ROWS, min_size=1, max_size=4), st.booleans())
def test_any_records_are_read_as_arrow_reads_them_or_not_at_all(rows: list[dict], spaces: bool) -> None:
    separators = (", ", ": ") if spaces else (",", ":")
    records = [json.dumps(row, ensure_ascii=False, separators=separators).encode() for row in rows]
    table = READER.read(records)
    if table is not None:
        assert table.equals(_read_json(records, SCHEMA).combine_chunks())


@given(st.binary(max_size=60))
def test_no_bytes_make_it_read_past_the_end(noise: bytes) -> None:
    READER.read([noise])
    READER.read([b'{"k":"' + noise])
    READER.read([PLAIN[0][: len(noise)]])
