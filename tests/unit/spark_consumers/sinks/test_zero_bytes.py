"""Any text comes back from Postgres as it was, and none has a zero byte there."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.text.zero_bytes import GROWTH, original, storable

_TEXTS = st.text(st.sampled_from("ab01\0\x1a\x1bü"), max_size=8)


@given(st.lists(st.none() | _TEXTS))
def test_a_text_comes_back_as_it_was_and_different_ones_stay_different(texts: list[str | None]) -> None:
    column = pa.array(texts, pa.string())
    stored = storable(column)
    assert original(stored).equals(column)
    assert not any("\0" in text for text in stored.to_pylist() if text is not None)
    assert len(set(stored.to_pylist())) == len(set(texts))
    for text, longer in zip(texts, stored.to_pylist(), strict=True):
        assert text is None or len(longer.encode()) <= GROWTH * len(text.encode())


@given(st.lists(st.none() | st.lists(st.none() | _TEXTS, max_size=4)), st.integers(0, 2))
def test_so_does_a_list_of_texts(lists: list[list[str | None] | None], first: int) -> None:
    column = pa.array(lists, pa.list_(pa.string())).slice(first)
    assert original(storable(column)).to_pylist() == column.to_pylist()


def test_a_text_without_a_zero_byte_is_stored_as_it_is() -> None:
    assert storable(pa.array(["Zürich", "", None])).to_pylist() == ["Zürich", "", None]
    assert storable(pa.array(["a\0b\x1a"])).to_pylist() == ["a\x1a0b\x1a1"]


@pytest.mark.parametrize("column", [pa.array([1, None]), pa.array([b"a\0"]), pa.array([[1], None])])
def test_other_columns_stay_as_they_are(column: pa.Array) -> None:
    assert storable(column) is column
    assert original(column) is column
