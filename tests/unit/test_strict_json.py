"""JSON of others is refused for its depth before it is parsed, in one pass over it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenflow.text.strict_json import NotStrict, read_object
from tests.examples import examples

TEXTS = st.text(st.sampled_from('"\\[]{}a\n\u00e9'), max_size=8)
TREES = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)


def depth_of(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    return 1 + max(map(depth_of, value), default=0) if isinstance(value, list) else 0


@examples(300)
@given(st.dictionaries(TEXTS, TREES, max_size=3), st.integers(0, 5), st.booleans())
@example({'\\"[': '"{['}, 1, False)
@example({"\\": ["\\", [r"\\"]]}, 2, True)
def test_valid_json_is_refused_exactly_if_it_is_nested_more_deeply(
    fields: dict[str, Any], depth: int, ascii_only: bool
) -> None:
    text = json.dumps(fields, ensure_ascii=ascii_only)
    if depth_of(fields) <= depth:
        assert read_object(text, most_bytes=1_000_000, depth=depth).fields == fields
    else:
        with pytest.raises(NotStrict, match=f"nested more than {depth} deep"):
            read_object(text, most_bytes=1_000_000, depth=depth)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("end", [b"", b"\\", b"[", b"]"])
@pytest.mark.parametrize("piece", [b'\\"', b'"\\', b'""\\"', b"a", b"\\\\"])
def test_a_string_without_an_end_is_read_over_once(piece: bytes, end: bytes) -> None:
    """In a time that grows with the square of its length, a million bytes take an hour."""
    data = b'{"a":[[[[[' + b'"' + piece * (1_000_000 // len(piece)) + end
    with pytest.raises(NotStrict):
        read_object(data, most_bytes=len(data), depth=10)
    with pytest.raises(NotStrict, match="nested more than 4 deep"):
        read_object(data, most_bytes=len(data), depth=4)
