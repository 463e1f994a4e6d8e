"""End-of-stream markers, read strictly and by other code than the partitioner's.

A marker is a record without key and value. Its first header of the marker's name holds an object of exactly
three fields: who has ended (`producer`), how many tuples this producer wrote to the partition (`tuples`), and
how many producers were announced (`producers`). Any other record without key and value is unreadable, for the
partitioner and for verify.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

_HEADER = "evenflow-end-of-stream"
_PRODUCER = re.compile(r"[A-Za-z0-9._-]{1,24}")
_LONGEST = 1_000
_BOUNDS = {"tuples": (0, 2**62), "producers": (1, 16)}


def marker_of(headers: Sequence[tuple[str, bytes | str | None]] | None) -> dict[str, Any] | None:
    """The marker in these headers, with the fields of INPUT_SCHEMA.
    None if there is no marker or it is damaged.
    """
    for name, value in headers or ():
        if name == _HEADER:
            return _decoded(value)
    return None


def _decoded(value: bytes | str | None) -> dict[str, Any] | None:
    raw = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    if raw is None or len(raw) > _LONGEST:
        return None
    try:
        # The hook keeps the pairs, so that a repeated field is seen. The tuple tells an object from a list.
        pairs = json.loads(raw.decode(), object_pairs_hook=lambda members: ("object", members))
    except (ValueError, RecursionError):
        return None
    if not isinstance(pairs, tuple) or len(pairs[1]) != 3:
        return None
    fields = dict(pairs[1])
    if fields.keys() != {"producer", "tuples", "producers"}:
        return None
    # Exact types, not isinstance: True is an int of Python, but no number of JSON.
    producer = fields["producer"]
    if type(producer) is not str or not _PRODUCER.fullmatch(producer):
        return None
    for name, (least, most) in _BOUNDS.items():
        if type(fields[name]) is not int or not least <= fields[name] <= most:
            return None
    return {name: fields[name] for name in ("producer", "tuples", "producers")}
