"""A derived text that is too long for its column is not made first. Nothing else is computed differently."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.expressions import engine
from evenflow.expressions.engine import Engine
from evenflow.settings import Settings
from tests.examples import examples

_CODE = """
from evenflow.settings import Settings
from partitioner_service.reading.parse import Parser
from tests.peak_memory import peak
query = {{
    "window": 10, "key": "long", "time": "@timestamp",
    "columns": {{"long": {text!r}}},
}}
parser = Parser(Settings(query=query, input={{"partitions": 1, "format": "text"}}))
parser.parse([b"a"], timestamps=[7])  # what compiles and imports counts before
record = b"ax" * (12 * 2**20)
before = peak()
parsed = parser.parse([record], timestamps=[7])
print(dict(parsed.bad)[0])
print((peak() - before) // 1024)
"""


@pytest.mark.parametrize(
    "text",
    [
        "replace(value, 'x', 'xxxxxxxxxxxxxxxxxxxx')",
        "upper(replace(value, 'a', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'))",
        " || ".join(["value"] * 12),
        "replace(value, 'x', 'xxxxxxxxxx') || 'b' || (value)",
    ],
)
def test_a_derived_text_that_is_too_long_is_not_made(text: str) -> None:
    """Of 24 MiB it would be 240 MiB and more."""
    child = subprocess.run(
        [sys.executable, "-c", _CODE.format(text=text)], capture_output=True, text=True, check=True
    )
    why, taken = child.stdout.splitlines()
    assert why == "derived column 'long' has a value that text cannot hold"
    assert int(taken) < 10 * 24, "MiB"


_TEXTS = st.none() | st.text(st.sampled_from("aAxßİΐKﬁ𝒳 "), max_size=12)
_COLUMNS = {
    "once": "replace(a, 'x', 'yyy')",
    "fewer": "replace(a, 'xx', 'y')",
    "overlapping": "replace((a), 'aa', 'aaaaa')",
    "gone": "replace(a, 'a', '')",
    "twice": "replace(replace(a, 'x', 'aa'), 'a', 'xß')",
    "shorter": "replace(replace(a, 'x', 'aaa'), 'aaa', 'x') || a",
    "joined": "a || b || 'ß' || (a || CAST(n AS VARCHAR))",
    "large": "upper(a || b)",
    "small": "lower(upper(a)) || trim(b)",
    "chosen": "CASE WHEN n > 1 THEN a || a || a ELSE coalesce(b, a) END || b",
    "again": "once || replace(joined, 'x', 'xxx')",
    "number": "length(a || a)",
}


@examples(200)
@given(st.lists(st.tuples(_TEXTS, _TEXTS, st.none() | st.integers(0, 3)), min_size=1, max_size=6))
def test_what_is_known_to_be_too_long_is_what_would_have_been(
    rows: list[tuple[str | None, str | None, int | None]],
) -> None:
    query = {
        "window": 10,
        "key": "a",
        "time": "t",
        "columns": _COLUMNS,
        "where": "length(again) > 2",
        "types": {"a": "string", "b": "string", "n": "int64"},
        "aggregates": {name: f"max({name})" if name == "number" else f"last({name})" for name in _COLUMNS},
    }
    computing = Engine(Settings(query=query, input={"partitions": 1}).query.resolved)
    kinds = {"a": pa.string(), "b": pa.string(), "n": pa.int64()}
    columns = {
        name: pa.array([row[place] for row in rows], kind) for place, (name, kind) in enumerate(kinds.items())
    }

    def computed() -> Any:
        values, wrong, chosen = computing.compute(columns, len(rows))
        assert chosen is not None
        return (
            {name: column.to_pylist() for name, column in values.items()},
            {name: which.tolist() for name, which in wrong.items()},
            chosen.tolist(),
        )

    for most in (0, 3, 8, 20):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(engine, "DERIVED_BYTES", most)
            first = computed()
            patch.setattr(Engine, "_too_long", lambda *_: None)
            assert computed() == first
