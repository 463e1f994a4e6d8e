"""`late = "update"`: the newest row of each window and key is what `late = "reject"` gives, and rows come
out early.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.twostep.reducing.updates import Updates
from tests.examples import examples
from tests.unit.twostep.pipe import (
    EVERYTHING,
    INVERTIBLE,
    SLIDE,
    Pipe,
    Row,
    direct,
    feed,
    plan_of,
    streams,
)

LISTS = {"all": "collect(i, 3)", "most": "top_k(i, 2)", "kinds": "count_distinct(i)"}
FORMS = pytest.mark.parametrize(
    "aggregates", [INVERTIBLE, EVERYTHING, LISTS], ids=["invertible", "tree", "lists"]
)
LATENESS = 4 * SLIDE
Batch = list[tuple[int, list[Row], int]]


def plan(aggregates: dict[str, str], panes: int, **more: Any) -> Any:
    return plan_of(aggregates, panes, allowed_lateness=LATENESS, late="update", **more)


def newest(pipe: Pipe) -> dict[tuple[int, bytes], dict[str, Any]]:
    """The row of the highest revision of each (window start, key), which is also the last one."""
    rows: dict[tuple[int, bytes], dict[str, Any]] = {}
    for row in pipe.found:
        at = (row["window_start"], row["key"])
        assert at not in rows or row["revision"] > rows[at]["revision"]
        rows[at] = row
    return rows


def values(pipe: Pipe) -> dict[tuple[int, bytes], dict[str, Any]]:
    return {
        at: {name: row[name] for name in pipe.plan.output_schema.names} for at, row in newest(pipe).items()
    }


def late_streams() -> st.SearchStrategy[list[Batch]]:
    """Many tuples lie between the mark and the allowed lateness."""
    return streams(ahead=7)


@FORMS
@examples(25)
@given(
    stream=late_streams(),
    panes=st.sampled_from([1, 2, 3, 5, 8]),
    buckets=st.integers(1, 2),
    emit_from=st.sampled_from([None, 7, 40]),
)
def test_the_newest_rows_are_those_of_a_direct_aggregation(
    aggregates: dict[str, str], stream: list[Batch], panes: int, buckets: int, emit_from: int | None
) -> None:
    pipe = Pipe(plan(aggregates, panes, emit_from=emit_from), buckets=buckets)
    once = Pipe(plan_of(aggregates, panes, emit_from=emit_from), buckets=buckets)
    rows: list[Row] = []
    for batch in stream:
        rows += feed(pipe, batch, came=7)
        pipe.step()
        feed(once, batch)
        once.step()
    pipe.end()
    once.end()
    assert values(pipe) == once.results()
    if aggregates is not LISTS:
        assert values(pipe) == direct(pipe.plan, rows)


@FORMS
@examples(15)
@given(stream=late_streams(), panes=st.sampled_from([1, 2, 3, 5, 8]))
def test_after_each_micro_batch_every_due_window_is_that_of_the_tuples_so_far(
    aggregates: dict[str, str], stream: list[Batch], panes: int
) -> None:
    """The claim that readers rely on: what they see is never older than the last micro-batch."""
    pipe = Pipe(plan(aggregates, panes))
    batches: list[Batch] = []
    for batch in stream:
        batches.append(batch)
        feed(pipe, batch)
        pipe.step()
        if not any(batches):
            continue
        mark = [mark for each in batches for _, _, mark in each][-1]
        whole = Pipe(plan_of(aggregates, panes))
        for each in batches:
            feed(whole, each)
        whole.end()
        due = (mark + LATENESS) // SLIDE * SLIDE
        assert values(pipe) == {
            at: row for at, row in whole.results().items() if at[0] + pipe.plan.window <= due
        }


@FORMS
@examples(10)
@given(stream=late_streams(), panes=st.sampled_from([1, 3, 8]))
def test_a_window_comes_out_whole_once_and_afterwards_only_the_rows_that_changed(
    aggregates: dict[str, str], stream: list[Batch], panes: int
) -> None:
    pipe = Pipe(plan({**aggregates, "n": "count"}, panes))
    seen: dict[tuple[int, bytes], int] = {}
    for batch in stream:
        before = len(pipe.found)
        feed(pipe, batch)
        pipe.step()
        touched = {(row[1], row[0]) for _, rows, _ in batch for row in rows}
        for row in pipe.found[before:]:
            at = (row["window_start"], row["key"])
            assert row["n"] > seen.get(at, 0), "a row that comes out again has more tuples"
            seen[at] = row["n"]
            if row["revision"]:
                last = row["window_end"] // SLIDE - 1
                assert any((row["key"], pane) in touched for pane in range(last - panes + 1, last + 1))


def test_a_late_tuple_updates_its_window_and_nothing_else() -> None:
    pipe = Pipe(plan({"n": "count"}, 1), buckets=1)
    feed(pipe, [(0, [(0, b"a", None, None), (0, b"b", None, None)], -LATENESS)])
    pipe.step()
    assert pipe.found == []
    feed(pipe, [(0, [(1, b"a", None, None)], SLIDE - LATENESS)])
    pipe.step()
    assert [(row["window_end"], row["key"], row["n"], row["revision"]) for row in pipe.found] == [
        (SLIDE, b"a", 1, 0),
        (SLIDE, b"b", 1, 0),
    ]
    feed(pipe, [(1, [(0, b"b", None, None), (0, b"c", None, None)], SLIDE - LATENESS)])
    pipe.step()
    assert sorted((row["key"], row["n"], row["revision"]) for row in pipe.found[2:]) == [
        (b"b", 2, 1),
        (b"c", 1, 1),
    ]
    pipe.end()
    assert [(row["window_end"], row["key"], row["n"], row["revision"]) for row in pipe.found[4:]] == [
        (2 * SLIDE, b"a", 1, 0)
    ]


def test_a_repeated_micro_batch_gives_equal_rows() -> None:
    pipe = Pipe(plan(INVERTIBLE, 3), buckets=1)
    feed(pipe, [(0, [(0, b"a", 1, None)], 0)])
    pipe.step()
    feed(pipe, [(0, [(0, b"a", 2, None)], 0)])
    blobs = pipe.combine()
    saved = dict(pipe.states[0])
    pipe.found = []
    pipe.reduce(blobs)
    first = pipe.found
    assert first
    pipe.states[0].clear()
    pipe.states[0].update(saved)
    pipe.found = []
    pipe.reduce(blobs)
    assert pipe.found == first


def test_a_state_without_updates_has_no_trace_of_them() -> None:
    pipe = Pipe(plan_of(INVERTIBLE, 3))
    feed(pipe, [(0, [(0, b"a", 1, None)], 0)])
    pipe.step()
    assert all(b"revisions" not in state["meta"] and b'"due"' not in state["meta"] for state in pipe.states)


@FORMS
@pytest.mark.parametrize("panes", [1, 3])
def test_a_micro_batch_without_late_tuples_touches_no_window_that_is_out(
    aggregates: dict[str, str], panes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = Pipe(plan(aggregates, panes), buckets=1)
    feed(pipe, [(0, [(pane, b"a", 1, None) for pane in range(6)], 0)])
    pipe.step()
    assert pipe.found, "windows are out and open"
    merged: list[int] = []
    rows = Updates.rows
    monkeypatch.setattr(
        Updates, "rows", lambda self, pane, bounds: merged.append(pane) or rows(self, pane, bounds)
    )
    for _ in range(3):
        feed(pipe, [(1, [(9, b"b", 1, None)], 0)])
        pipe.step()
    assert merged == []
    assert json.loads(pipe.states[0]["meta"])["revisions"] == {}
    feed(pipe, [(1, [(2, b"a", 1, None)], 0)])
    pipe.step()
    assert {row["revision"] for row in pipe.found} == {0, 1}
    assert merged == [pane for pane in range(2, 2 + panes) if pane < LATENESS // SLIDE]
