"""Bytes that a decoder of any topic may meet; each must be read, rejected or refused, never end a process."""

from __future__ import annotations

import json
from typing import Any

DEEP = 200_000


NUMBERS: list[bytes] = [
    word.encode()
    for word in (
        "1.5", "1.0", "true", '"1"', "1e400", "-1e400", "1e23", "NaN", "Infinity", "-Infinity", "[]", "{}",
        "[1]",
        str(2**63), str(-(2**63) - 1), "9" * 3_000, "9" * 5_000, '"\\ud800"',
    )
]  # fmt: skip
"""JSON values that are no int64."""

BYTES: list[bytes] = [
    b"",
    b"\x00",
    b"\xff\xfe\x00\x00",
    b"\xef\xbb\xbf{}",
    b"no JSON",
    b"null",
    b"[]",
    b"{}",
    b'"text"',
    b"{",
    b'{"v":1,"v":2}',
    b'{"v":{"v":{"v":{"v":{"v":{"v":{}}}}}}}',
    b"[" * DEEP,
    b'{"v":' * DEEP,
    b"[" * DEEP + b"]" * DEEP,
    b'{"v":' * DEEP + b"1" + b"}" * DEEP,
    '{"v":1}'.encode("utf-16"),
    '{"v":1}'.encode("utf-32"),
    b'{"\xff":1}',
    b'{"\\ud800":1}',
    b'{"v":"' + b"x" * 100_000 + b'"}',
    b'{"epoch":1e400}',
    b'{"epoch":1e400,"p":1,"effective_from":0}',
    *NUMBERS,
    b"ARROW1\x00\x00",
    b"\xff\xff\xff\xff\x00\x00\x00\x00",
    b"\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"\xff\xff\xff\x7f",
    b"\x28\xb5\x2f\xfd\x04\x00",
    b"\x04\x22\x4d\x18\x60\x40\x82",
    b"\x78\x9c",
    bytes(range(256)) * 4,
]
"""Hostile whatever they are given to: too deep, too long, other types, other encodings, heads of binary
formats.
"""


def with_a_wrong_number(valid: bytes, name: str) -> list[bytes]:
    """A valid JSON object whose field `name` is missing, there twice, or no int64."""
    fields: dict[str, Any] = json.loads(valid)
    twice = valid[:-1] + b", " + json.dumps({name: fields.pop(name)}).encode()[1:]
    without = json.dumps(fields).encode()
    head = without[:-1] + b", " + json.dumps(name).encode() + b": "
    return [without, twice, *(head + word + b"}" for word in NUMBERS)]
