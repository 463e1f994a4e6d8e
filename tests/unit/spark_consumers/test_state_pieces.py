"""Values of the reducer's state travel to Spark in pieces that its state server reads whole."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spark_consumers.reducer import MapOfBytes
from spark_consumers.sinks.base import gathered


class Map:
    """Spark's MapState as far as it is used: a dictionary that refuses what the real server damages."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}

    def getValue(self, key: tuple[str]) -> Any:  # noqa: N802
        return (self.content[key[0]],) if key[0] in self.content else None

    def updateValue(self, key: tuple[str], value: tuple[bytes]) -> None:  # noqa: N802
        assert len(value[0]) <= 40_000
        self.content[key[0]] = value[0]

    def removeKey(self, key: tuple[str]) -> None:  # noqa: N802
        self.content.pop(key[0], None)


SIZES = st.sampled_from([0, 1, 32_767, 32_768, 32_769, 65_536, 200_000])


@given(st.lists(st.tuples(st.sampled_from("ab"), st.one_of(st.none(), SIZES)), max_size=12))
def test_any_sequence_of_puts_and_deletes_is_read_back_and_leaves_nothing_behind(steps):
    expected: dict[str, bytes] = {}
    stored = Map()
    state = MapOfBytes(stored)
    for number, (name, size) in enumerate(steps):
        if size is None:
            state.delete(name)
            expected.pop(name, None)
        else:
            expected[name] = bytes([number % 251]) * size
            state.put(name, expected[name])
        assert {n: state.get(n) for n in "ab"} == {n: expected.get(n) for n in "ab"}
    pieces = sum(max(1, -(-len(value) // 32_768)) for value in expected.values())
    assert len(stored.content) == pieces


@given(st.lists(st.integers(0, 9), max_size=9), st.integers(1, 12))
def test_gathered_tables_hold_the_same_rows_in_order_and_are_few(sizes, rows):
    tables = [pa.table({"n": pa.array([number] * size, pa.int64())}) for number, size in enumerate(sizes)]
    found = list(gathered(tables, rows=rows))
    assert [n for t in found for n in t["n"].to_pylist()] == [n for t in tables for n in t["n"].to_pylist()]
    assert all(table.num_rows >= rows for table in found[:-1])
