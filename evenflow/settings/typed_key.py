"""A key as a person types it, as the bytes that the key is between the parts of a pipeline.

The person types the key as it stands in results: text as it is, a whole number in digits, a date as
`2026-01-31`, true or false. A key of several columns is typed as a JSON array of its parts, such as
`["DE",5]`.
"""

from __future__ import annotations

import json
import re
from datetime import date
from typing import Any

import pyarrow as pa

from evenflow.errors import ConfigError
from evenflow.settings.sections.query import Query
from evenflow.text.json_text import arrays

_WHOLE = re.compile(r"-?[0-9]{1,19}")
_EXAMPLES: dict[str, Any] = {"int64": 5, "bool": True, "date": "2026-01-31"}
_ARROW = {"int64": pa.int64(), "bool": pa.bool_(), "date": pa.date32(), "string": pa.string()}


def key_bytes(query: Query, typed: bytes) -> bytes:
    """The key that was typed. Any bytes are a key of `key = "@key"`.

    Raises ConfigError, with the form in `hint`, for what cannot be a key of this query.
    """
    key = typed if query.key_kind == "raw" else _of_columns(query, typed)
    most, setting = longest_key(query)
    if len(key) > most:
        raise ConfigError(
            f"the key has {len(key):,} bytes, and {setting} is {most:,}",
            hint="records with such a key are rejected",
        )
    return key


def longest_key(query: Query) -> tuple[int, str]:
    """Bytes that a key of this query or view may have, and the setting that says so."""
    # A view with a key of its own groups by columns that the frames carry as values.
    own = query.own_key is not None or query.summary is not None
    return (query.max_value_bytes, "max_value_bytes") if own else (query.max_key_bytes, "max_key_bytes")


def example(query: Query) -> str:
    """What a key of this query looks like when it is typed."""
    if query.key_kind == "raw":
        return "any bytes"
    examples = [_EXAMPLES.get(kind, "DE") for kind in query.group_types.values()]
    if len(examples) > 1:
        return json.dumps(examples, separators=(",", ":"))
    return examples[0] if isinstance(examples[0], str) else json.dumps(examples[0])


def _of_columns(query: Query, typed: bytes) -> bytes:
    names, kinds = query.group_columns, list(query.group_types.values())
    try:
        text = typed.decode()
        values = [text] if len(names) == 1 else json.loads(text)
        if not isinstance(values, list) or len(values) != len(names):
            raise ValueError(f"a key has {len(names)} columns ({query.key_name})")
        read = _from_text if len(names) == 1 else _from_json
        columns = [
            pa.array([read(value, kind)], _ARROW[kind]) for value, kind in zip(values, kinds, strict=True)
        ]
        keys = columns[0].cast(pa.string()) if len(columns) == 1 else arrays(columns)
        key: bytes = keys.cast(pa.binary())[0].as_py()
    # pa.ArrowInvalid is a ValueError. A number beyond int64 is an OverflowError, and too deep JSON a
    # RecursionError.
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        reason = "it is not UTF-8" if isinstance(error, UnicodeError) else str(error).splitlines()[0][:200]
        raise ConfigError(
            f"this is no key of {query.name} ({query.key_name}): {reason}",
            hint=f"type the key as it stands in results, such as {example(query)}"
            if len(names) == 1
            else f"type the parts of the key as a JSON array, such as {example(query)}",
        ) from None
    return key


def _from_text(value: str, kind: str) -> Any:
    if kind == "int64":
        if not _WHOLE.fullmatch(value):
            raise ValueError("it is not a whole number")
        return int(value)
    if kind == "bool":
        if value not in ("true", "false"):
            raise ValueError("it is neither true nor false")
        return value == "true"
    return date.fromisoformat(value) if kind == "date" else value


def _from_json(value: Any, kind: str) -> Any:
    python_type: type[Any] = {"int64": int, "bool": bool}.get(kind, str)
    # True is a whole number in Python.
    if type(value) is not python_type:
        raise ValueError(f"{json.dumps(value)[:50]} is not of type {kind}")
    return date.fromisoformat(value) if kind == "date" else value
