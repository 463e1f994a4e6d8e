"""Bytes of the routed topic and the partials topic that were written once and must be read and written for
ever.

`FRAME` and `BLOB` are `examples.a_frame()` and `examples.a_blob()`, as base64.
"""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import pyarrow as pa

from evenflow.wire import decode_blob, decode_frame
from evenflow.wire.envelope import METADATA_KEY
from tests.unit.wire.examples import a_blob, a_frame

FRAME = (
    "/////yACAAAQAAAAAAAKAA4ABgAFAAgACgAAAAABBAAQAAAAAAAKAAwAAAAEAAgACgAAAEABAAAEAAAAAQAAAAwAAAAIAAwABAAIAAgA"
    "AAAUAQAABAAAAAYBAAB7InYiOjMsImtpbmQiOiJmcmFtZSIsImZpbmdlcnByaW50IjoiZiIsImVwb2NoIjoyLCJpbnB1dF9wYXJ0aXRp"
    "b25zIjo0LCJyb3V0ZWRfcGFydGl0aW9ucyI6Mywib2Zmc2V0cyI6ImVBRmpZSUFBWmlqTkNxVi8vNGNBVGlqL081UVBBTWh3RC9ZPSIs"
    "InRvbGQiOiJlQUZqWUlBQVppajlBc29RL3ZNZkRMaWc0dDhoM1A4QXp6Z1A4Zz09Iiwic2Vzc2lvbiI6OTIyMzM3MjAzNjg1NDc3NTgw"
    "NiwidG90YWxzIjoiZUFGalpZQ0FuLy9Cb0o0WnltZUQwZ0NiYkFlQiJ9AAAIAAAAZXZlbmZsb3cAAAAAAwAAAHQAAAA4AAAABAAAAKj/"
    "//8AAAEDEAAAABwAAAAEAAAAAAAAAAMAAAB2OngAAAAGAAgABgAGAAAAAAACANj///8AAAEEEAAAABgAAAAEAAAAAAAAAAMAAABrZXkA"
    "BAAEAAQAAAAQABQACAAGAAcADAAAABAAEAAAAAAAAQIQAAAAIAAAAAQAAAAAAAAABAAAAHBhbmUAAAAACAAMAAgABwAIAAAAAAAAAUAA"
    "AAAAAAAA//////gAAAAUAAAAAAAAAAwAFgAGAAUACAAMAAwAAAAAAwQAGAAAAHgAAAAAAAAAAAAKABgADAAEAAgACgAAAIwAAAAQAAAA"
    "BQAAAAAAAAAAAAAABwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACgAAAAAAAAAKAAAAAAAAAAAAAAAAAAAACgAAAAAAAAAGAAAAAAA"
    "AABAAAAAAAAAAAUAAAAAAAAASAAAAAAAAAABAAAAAAAAAFAAAAAAAAAAKAAAAAAAAAAAAAAAAwAAAAUAAAAAAAAAAAAAAAAAAAAFAAAA"
    "AAAAAAAAAAAAAAAABQAAAAAAAAABAAAAAAAAAAEAAAAAAAAAAQAAAAAAAAACAAAAAAAAAAIAAAAAAAAAAwAAAAAAAAAAAAAAAQAAAAMA"
    "AAADAAAABAAAAAUAAABhYmL/YQAAAB0AAAAAAAAAAAAAAAAA+D8AAAAAAAAAAAAAAAAAAADAAAAAAAAAAAAAAAAAAAAgQP////8AAAAA"
    "AAAAAAEAAAAAAAAAAAEAAI272Lk="
)
BLOB = (
    "/////3ACAAAQAAAAAAAKAA4ABgAFAAgACgAAAAABBAAQAAAAAAAKAAwAAAAEAAgACgAAAJABAAAEAAAAAQAAAAwAAAAIAAwABAAIAAgA"
    "AABkAQAABAAAAFcBAAB7InYiOjMsImtpbmQiOiJibG9iIiwiZmluZ2VycHJpbnQiOiJmIiwidG9waWNfaWQiOiJ0IiwiYnVja2V0Ijox"
    "LCJidWNrZXRzIjoyLCJpbnB1dF9wYXJ0aXRpb25zIjo0LCJyb3V0ZWRfcGFydGl0aW9ucyI6Mywic2VnbWVudHMiOiJlQUZqWUlBQUpp"
    "ak5ES1gvL29jQWRpai9GNVFQazJlRGlzTW9GaWdESnY4UHFoNG16d2hsQUFCc1Z4ZisiLCJtYXJrcyI6ImVBRmpaSUFBRmlqTmhNWm5S"
    "dVBEMU1Gb0FBT0FBQnM9IiwibGFuZXMiOiJlQUZqWkVBRlRGQXVNNVFHQUFCNEFBYz0iLCJzZXF1ZW5jZXMiOiJlQUZqWUlBQUppajk3"
    "ejhZMUxORCtBMHNVUEhmRVBIL2JGRCtUeWdmeW1XQXFtY0FBS2N4Ri9nPSJ9AAgAAABldmVuZmxvdwAAAAADAAAAdAAAADgAAAAEAAAA"
    "qP///wAAAQIQAAAAGAAAAAQAAAAAAAAABAAAAHJvd3MAAAAAmP///wAAAAFAAAAA2P///wAAARMQAAAAGAAAAAQAAAAAAAAAAwAAAGtl"
    "eQAEAAQABAAAABAAFAAIAAYABwAMAAAAEAAQAAAAAAABAhAAAAAgAAAABAAAAAAAAAAEAAAAcGFuZQAAAAAIAAwACAAHAAgAAAAAAAAB"
    "QAAAAAAAAAD/////+AAAABQAAAAAAAAADAAWAAYABQAIAAwADAAAAAADBAAYAAAAcAAAAAAAAAAAAAoAGAAMAAQACAAKAAAAjAAAABAA"
    "AAAEAAAAAAAAAAAAAAAHAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAIAAAAAAAAAAgAAAAAAAAAAAAAAAAAAAAIAAAAAAAAAAoAAAA"
    "AAAAAEgAAAAAAAAABAAAAAAAAABQAAAAAAAAAAAAAAAAAAAAUAAAAAAAAAAgAAAAAAAAAAAAAAADAAAABAAAAAAAAAAAAAAAAAAAAAQA"
    "AAAAAAAAAAAAAAAAAAAEAAAAAAAAAAAAAAAAAAAAAQAAAAAAAAACAAAAAAAAAAIAAAAAAAAAAwAAAAAAAAAAAAAAAAAAAAEAAAAAAAAA"
    "AwAAAAAAAAADAAAAAAAAAAQAAAAAAAAAYWJi/wAAAAABAAAAAAAAAAIAAAAAAAAAAwAAAAAAAAAEAAAAAAAAAP////8AAAAAAAAAAAEA"
    "AAAAAAAAAAAAAIpR5Eg="
)


def header_of(data: bytes) -> list[tuple[str, Any]]:
    """The fields of a record's header in their order, arrays as the bytes before compression."""
    text = pa.ipc.open_stream(data).schema.metadata[METADATA_KEY]
    arrays = {"offsets", "told", "totals", "segments", "marks", "lanes", "sequences"}
    # Releases of zlib compress the same bytes in different ways, and every way is read.
    return [
        (name, zlib.decompress(base64.b64decode(value)).hex() if name in arrays else value)
        for name, value in json.loads(text).items()
    ]


def test_a_frame_is_written_as_ever() -> None:
    assert header_of(a_frame()) == header_of(base64.b64decode(FRAME))


def test_a_blob_is_written_as_ever() -> None:
    assert header_of(a_blob()) == header_of(base64.b64decode(BLOB))


def test_an_old_frame_is_read() -> None:
    old, new = (decode_frame(data, fingerprint="f") for data in (base64.b64decode(FRAME), a_frame()))
    assert old.batch.equals(new.batch)
    assert old.header.offsets.tolist() == new.header.offsets.tolist() == [(0, 5, 9), (3, 0, 0)]
    assert old.header.marks.tolist() == new.header.marks.tolist() == [(0, 1000, 10), (3, -5, 1)]
    assert old.header.totals.tolist() == new.header.totals.tolist() == [(5, 3), (2**63 - 2, 9)]
    assert (old.header.session, old.sequence) == (new.header.session, new.sequence) == (2**63 - 2, 2**40)


def test_an_old_blob_is_read() -> None:
    old, new = (decode_blob(data, fingerprint="f") for data in (base64.b64decode(BLOB), a_blob()))
    assert old.batch.equals(new.batch)
    assert old.header.segments == new.header.segments
    assert old.header.marks.tolist() == new.header.marks.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert old.header.lanes.tolist() == new.header.lanes.tolist() == [(1, 0, 2, 3)]
    assert old.header.sequences.tolist() == new.header.sequences.tolist()
