"""Frames and blobs read back as what they were, and any other bytes are refused with a reason."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import IncompatibleStateError, ProtocolError
from evenflow.numeric.arrays import records
from evenflow.wire import (
    LANE,
    MARKS,
    OFFSETS,
    SEQUENCE,
    TOTAL,
    Piece,
    Segment,
    cut,
    decode_blob,
    decode_frame,
    encode_blob,
    encode_frame,
    records_of,
)
from evenflow.wire.envelope import Packer
from tests.unit.wire.examples import (
    a_blob,
    a_frame,
    a_shared_frame,
    blob_header,
    blob_rows,
    frame_header,
    frame_rows,
)

BOTH = [(a_frame, decode_frame), (a_shared_frame, decode_frame), (a_blob, decode_blob)]


def test_a_frame_reads_back_as_what_it_was() -> None:
    frame = decode_frame(a_frame(), fingerprint="f")
    assert frame.batch.equals(frame_rows())
    assert (frame.part, frame.parts, frame.sequence) == (0, 1, 2**40)
    assert frame.header.session == 2**63 - 2
    assert frame.header.totals.tolist() == [(5, 3), (2**63 - 2, 9)]
    assert frame.header.offsets.tolist() == [(0, 5, 9), (3, 0, 0)]
    assert frame.header.marks.tolist() == [(0, 1000, 10), (3, -5, 1)]
    assert (frame.header.epoch, frame.header.input_partitions, frame.header.routed_partitions) == (2, 4, 3)


@pytest.mark.parametrize("held", [bytes, pa.py_buffer, lambda data: pa.py_buffer(b"x" + data).slice(1)])
def test_a_shared_frame_says_which_rows_are_whose(held: Callable[[bytes], Any]) -> None:
    frame = decode_frame(held(a_shared_frame()), fingerprint="f")
    assert frame.batch.equals(frame_rows())
    assert frame.segments is not None
    assert (frame.header.shared_by, frame.segments.tolist()) == (3, [2, 0, 3])
    assert frame.workers(1) == {1: 2, 7: 3}
    assert frame.row_workers(1).tolist() == [1, 1, 7, 7, 7]
    alone = decode_frame(a_frame(), fingerprint="f")
    assert (alone.segments, alone.workers(1)) == (None, {1: 5})


@pytest.mark.parametrize("segments", [[2, 0, 2], [5, 1, 0], [2**32 - 1, 2, 4]])
def test_segments_that_are_not_the_rows_are_refused(segments: list[int]) -> None:
    data = encode_frame(frame_rows(), frame_header(shared_by=3), sequence=0, segments=np.array(segments))
    with pytest.raises(ProtocolError, match="its segments have"):
        decode_frame(data, fingerprint="f")


@pytest.mark.parametrize("claimed", [2, 4, 4_096])
def test_a_frame_with_other_segments_than_its_header_claims_is_refused(claimed: int) -> None:
    header = frame_header(shared_by=claimed)
    with pytest.raises(ProtocolError):
        decode_frame(encode_frame(frame_rows(), header, sequence=0), fingerprint="f")
    for wrong in ([5], [5] + claimed * [0]):
        data = encode_frame(frame_rows(), header, sequence=0, segments=np.array(wrong))
        with pytest.raises(ProtocolError):
            decode_frame(data, fingerprint="f")


@pytest.mark.parametrize("claimed", [0, 1, -3, 4_097])
def test_a_number_of_workers_that_cannot_share_a_partition_is_refused(claimed: int) -> None:
    data = encode_frame(frame_rows(), frame_header(shared_by=claimed or 0), sequence=0)
    if claimed == 1:
        assert decode_frame(data, fingerprint="f").header.shared_by == 1
        return
    with pytest.raises(ProtocolError):
        decode_frame(data, fingerprint="f")


def test_a_blob_reads_back_as_what_it_was() -> None:
    blob, header = decode_blob(a_blob(), fingerprint="f"), blob_header()
    assert blob.batch.equals(blob_rows())
    assert blob.header.segments == header.segments
    assert blob.header.marks.tolist() == header.marks.tolist()
    assert blob.header.lanes.tolist() == header.lanes.tolist()
    assert blob.header.sequences.tolist() == header.sequences.tolist()


def test_a_piece_reads_back_as_what_it_was_and_its_segments_count_no_rows() -> None:
    segments = tuple(segment._replace(total=0, begin=0, rows=0) for segment in blob_header().segments)
    header = blob_header(piece=Piece(1, 3), segments=segments)
    read = decode_blob(encode_blob(blob_rows(), header, part=1, parts=2), fingerprint="f")
    assert (read.header.piece, read.header.segments, read.header.for_task) == (Piece(1, 3), segments, False)
    assert (read.part, read.parts, read.batch) == (1, 2, blob_rows())
    assert decode_blob(encode_blob(blob_rows(), blob_header(for_task=True)), fingerprint="f").header.for_task
    for wrong in ({"piece": Piece(1, 3)}, {"piece": Piece(3, 3), "segments": segments}):
        with pytest.raises(ProtocolError):
            decode_blob(encode_blob(blob_rows(), blob_header(**wrong)), fingerprint="f")


@pytest.mark.parametrize(("make", "decode"), BOTH, ids=["frame", "shared", "blob"])
def test_any_arrow_library_reads_the_rows(make: Callable[[], bytes], decode: Any) -> None:
    table = pa.ipc.open_stream(make()).read_all()
    assert table.to_batches()[0].equals(decode(make(), fingerprint="f").batch)


@pytest.mark.parametrize(("make", "decode"), BOTH, ids=["frame", "shared", "blob"])
def test_every_flipped_byte_and_every_missing_end_is_noticed(make: Callable[[], bytes], decode: Any) -> None:
    data = make()
    for at in range(len(data)):
        with pytest.raises(ProtocolError, match="checksum"):
            decode(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :], fingerprint="f")
        with pytest.raises(ProtocolError):
            decode(data[:at], fingerprint="f")


@pytest.mark.parametrize(("make", "decode"), BOTH, ids=["frame", "shared", "blob"])
@given(st.data())
def test_bytes_changed_by_who_knows_the_checksum_are_read_or_refused(
    make: Callable[[], bytes], decode: Any, data: st.DataObject
) -> None:
    """Arrow's own reader and `validate` stand behind the checksum: nothing reaches a kernel unchecked."""
    body = bytearray(make()[:-4])
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    with suppress(ProtocolError, IncompatibleStateError):
        decode(bytes(body) + struct.pack("<I", zlib.crc32(body)), fingerprint="f")


def test_a_key_offset_that_points_outside_is_refused_before_any_kernel_sees_it() -> None:
    data = a_frame()
    good = np.array([0, 1, 3, 3, 4, 5], np.int32).tobytes()
    bad = np.array([0, 1, 3, 3, 4_000_000, 5], np.int32).tobytes()
    assert data.count(good) == 1
    body = data[:-4].replace(good, bad)
    with pytest.raises(ProtocolError, match="offset"):
        decode_frame(body + struct.pack("<I", zlib.crc32(body)), fingerprint="f")


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(data: bytes) -> None:
    for decode in (decode_frame, decode_blob):
        with pytest.raises(ProtocolError, match="is no evenflow"):
            decode(data, fingerprint="f")


def test_another_kind_query_or_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProtocolError, match="no evenflow blob"):
        decode_blob(a_frame(), fingerprint="f")
    with pytest.raises(IncompatibleStateError, match="written for query f, but this is query g"):
        decode_frame(a_frame(), fingerprint="g")
    monkeypatch.setattr("evenflow.wire.envelope.WIRE_VERSION", 1)
    old = encode_frame(frame_rows(), frame_header(epoch=99), sequence=0)
    monkeypatch.undo()
    with pytest.raises(IncompatibleStateError, match="version 1, this evenflow reads version 3"):
        decode_frame(old, fingerprint="f")


@pytest.mark.parametrize(
    "fields",
    [
        {"offsets": records_of([(4, 0, 0)], OFFSETS)},
        {"offsets": records_of([(0, 0, 0), (0, 1, 1)], OFFSETS)},
        {"offsets": records_of([(0, 5, 4)], OFFSETS)},
        {"marks": records_of([(-1, 0, 0)], MARKS)},
        {"epoch": -1},
        {"epoch": 1.5},
        {"epoch": True},
        {"input_partitions": 0},
        {"fingerprint": 7},
        {"session": 0},
        {"session": 2**63},
        {"totals": records_of([(0, 1)], TOTAL)},
        {"totals": records_of([(1, 0)], TOTAL)},
        {"totals": records_of([(n, 1) for n in range(1, 7)], TOTAL)},
    ],
)
def test_a_frame_that_cannot_be_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises((ProtocolError, IncompatibleStateError)):
        decode_frame(encode_frame(frame_rows(), frame_header(**fields), sequence=0), fingerprint="f")


@pytest.mark.parametrize(
    "fields",
    [
        {"segments": (Segment(3, 0, 0, 4, 0, 4, 0),)},
        {"segments": (Segment(0, 5, 4, 4, 0, 4, 0),)},
        {"segments": (Segment(0, 0, 0, 3, 0, 4, 0),)},
        {"segments": (Segment(0, 0, 0, 4, 0, 4, 2),)},
        {"segments": (Segment(0, 0, 0, 3, 0, 3, 0),)},
        {"segments": (Segment(0, 0, 0, -4, 0, -4, 0),)},
        {"lanes": records_of([(0, 4, 0, 0)], LANE)},
        {"sequences": records_of([(3, 1, 0, 0, 0)], SEQUENCE)},
        {"sequences": records_of([(0, 0, 0, 0, 0)], SEQUENCE)},
        {"sequences": records_of([(0, 1, 1, 0, 0)], SEQUENCE)},
        {"sequences": records_of([(0, 1, -1, 0, 0)], SEQUENCE)},
        {"sequences": records_of([(0, 1, -2, -2, 0)], SEQUENCE)},
        {"sequences": records_of([(0, 1, 0, 0, -1)], SEQUENCE)},
        {"sequences": records_of([(0, 1, 0, 2**62, 0)], SEQUENCE)},
        {"bucket": 2},
        {"topic_id": None},
        {"marks": np.array([[1, 2, 3]])},
    ],
)
def test_a_blob_that_cannot_be_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError):
        decode_blob(encode_blob(blob_rows(), blob_header(**fields)), fingerprint="f")


@pytest.mark.parametrize("header", [b"[]", b"{", b"[" * 100_000, b'{"v":3,"kind":"frame"}', b"\xff"])
def test_a_header_that_is_none_is_refused(header: bytes) -> None:
    packer = Packer(frame_rows().schema, kind="frame", fields={})
    schema = frame_rows().schema.with_metadata({b"evenflow": header})
    packer._prefix = schema.serialize().to_pybytes()
    packer._checked = zlib.crc32(packer._prefix)
    with pytest.raises(ProtocolError, match=r"^(?!.*checksum)"):
        decode_frame(packer.pack(frame_rows(), sequence=0), fingerprint="f")


def test_parts_of_a_batch_are_near_the_size_whatever_the_types() -> None:
    batch = pa.record_batch(
        {
            "key": pa.array([b"x" * (n % 50) for n in range(1_000)], pa.large_binary()),
            "wide": pa.array([None] * 1_000, pa.decimal128(38, 0)),
        }
    )
    parts = list(cut(batch, 2_000))
    assert pa.Table.from_batches(parts).combine_chunks().to_batches()[0].equals(batch)
    assert all(part.num_rows == 1 or part.get_total_buffer_size() for part in parts)
    assert 15 < len(parts) < 40


def _resealed(body: bytes) -> bytes:
    return body + struct.pack("<I", zlib.crc32(body))


def test_a_column_name_that_is_no_text_is_refused() -> None:
    body = a_frame()[:-4]
    assert body.count(b"pane") == 1
    with pytest.raises(ProtocolError, match="utf-8"):
        decode_frame(_resealed(body.replace(b"pane", b"\xffane")), fingerprint="f")


def test_compressed_rows_are_refused_before_anything_is_made_of_their_claims() -> None:
    batch, sink = frame_rows(), pa.BufferOutputStream()
    packer = Packer(batch.schema, kind="frame", fields={})
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)
    plain = a_frame()
    prefix = plain[: 8 + struct.unpack_from("<iI", plain)[1]]
    stream = sink.getvalue().to_pybytes()
    rows = stream[8 + struct.unpack_from("<iI", stream)[1] :]
    assert packer.pack(batch, sequence=0)
    with pytest.raises(ProtocolError, match="compressed"):
        decode_frame(_resealed(prefix + rows + struct.pack("<IIq", 0, 1, 0)), fingerprint="f")


def test_more_numbers_than_there_can_be_are_refused() -> None:
    many = records(5, MARKS)
    with pytest.raises(ProtocolError, match="more than 4 rows"):
        decode_frame(encode_frame(frame_rows(), frame_header(marks=many), sequence=0), fingerprint="f")
