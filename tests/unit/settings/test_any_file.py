"""Any settings file is read or refused in words: real names with wild values, any bytes, and whatever
nests.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel

from evenflow.errors import ConfigError
from evenflow.settings import Settings, load_settings
from tests.examples import examples
from tests.hostile import BYTES


def _tables(model: type[BaseModel], depth: int = 0) -> dict[str, Any]:
    """Name -> the table below it, None for a plain setting."""
    result: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        kinds = [kind for kind in (field.annotation, *get_args(field.annotation)) if isinstance(kind, type)]
        inner = next((kind for kind in kinds if issubclass(kind, BaseModel)), None)
        result[name] = _tables(inner, depth + 1) if inner is not None and depth < 4 else None
    return result


TABLES = _tables(Settings)
PLAIN = st.one_of(
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.integers(-2, 10),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(
        ["", "0s", "1s", "10m", "-1s", "1e9999d", "99999999999999h", "key", "@key", "@timestamp", "json",
        "csv", "avro",
         "none", "changes", "top(3, n)", "top(", "count", "sum(v)", "quantile(v, 0.5)", "quantile(v, 9)",
         "collect(v, 10)",
         "a + b", "a.b.c", "((((", "split(tags, ';')", "decimal(2)", "int64", "http://x:1", "127.0.0.1:9092",
         ",,",
         "\x00", "\ud7ff", "é" * 50, "2026-01-01T00:00:00Z", "fused", "frames", "evenflow", "d-choices", "/",
         "s3a://x/y"]
    ),
)  # fmt: skip
NAMES = st.sampled_from(
    ["v", "n", "a.b", "", "window", "é", "x" * 100, "v'", 'v"', "__class__", "model_config"]
) | st.text(max_size=6)
VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=6
)


def _content(tables: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Some of these settings with any values, and at times a name that does not exist."""
    each = {
        name: VALUES if inner is None else _content(inner) | (VALUES if len(inner) else st.nothing())
        for name, inner in tables.items()
    }
    known = st.lists(st.sampled_from(sorted(each)), max_size=4, unique=True).flatmap(
        lambda names: st.fixed_dictionaries({name: each[name] for name in names})
    )
    return st.tuples(known, st.dictionaries(NAMES, VALUES, max_size=1)).map(
        lambda both: {**both[1], **both[0]}
    )


def _toml(value: Any) -> str:
    """A value as TOML, tables inline."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return (
            repr(value) if "e" not in repr(value) or "." in repr(value) else repr(value).replace("e", ".0e")
        )
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {_toml(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value) if isinstance(value, str) else str(value)


def _read(data: bytes, suffix: str = ".toml") -> Settings | None:
    """The settings of a file with these bytes, None if they were refused as they must be."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"some{suffix}"
        path.write_bytes(data)
        refused: ConfigError | None = None
        try:
            return load_settings(path)
        except ConfigError as error:
            refused = error
    assert refused.hint
    assert len(str(refused)) < 20_000
    str(refused).encode()
    return None


@given(_content(TABLES))
@examples(200)
@example({"query": {"name": "q", "aggregates": {"n": "count"}}})
@example({"query": []})
@example({"input": {"registry": {"url": "http://x:1", "usrname": "u"}}})
@example({"kafka": {"extras": {"sprk": 1}}})
@example({"query": {"views": {"a": {"nothing": 1}}}})
@example({"query": {"views": {"a": 1, "": {"x": {}}}}})
@example({"kafka": {"extras": {"librdkafka": {"acks": {}}}}})
def test_any_values_of_any_settings_are_taken_or_refused(content: dict[str, Any]) -> None:
    lines = [f"{json.dumps(name)} = {_toml(value)}" for name, value in content.items()]
    _read("\n".join(lines).encode())
    _read(json.dumps(content).encode(), ".json")


@given(
    st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass"))
)
@examples(150)
@example(b"a = " + b"[" * 5_000)
@example(b"a = " + b"9" * 5_000)
@example(b'{"query": ' * 5_000)
@example(b"[1]")
@example(b"7")
@example(b"null")
@example(b'"text"')
def test_any_bytes_are_taken_or_refused(data: bytes) -> None:
    _read(data)
    _read(data, ".json")


@pytest.mark.parametrize("number", range(len(BYTES)))
def test_hostile_bytes_are_taken_or_refused(number: int) -> None:
    _read(BYTES[number])
    _read(BYTES[number], ".json")
