"""End-of-stream markers, read strictly and by other code than the partitioner's.

A record without key and value whose first header of this name holds an object of exactly three fields: who ended
(`producer`), how many tuples it wrote here (`tuples`), how many producers were announced (`producers`). Anything
else marks nothing: the partitioner takes such a record for an unreadable one, and so does verify.
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
    """The marker in these headers as INPUT_SCHEMA has it. None when there is none or it is damaged."""
    for name, value in headers or ():
        if name == _HEADER:
            return _decoded(value)
    return None


def _decoded(value: bytes | str | None) -> dict[str, Any] | None:
    raw = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    if raw is None or len(raw) > _LONGEST:
        return None
    try:
        # pairs, so that a field that is there twice is seen
        pairs = json.loads(raw.decode(), object_pairs_hook=lambda found: ("object", found))
    except (ValueError, RecursionError):
        return None
    if not isinstance(pairs, tuple) or len(pairs[1]) != 3:
        return None
    fields = dict(pairs[1])
    if fields.keys() != {"producer", "tuples", "producers"}:
        return None
    producer = fields["producer"]
    if type(producer) is not str or not _PRODUCER.fullmatch(producer):
        return None
    for name, (least, most) in _BOUNDS.items():
        if type(fields[name]) is not int or not least <= fields[name] <= most:
            return None
    return {name: fields[name] for name in ("producer", "tuples", "producers")}
