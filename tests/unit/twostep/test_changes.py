"""`emit = "changes"`: folded up, it is what `all` gives, whatever the stream, its cut and the restarts in
between.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.aggregates import every_form
from evenflow.keys import bucket_of, hash_keys
from evenflow.twostep import reduce
from evenflow.twostep.reducing.layers import RowLayers
from tests.examples import examples
from tests.unit.twostep.pipe import (
    EVERYTHING,
    INPUTS,
    INVERTIBLE,
    ROUTED,
    SLIDE,
    Dict,
    Pipe,
    direct,
    feed,
    plan_of,
    streams,
)

LISTS = {"all": "collect(i, 3)", "most": "top_k(i, 2)", "kinds": "count_distinct(i)"}
Rows = dict[tuple[int, bytes], dict[str, Any]]


def folded(pipe: Pipe, starts: set[int]) -> Rows:
    """Every window of these, made of what came out up to it: by key the row of the highest revision, but
    gone ones.
    """
    rows: Rows = {}
    newest: dict[bytes, dict[str, Any]] = {}
    result = sorted(pipe.found, key=lambda row: row["revision"])
    seen = set()
    for start in sorted(starts):
        revision = (start + pipe.plan.window) // pipe.plan.slide
        while result and result[0]["revision"] <= revision:
            row = result.pop(0)
            assert row["revision"] == row["window_end"] // pipe.plan.slide
            assert (row["revision"], row["key"]) not in seen
            seen.add((row["revision"], row["key"]))
            newest[row["key"]] = row
        for key, row in newest.items():
            if not row["gone"]:
                rows[start, key] = {name: row[name] for name in pipe.plan.output_schema.names}
    return rows


def counted(every: Pipe) -> Counter[tuple[int, bytes]]:
    """Tuples of each (window end, key)."""
    return Counter({(row["window_end"], row["key"]): row.get("_tuples", row.get("n")) for row in every.found})


def bucket(key: bytes, buckets: int) -> int:
    return int(bucket_of(hash_keys(pa.array([key], pa.binary())), buckets)[0])


def around(pipe: Pipe, whole: Rows) -> set[int]:
    """The windows of `all`, and the ones beside them, which may be empty."""
    starts = {start + move for start, _ in whole for move in (0, pipe.plan.slide)}
    starts |= {row["window_start"] for row in pipe.found}
    return starts


@pytest.mark.parametrize("aggregates", [INVERTIBLE, EVERYTHING, LISTS], ids=["invertible", "tree", "lists"])
@examples(12)
@given(
    stream=streams(),
    panes=st.sampled_from([1, 2, 3, 5, 8]),
    buckets=st.integers(1, 2),
    emit_from=st.sampled_from([None, 7, 40]),
)
def test_changes_folded_up_are_all_rows_of_every_window(
    aggregates: dict[str, str], stream: list[Any], panes: int, buckets: int, emit_from: int | None
) -> None:
    changes, every = (
        Pipe(plan_of(aggregates, panes, emit=emit, emit_from=emit_from), buckets=buckets)
        for emit in ("changes", "all")
    )
    for batch in stream:
        for pipe in (changes, every):
            feed(pipe, batch)
            pipe.step()
    for pipe in (changes, every):
        pipe.end()
    whole = every.results()
    assert folded(changes, around(changes, whole)) == whole
    own, of_all = counted(every), Counter()
    for (end, key), tuples in own.items():
        of_all[end, bucket(key, buckets)] += tuples
    for row in changes.found:
        at = row["window_end"]
        assert row["_tuples_of_all"] == of_all[at, bucket(row["key"], buckets)]
        assert row.get("_tuples", own[at, row["key"]]) == own[at, row["key"]]
    for state in changes.states:
        assert not [name for name in state if name.startswith(("node/", "layer/"))], "all keys have left"


@pytest.mark.parametrize("aggregates", [INVERTIBLE, EVERYTHING], ids=["invertible", "tree"])
@examples(12)
@given(stream=streams(), panes=st.sampled_from([1, 3, 4]), data=st.data())
def test_no_row_comes_out_that_is_as_it_was(
    aggregates: dict[str, str], stream: list[Any], panes: int, data: st.DataObject
) -> None:
    pipe = Pipe(plan_of(aggregates, panes, emit="changes"), buckets=1)
    rows = []
    for batch in stream:
        rows += feed(pipe, batch)
        made = pipe.combine()[0]
        at = data.draw(st.integers(0, len(made)))
        pipe.reduce([made[:at]])
        pipe.reduce([made[data.draw(st.integers(0, at)) :]])
    pipe.end()
    whole = direct(pipe.plan, rows)
    expected = {
        (start, key): whole.get((start, key))
        for start, key in {(start + move, key) for start, key in whole for move in (0, SLIDE)}
        if whole.get((start, key)) != whole.get((start - SLIDE, key))
    }
    result = {(row["window_start"], row["key"]): row for row in pipe.found}
    assert len(result) == len(pipe.found)
    names = pipe.plan.output_schema.names
    assert {
        at: None if row["gone"] else {name: row[name] for name in names} for at, row in result.items()
    } == expected
    assert all(row[name] is None for row in pipe.found if row["gone"] for name in names)


def test_every_aggregate_there_is_can_be_compared_with_what_it_was() -> None:
    plan = plan_of(every_form("i", "f") | {"few": "collect(f, 2)"}, 3, emit="changes")
    pipe = Pipe(plan, buckets=1)
    for pane in (0, 1, 4):
        feed(pipe, [(0, [(pane, b"a", 1, 0.5), (pane, b"b", pane, None)], pane * SLIDE)])
        pipe.step()
    pipe.end()
    assert {row["key"] for row in pipe.found if row["gone"]} == {b"a", b"b"}


def test_a_key_leaves_once_though_no_tuple_comes_for_long() -> None:
    pipe = Pipe(plan_of(INVERTIBLE, 2, emit="changes"), buckets=1)
    feed(pipe, [(0, [(0, b"a", 1, 1.0)], 0), (1, [], 1_000_000)])
    pipe.step()
    feed(pipe, [(0, [(200_000, b"a", 2, 1.0)], 3_000_000)])
    pipe.step()
    assert [(row["revision"], row["gone"], row["n"]) for row in pipe.found] == [
        (1, False, 1),
        (3, True, None),
        (200_001, False, 1),
        (200_003, True, None),
    ]


def test_the_first_window_that_comes_out_is_whole() -> None:
    pipe = Pipe(plan_of(EVERYTHING, 3, emit="changes", emit_from=20), buckets=1)
    feed(pipe, [(0, [(2, b"a", 1, 1.0), (3, b"b", 1, 1.0)], 0)])
    pipe.end()
    assert [(row["window_start"], row["key"], row["gone"]) for row in pipe.found] == [
        (20, b"a", False),
        (20, b"b", False),
        (30, b"a", True),
        (40, b"b", True),
    ]


@examples(12)
@given(
    steps=st.lists(
        st.dictionaries(st.integers(0, 30), st.integers(0, 3), max_size=8), min_size=1, max_size=12
    ),
    data=st.data(),
)
def test_layers_hold_the_newest_row_of_every_key(steps: list[dict[int, int]], data: st.DataObject) -> None:
    schema = pa.schema([("key", pa.large_binary()), ("rows", pa.int64())])
    state, known = Dict(), dict[bytes, int]()
    layers = RowLayers(state, schema)
    for step in steps:
        some = {b"%d" % key: rows for key, rows in step.items()}
        layers.put(pa.table({"key": list(some), "rows": list(some.values())}, schema=schema))
        known |= some
        if data.draw(st.booleans()):
            layers.save()
            layers = RowLayers(state, schema)
        asked = [b"%d" % key for key in range(32)]
        result = layers.find(pa.array(asked, pa.large_binary())).to_pylist()
        here = {key: rows for key, rows in known.items() if rows}
        assert {row["key"]: row["rows"] for row in result} == here
        assert {row["key"]: row["rows"] for row in layers.all().to_pylist()} == here


def test_little_is_written_where_little_changes() -> None:
    keys, panes = 20_000, 10
    pipe = Pipe(plan_of(INVERTIBLE, panes, emit="changes"), buckets=1, max_bytes=10_000_000)
    pipe.write(0, [(0, b"%d" % key, key, 0.0) for key in range(keys)], dict.fromkeys(range(INPUTS), SLIDE))
    for routed in range(1, ROUTED):
        pipe.write(routed, [], dict.fromkeys(range(INPUTS), SLIDE))
    pipe.step()
    assert len(pipe.found) == keys
    pipe.found.clear()
    state = pipe.states[0]
    base = {name for name in state if name.startswith("layer/")}
    for pane in range(1, panes - 1):
        feed(pipe, [(0, [(pane, b"%d" % key, 1, 0.0) for key in range(20)], (pane + 1) * SLIDE)])
        pipe.step()
        assert len(pipe.found) == 20 * pane
    assert base <= set(state), "the base stays as it is"
    assert sum(len(state[name]) for name in state if name.startswith("layer/") and name not in base) < 20_000


def test_repeated_blobs_bring_out_nothing() -> None:
    pipe = Pipe(plan_of(INVERTIBLE, 2, emit="changes"), buckets=1)
    feed(pipe, [(0, [(0, b"a", 1, 1.0)], 0), (1, [], 30)])
    pipe.step()
    assert reduce(pipe.plan, pipe.layout, pipe.states[0], pipe.history[0]).num_rows == 0
