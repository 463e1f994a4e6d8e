"""A record of the sync topic: what was written is read, and everything else is refused with a reason."""

import json
import struct
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import IncompatibleStateError, ProtocolError
from evenflow.partitioners.exchange import LAST_ROUND, Message, Table
from evenflow.wire.sync import SYNC_VERSION, SyncRecord, decode_sync, encode_sync
from tests.examples import examples

IDENTITY = "a query and its partitioner"
RECORD = SyncRecord(IDENTITY, 7, 2, 1_700_000_000_000, Table(5, (0, 2, 3), b"body"))
BYTES = encode_sync(RECORD)


@st.composite
def records(draw: st.DrawFn) -> SyncRecord:
    source, number = draw(st.integers(0, 4_096)), draw(st.integers(0, LAST_ROUND))
    body = draw(st.binary(max_size=200))
    sources = tuple(sorted(draw(st.sets(st.integers(0, 4_096), min_size=1, max_size=20))))
    payload = draw(st.sampled_from([Message(source, number, body), Table(number, sources, body)]))
    time = draw(st.none() | st.integers(-(2**63), 2**63 - 1))
    return SyncRecord(IDENTITY, draw(st.integers(1, 2**63 - 1)), source, time, payload)


def sealed(header: dict[str, Any] | bytes, body: bytes = b"") -> bytes:
    """A record with this header, whose lengths and checksum are right."""
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    data = struct.pack("<I", len(raw)) + raw + body
    return data + struct.pack("<I", zlib.crc32(data))


def header(**changed: Any) -> dict[str, Any]:
    fields = {
        "v": SYNC_VERSION,
        "kind": "table",
        "identity": IDENTITY,
        "session": 7,
        "source": 2,
        "round": 5,
        "sources": [0, 2, 3],
        "time": None,
    }
    return {**fields, **changed}


@given(records())
def test_a_record_that_was_written_is_read(record: SyncRecord) -> None:
    data = encode_sync(record)
    for one in (data, memoryview(data), bytearray(data)):
        assert decode_sync(one, identity=IDENTITY) == record


@given(st.integers(0, len(BYTES) - 1), st.integers(1, 255))
def test_a_flipped_byte_is_noticed(at: int, flip: int) -> None:
    broken = bytearray(BYTES)
    broken[at] ^= flip
    with pytest.raises(ProtocolError, match="no sync record"):
        decode_sync(bytes(broken), identity=IDENTITY)


@given(st.integers(0, len(BYTES) - 1))
def test_a_record_that_was_cut_is_noticed(length: int) -> None:
    with pytest.raises(ProtocolError, match="no sync record"):
        decode_sync(BYTES[:length], identity=IDENTITY)


@examples(200)
@given(st.binary(max_size=60), st.binary(max_size=20))
def test_any_bytes_with_the_right_checksum_are_read_or_refused(raw: bytes, body: bytes) -> None:
    for data in (raw, sealed(raw, body)):
        with pytest.raises(ProtocolError, match="no sync record"):
            decode_sync(data, identity=IDENTITY)


def test_a_header_that_is_longer_than_its_record_is_refused() -> None:
    data = struct.pack("<I", 1_000) + b"{}"
    with pytest.raises(ProtocolError, match="header is longer than itself"):
        decode_sync(data + struct.pack("<I", zlib.crc32(data)), identity=IDENTITY)


def test_records_of_another_query_and_of_another_version_are_refused() -> None:
    with pytest.raises(IncompatibleStateError, match="another query or of other settings"):
        decode_sync(BYTES, identity="another one")
    later = {**header(v=SYNC_VERSION + 1), "unheard of": 1}
    with pytest.raises(IncompatibleStateError, match=f"has version {SYNC_VERSION + 1}, this evenflow reads"):
        decode_sync(sealed(later), identity=IDENTITY)


@pytest.mark.parametrize(
    "changed",
    [
        {"kind": "question"},
        {"kind": "message"},
        {"kind": None},
        {"session": 0},
        {"session": 2**63},
        {"source": -1},
        {"source": True},
        {"source": 5_000},
        {"round": -1},
        {"round": LAST_ROUND + 1},
        {"round": 1.0},
        {"sources": []},
        {"sources": [2, 0]},
        {"sources": [1, 1]},
        {"sources": [-1, 0]},
        {"sources": list(range(5_000))},
        {"sources": "0"},
        {"time": 2**63},
        {"time": "now"},
        {"identity": 5},
        {"identity": "x" * 101},
        {"more": 1},
        {"v": 0},
        {"v": "1"},
    ],
)
def test_a_header_with_other_values_is_refused(changed: dict[str, Any]) -> None:
    assert decode_sync(sealed(header()), identity=IDENTITY).session == 7
    with pytest.raises(ProtocolError, match="no sync record"):
        decode_sync(sealed(header(**changed)), identity=IDENTITY)


def test_a_message_is_of_one_source_which_is_its_own() -> None:
    mine = header(kind="message", sources=[2])
    assert decode_sync(sealed(mine, b"b"), identity=IDENTITY).payload == Message(2, 5, b"b")
    for sources in ([1], [1, 2]):
        with pytest.raises(ProtocolError, match="a message is of one source, its own"):
            decode_sync(sealed({**mine, "sources": sources}), identity=IDENTITY)
