"""Results as Arrow records: any Arrow library reads them, repetitions are known by place, damage is
refused.
"""

from __future__ import annotations

import json
import zlib
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import IncompatibleStateError, ProtocolError
from evenflow.wire.result_frames import METADATA_KEY, ResultHeader, decode_results, encode_results
from tests.examples import examples

SCHEMA = pa.schema(
    [
        ("window_start", pa.timestamp("ms", "UTC")),
        ("window_end", pa.timestamp("ms", "UTC")),
        ("key", pa.binary()),
        ("n", pa.int64()),
        ("avg", pa.float64()),
    ]
)


def window(end: int, size: int, *, seed: int = 0) -> pa.Table:
    """Rows of one window, every tenth value null."""
    draw = np.random.default_rng([seed, end])
    nulls = np.arange(size) % 10 == 9
    columns = {
        "window_start": pa.array(np.full(size, end - 10)).cast(SCHEMA.types[0]),
        "window_end": pa.array(np.full(size, end)).cast(SCHEMA.types[0]),
        "key": pa.array([b"\xff%d" % number for number in range(size)], pa.binary()),
        "n": pa.array(draw.integers(0, 2**40, size), mask=nulls),
        "avg": pa.array(draw.random(size), mask=nulls),
    }
    return pa.table(columns, schema=SCHEMA)


def encoded(*tables: pa.Table, part_bytes: int = 1_000) -> list[bytes]:
    return list(encode_results(tables, fingerprint="f", bucket=3, part_bytes=part_bytes))


def decoded(record: bytes) -> tuple[ResultHeader, pa.RecordBatch]:
    return decode_results(record, schema=SCHEMA, fingerprint="f")


def with_header(record: bytes, **changed: Any) -> bytes:
    """The record under a header with these fields changed (... takes one out), its checksum right."""
    result = pa.ipc.open_stream(record).schema
    said = json.loads(result.metadata[METADATA_KEY]) | changed
    said = {name: value for name, value in said.items() if value is not ... and name != "crc"}
    body = record[result.serialize().size :]
    words = json.dumps(said, separators=(",", ":")).encode()
    said["crc"] = zlib.crc32(body, zlib.crc32(words))
    metadata = {METADATA_KEY: json.dumps(said, separators=(",", ":")).encode()}
    return result.with_metadata(metadata).serialize().to_pybytes() + body


def test_a_record_is_an_arrow_stream_that_any_library_reads() -> None:
    (record,) = encoded(window(20, 5))
    table = pa.ipc.open_stream(record).read_all()
    assert table.replace_schema_metadata(None) == window(20, 5)
    assert json.loads(table.schema.metadata[b"evenflow"])["window_end"] == 20


def test_a_record_holds_rows_of_one_window_and_says_which_and_the_last_says_that_it_is() -> None:
    tables = [window(20, 100), window(30, 1), window(40, 70), window(40, 80, seed=1), window(50, 0)]
    records = encoded(*tables)
    headers = [decoded(record)[0] for record in records]
    for end, size in ((20, 100), (30, 1), (40, 150)):
        mine = [header for header in headers if header.window_end == end]
        assert [header.part for header in mine] == list(range(len(mine)))
        assert [header.first for header in mine] == np.cumsum([0, *(h.rows for h in mine)])[:-1].tolist()
        assert sum(header.rows for header in mine) == size
        assert [header.last for header in mine] == [False] * (len(mine) - 1) + [True]
    assert pa.Table.from_batches([decoded(record)[1] for record in records]) == pa.concat_tables(tables)


def test_equal_rows_are_equal_bytes_whatever_lies_under_their_nulls() -> None:
    table = window(20, 50)
    nulls = np.arange(50) % 10 == 9
    bits = pa.array(~nulls).buffers()[1]
    other = []
    for name in ("n", "avg"):
        under = pa.py_buffer(np.where(nulls, 77, table[name].chunk(0).fill_null(0)))
        other.append(pa.Array.from_buffers(SCHEMA.field(name).type, 50, [bits, under]))
    same = table.set_column(3, SCHEMA.field("n"), other[0]).set_column(4, SCHEMA.field("avg"), other[1])
    assert same == table
    assert encoded(same) == encoded(table) == encoded(window(20, 50))
    assert encoded(table.slice(7, 30)) == encoded(
        pa.Table.from_pylist(table.slice(7, 30).to_pylist(), SCHEMA)
    )


def test_lists_decimals_dates_and_text_travel_and_equal_rows_are_equal_bytes() -> None:
    top = pa.list_(pa.struct([("value", pa.string()), ("count", pa.int64())]))
    kinds = [
        ("top", top),
        ("sum", pa.decimal128(38, 2)),
        ("day", pa.date32()),
        ("yes", pa.bool_()),
        ("text", pa.string()),
    ]
    schema = pa.schema([*[SCHEMA.field(name) for name in ("window_start", "window_end", "key")], *kinds])
    values = [
        [{"value": "a", "count": 2}, {"value": None, "count": 1}],
        Decimal("-0.01"),
        date(2020, 1, 2),
        True,
        "x",
    ]
    rows = window(20, 40).select(["window_start", "window_end", "key"]).to_pylist()
    for number, row in enumerate(rows):
        row |= dict(zip(schema.names[3:], values, strict=True))
        row[schema.names[3 + number % 5]] = None
    table = pa.Table.from_pylist(rows, schema)
    (record,) = encode_results([table], fingerprint="f", bucket=3)
    assert decode_results(record, schema=schema, fingerprint="f")[1].to_pylist() == rows
    part = pa.Table.from_pylist(rows[9:30], schema)
    assert encoded(table.slice(9, 21)) == encoded(part)


def test_no_flipped_bit_changes_a_row_or_the_header() -> None:
    good = decoded(RECORD)
    refused = 0
    for place in range(len(RECORD)):
        damaged = bytearray(RECORD)
        damaged[place] ^= 1 << place % 8
        try:
            assert decoded(bytes(damaged)) == good, place
        except (ProtocolError, IncompatibleStateError):
            refused += 1
    assert refused > 0.7 * len(RECORD)


@examples(300)
@given(st.data())
def test_a_damaged_record_is_refused_or_means_the_same(data: st.DataObject) -> None:
    record = bytearray(RECORD)
    for _ in range(data.draw(st.integers(1, 3))):
        record[data.draw(st.integers(0, len(record) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        header, batch = decoded(bytes(record[: data.draw(st.sampled_from([len(record), len(record) // 2]))]))
    except (ProtocolError, IncompatibleStateError):
        return
    assert (header, batch) == decoded(RECORD), "a byte that means nothing was changed"


@examples(300)
@given(st.one_of(st.binary(max_size=200), st.binary(max_size=200).map(lambda rest: RECORD[:700] + rest)))
def test_any_bytes_are_refused_with_a_reason(value: bytes) -> None:
    with pytest.raises(ProtocolError, match="result frame"):
        decoded(value)


@pytest.mark.parametrize(
    "value", [None, b"", b"{}", b'{"window_start":0}', b"\xff" * 8, b"\xff\xff\xff\xff" * 99]
)
def test_what_is_no_record_at_all_is_refused(value: bytes | None) -> None:
    with pytest.raises(ProtocolError, match="no result frame"):
        decode_results(value, schema=SCHEMA, fingerprint="f")


@pytest.mark.parametrize(
    "changed",
    [
        {"v": 1},
        {"kind": "frame"},
        {"rows": 4},
        {"rows": 10**30},
        {"window_end": 21},
        {"window_start": True},
        {"window_end": 1e400},
        {"bucket": -1},
        {"bucket": "3"},
        {"last": 1},
        {"part": ...},
        {"more": 1},
        {"fingerprint": None},
    ],
)
def test_a_header_that_cannot_be_is_refused_though_its_checksum_is_right(changed: dict[str, Any]) -> None:
    assert decoded(with_header(RECORD)) == decoded(RECORD)
    with pytest.raises(ProtocolError):
        decoded(with_header(RECORD, **changed))


@pytest.mark.parametrize("text", [b"[" * 100_000, b"1e400", b"\xff", b'"text"', b"[]", b"null", b"{}"])
def test_a_header_of_any_json_is_refused(text: bytes) -> None:
    schema = SCHEMA.with_metadata({METADATA_KEY: text})
    with pytest.raises(ProtocolError, match="result frame"):
        decoded(
            schema.serialize().to_pybytes() + RECORD[pa.ipc.open_stream(RECORD).schema.serialize().size :]
        )


def test_the_rows_of_another_query_are_refused() -> None:
    with pytest.raises(IncompatibleStateError, match="written for query f, but this is query g"):
        decode_results(RECORD, schema=SCHEMA, fingerprint="g")
    other = pa.schema([*SCHEMA, ("more", pa.int64())])
    with pytest.raises(ProtocolError, match="has the columns"):
        decode_results(RECORD, schema=other, fingerprint="f")


def test_a_record_that_would_grow_beyond_measure_is_refused_before_it_does() -> None:
    size = 5_000_000
    zeros = np.zeros(size, np.int64)
    columns = {
        "window_start": zeros,
        "window_end": zeros,
        "key": pa.array([b""] * 1).take(pa.array(zeros)),
        "n": zeros,
    }
    table = pa.table(columns | {"avg": zeros.astype(np.float64)}, schema=SCHEMA)
    (bomb,) = encoded(table, part_bytes=10**12)
    before = pa.total_allocated_bytes()
    with pytest.raises(ProtocolError, match=r"claims 18\d+ bytes of rows"):
        decoded(bomb)
    assert pa.total_allocated_bytes() <= before
    assert len(bomb) < 2_000_000


@pytest.mark.parametrize("last", [-1, 2**31 - 1, 3])
def test_rows_that_lie_outside_of_their_buffers_are_refused_and_crash_nothing(last: int) -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as writer:
        writer.write_table(window(20, 5))
    stream = sink.getvalue().to_pybytes()
    metadata = pa.ipc.open_stream(RECORD).schema
    places = np.arange(6, dtype=np.int32) * 2
    body = stream[SCHEMA.serialize().size :]
    assert body.count(places.tobytes()) == 1
    places[3] = last
    whole = metadata.serialize().to_pybytes() + body
    broken = metadata.serialize().to_pybytes() + body.replace(
        (np.arange(6, dtype=np.int32) * 2).tobytes(), places.tobytes()
    )
    assert decoded(with_header(whole))[1].num_rows == 5, "a record need not be compressed"
    with pytest.raises(ProtocolError, match="no result frame"):
        decoded(with_header(broken))


def test_a_row_larger_than_a_part_travels_alone() -> None:
    keys = [b"a", b"k" * 100_000, b"b"]
    rows = [{"window_start": 0, "window_end": 9, "key": key, "n": 1, "avg": 0.5} for key in keys]
    table = pa.Table.from_pylist(rows, SCHEMA)
    assert [decoded(record)[0].rows for record in encoded(table)] == [1, 1, 1]


RECORD = encoded(window(20, 5))[0]
