"""Values of the reducer's state travel to Spark in pieces."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import DataLossError, EvenflowError
from evenflow.twostep import merge_leaders, reduce, reduce_leaders
from spark_consumers import reducer
from spark_consumers.reducer import STATE_PIECE_BYTES, MapOfBytes
from spark_consumers.sinks.base import gathered
from tests.examples import examples
from tests.unit.twostep.pipe import INPUTS, INVERTIBLE, ROUTED, SLIDE, Pipe, feed, plan_of


class Map:
    """Spark's MapState as far as it is used: a dictionary that refuses what is larger than a piece with its
    head may be.
    """

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}

    def getValue(self, key: tuple[str]) -> Any:  # noqa: N802
        return (self.content[key[0]],) if key[0] in self.content else None

    def updateValue(self, key: tuple[str], value: tuple[bytes]) -> None:  # noqa: N802
        assert len(value[0]) <= STATE_PIECE_BYTES + 8
        self.content[key[0]] = value[0]

    def removeKey(self, key: tuple[str]) -> None:  # noqa: N802
        self.content.pop(key[0], None)


SIZES = st.sampled_from(
    [
        0,
        1,
        STATE_PIECE_BYTES - 1,
        STATE_PIECE_BYTES,
        STATE_PIECE_BYTES + 1,
        2 * STATE_PIECE_BYTES,
        3 * STATE_PIECE_BYTES + 7,
    ]
)


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
    pieces = sum(max(1, -(-len(value) // STATE_PIECE_BYTES)) for value in expected.values())
    assert len(stored.content) == pieces


@given(st.data())
def test_no_flipped_bit_of_a_piece_is_read_as_a_value(data):
    stored = Map()
    state = MapOfBytes(stored)
    state.put("a", bytes(range(256)) * 300)
    flip(stored, data)
    with pytest.raises(DataLossError, match=r"the reducer's state is damaged: .* checksum") as refused:
        state.get("a")
    assert "restore the checkpoint" in refused.value.hint


def test_a_piece_that_is_missing_or_stands_under_another_name_is_refused():
    stored = Map()
    state = MapOfBytes(stored)
    state.put("a", bytes(3 * STATE_PIECE_BYTES))
    state.put("b", bytes(3 * STATE_PIECE_BYTES))
    stored.content["a#1"] = stored.content["b#1"]
    with pytest.raises(DataLossError, match="'a#1' do not have their checksum"):
        state.get("a")
    del stored.content["b#2"]
    with pytest.raises(DataLossError, match="'b#2' is missing"):
        state.get("b")
    stored.content["b#0"] = b"\0"
    for use in (MapOfBytes.get, MapOfBytes.delete, lambda state, name: state.put(name, b"")):
        with pytest.raises(DataLossError, match="'b#0' do not have"):
            use(MapOfBytes(stored), "b")


@given(st.sampled_from([1, 100, 32_768, 2 * STATE_PIECE_BYTES]), st.sampled_from([0, 99, 100_000]))
def test_a_value_in_pieces_of_another_size_is_read_replaced_and_deleted(piece, size):
    stored = Map()
    value = bytes(range(256)) * 400
    with pytest.MonkeyPatch.context() as other:
        other.setattr(reducer, "STATE_PIECE_BYTES", piece)
        MapOfBytes(stored).put("a", value[:size])
    assert MapOfBytes(stored).get("a") == value[:size]
    copy = Map()
    copy.content = dict(stored.content)
    MapOfBytes(stored).put("a", value)
    assert MapOfBytes(stored).get("a") == value
    assert list(stored.content) == ["a#0"]
    MapOfBytes(copy).delete("a")
    assert not copy.content


def test_a_value_that_was_read_is_not_read_again_when_it_is_replaced():
    asked = []

    class Watched(Map):
        def getValue(self, key):  # noqa: N802
            asked.append(key[0])
            return super().getValue(key)

    stored = Watched()
    MapOfBytes(stored).put("a", b"before")
    state = MapOfBytes(stored)
    asked.clear()
    assert state.get("a") == b"before"
    state.put("a", b"after")
    state.delete("a")
    assert asked == ["a#0"]
    assert state.get("a") is None


def flip(stored, data):
    """Flip one bit of one piece."""
    name = data.draw(st.sampled_from(sorted(stored.content)))
    damaged = bytearray(stored.content[name])
    at = data.draw(st.integers(0, len(damaged) - 1))
    damaged[at] ^= 1 << data.draw(st.integers(0, 7))
    stored.content[name] = bytes(damaged)


def pieces_and_blobs(emit, aggregates):
    """The pieces of a bucket and of the task that merges leaders, in the middle of a stream, and what
    comes next.
    """
    pipe = Pipe(plan_of(aggregates, 4, emit=emit), buckets=1)
    stored = Map()
    for at in range(6):
        rows = [(pane, b"k%d" % (pane % 5), pane, pane / 2) for pane in range(4 * at, 4 * at + 6)]
        feed(pipe, [(at % ROUTED, rows, 4 * at * SLIDE)])
        if at < 5:
            reduced(pipe, stored, pipe.combine()[0])
    for routed in range(ROUTED):
        pipe.write(routed, [], dict.fromkeys(range(INPUTS), 2**62))
    return pipe, stored.content, pipe.combine()[0]


def reduced(pipe, stored, blobs):
    plan, layout, state = pipe.plan, pipe.layout, MapOfBytes(stored)
    if plan.emission.mode != "top":
        return reduce(plan, layout, state, blobs).to_pylist()
    merging = MapOfBytes(Under(stored, "merging/"))
    sent = list(reduce_leaders(plan, layout, state, blobs))
    return [row for table in merge_leaders(plan, layout, merging, sent) for row in table.to_pylist()]


class Under(Map):
    """A part of another map, so that both lie in one dictionary."""

    def __init__(self, other, prefix):
        self.content = other.content
        self.prefix = prefix

    def getValue(self, key):  # noqa: N802
        return super().getValue((self.prefix + key[0],))

    def updateValue(self, key, value):  # noqa: N802
        super().updateValue((self.prefix + key[0],), value)

    def removeKey(self, key):  # noqa: N802
        super().removeKey((self.prefix + key[0],))


TREE = {"hi": "max(f)", "kinds": "count_distinct(i)"}


@pytest.mark.parametrize("emit", ["all", "changes", "top(2, n)"])
@pytest.mark.parametrize("aggregates", [INVERTIBLE, TREE | {"n": "count"}], ids=["totals", "tree"])
def test_a_state_with_any_bit_flipped_or_any_piece_missing_is_refused_or_not_needed(emit, aggregates):
    pipe, whole, blobs = pieces_and_blobs(emit, aggregates)
    undamaged = Map()
    undamaged.content = dict(whole)
    expected = reduced(pipe, undamaged, blobs)
    refused = []

    @examples(60)
    @given(st.data())
    def law(data):
        stored = Map()
        stored.content = dict(whole)
        flip(stored, data)
        try:
            assert reduced(pipe, stored, blobs) == expected
        except DataLossError as error:
            refused.append(error)

    law()
    assert refused, "most of the state is needed"
    for name in whole:
        if not name.endswith(("meta#0", "stand#0", "rows#0", "totals#0", "chunks#0", "layers#0")):
            stored = Map()
            stored.content = {other: piece for other, piece in whole.items() if other != name}
            # Without the note of sequences the next frames look as if others before them were gone.
            with pytest.raises(
                EvenflowError, match=r"the reducer's state is damaged: it lacks|frames are gone"
            ):
                reduced(pipe, stored, blobs)


@given(st.lists(st.integers(0, 9), max_size=9), st.integers(1, 12))
def test_gathered_tables_hold_the_same_rows_in_order_and_are_few(sizes, rows):
    tables = [pa.table({"n": pa.array([number] * size, pa.int64())}) for number, size in enumerate(sizes)]
    result = list(gathered(tables, rows=rows))
    assert [n for t in result for n in t["n"].to_pylist()] == [n for t in tables for n in t["n"].to_pylist()]
    assert all(table.num_rows >= rows for table in result[:-1])
