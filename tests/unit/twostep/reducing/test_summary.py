"""Summaries: what comes out is an aggregation of the rows of all parts, whichever bucket closes what when."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.aggregates import AggregatePlan
from evenflow.errors import ConfigError
from evenflow.settings import Settings, load_settings
from evenflow.settings.views import queries, view
from evenflow.twostep import SummaryPlan, Tally, merge_parts, reduce_part
from evenflow.twostep.reducing.state_blobs import BucketState
from tests.examples import examples
from tests.unit.twostep.pipe import INPUTS, ROUTED, SLIDE, Dict, Pipe, Row, streams
from tests.unit.workbench.verify.pipeline_model import windows_of
from workbench.verify.inputs import END_MARK

BUCKETS = 2
SUMMARY = {
    "of": {"query": "at", "v": "key"},
    "aggregates": {"keys": "count(at)", "hi": "max(hi)", "r": "= hi / keys"},
}


def settings_of(**changes: Any) -> Settings:
    query = {
        "name": "q", "window": "30ms", "slide": "10ms", "types": {"i": "int64"},
        "aggregates": {"at": "last(i)"},
        "views": {"v": {"key": "i", "window": "10ms", "aggregates": {"hi": "max(f)"}}},
        "summaries": {"s": SUMMARY | changes.pop("summary", {})},
    }  # fmt: skip
    return load_settings(query=query | changes.pop("query", {}), **changes).with_input_partitions(INPUTS)


SETTINGS = settings_of()


class Buckets:
    """The buckets of all parts and the task that merges, each with its state. Blobs in, results out."""

    def __init__(self, settings: Settings) -> None:
        query = view(settings, "s").query
        self.summary = SummaryPlan.of(query)
        self.pipes = [Pipe(part.plan, buckets=BUCKETS) for part in self.summary.parts]
        self.state = Dict()
        self.waiting: list[list[bytes]] = []
        self.found: list[dict[str, Any]] = []
        self.told: list[Tally] = []

    def write(self, routed: int, rows: list[Row], mark: int) -> None:
        for pipe in self.pipes:
            pipe.write(routed, rows, dict.fromkeys(range(INPUTS), mark))

    def reduce(self, number: int, bucket: int, blobs: list[bytes], state: BucketState) -> list[bytes]:
        layout = self.pipes[number].layout
        return list(reduce_part(self.summary, number, layout, state, blobs, on_tally=self.told.append))

    def merge(self, sent: list[list[bytes]], state: BucketState) -> list[dict[str, Any]]:
        each = [blob for one in sent for blob in one]
        layout = self.pipes[0].layout
        tables = merge_parts(self.summary, layout, state, each, on_tally=self.told.append)
        return [row for table in tables for row in table.to_pylist()]


def tuples_of(rows: list[Row]) -> list[tuple[bytes, int, dict[str, Any]]]:
    return [(key, pane * SLIDE, {"i": i, "f": f}) for pane, key, i, f in rows]


@examples(15)
@given(stream=streams(), order=st.randoms(use_true_random=False))
def test_the_rows_are_those_of_a_direct_aggregation_of_all_parts_and_a_repeated_micro_batch_gives_the_same(
    stream: list[Any], order: Any
) -> None:
    buckets, every = Buckets(SETTINGS), []
    for number, batch in enumerate([*stream, None]):
        for routed, rows, mark in [(r, [], END_MARK) for r in range(ROUTED)] if batch is None else batch:
            small = [(pane, key, None if i is None else i % 3, f) for pane, key, i, f in rows]
            every += small
            buckets.write(routed, small, mark)
        blobs = [pipe.combine() for pipe in buckets.pipes]
        at = [(part, bucket) for part in range(len(blobs)) for bucket in range(BUCKETS)]
        order.shuffle(at)
        for part, bucket in at:
            state = buckets.pipes[part].states[bucket]
            before = Dict(state)
            sent = buckets.reduce(part, bucket, blobs[part][bucket], state)
            assert buckets.reduce(part, bucket, blobs[part][bucket], before) == sent
            buckets.waiting.append(sent)
        if number % 2 and batch is not None:
            continue  # what a micro-batch has sent is merged with the next: as if these buckets closed later
        before = Dict(buckets.state)
        result = buckets.merge(buckets.waiting, buckets.state)
        if len(buckets.waiting) == len(at):  # each bucket has sent once: Spark brings buckets in any order
            order.shuffle(buckets.waiting)
        assert buckets.merge(buckets.waiting, before) == result
        buckets.found, buckets.waiting = [*buckets.found, *result], []
    wanted = windows_of(view(SETTINGS, "s"), tuples_of(every), END_MARK)
    assert sorted(map(plain, buckets.found)) == sorted(map(plain, wanted))
    ends = [row["window_end"] for row in buckets.found]
    assert ends == sorted(ends)
    assert sum(tally.rows for tally in buckets.told) == 2 * len(ends), "each micro-batch was merged twice"


def plain(row: dict[str, Any]) -> tuple[Any, ...]:
    key = row["key"].decode() if isinstance(row["key"], bytes) else str(row["key"])
    return (
        row["window_end"],
        row["window_start"],
        key,
        *(str(row[name]) for name in (*SUMMARY["aggregates"], "_tuples")),
    )


def test_a_window_waits_for_the_slowest_bucket_of_every_part() -> None:
    buckets = Buckets(settings_of())
    buckets.write(0, [(0, b"a", 1, 2.0), (0, b"b", 1, 4.0)], 0)
    for routed in range(ROUTED):
        buckets.write(routed, [], END_MARK)
    blobs = [pipe.combine() for pipe in buckets.pipes]
    at = [(part, bucket) for part in range(2) for bucket in range(BUCKETS)]
    *early, last = [
        buckets.reduce(part, bucket, blobs[part][bucket], buckets.pipes[part].states[bucket])
        for part, bucket in at
    ]
    assert buckets.merge(early, buckets.state) == []
    assert buckets.state.get("rows") is not None
    rows = buckets.merge([last], buckets.state)
    assert [(row["window_end"], row["keys"], row["hi"], row["r"]) for row in rows] == [
        (10, 2, 4.0, 2.0), (20, 2, None, None), (30, 2, None, None),
    ]  # fmt: skip
    assert buckets.state.get("rows") is None


def test_only_rows_that_have_what_having_asks_for_come_out_and_the_first_of_them_are_ranked() -> None:
    summary = {"having": "keys > 0 and hi is not null", "emit": "top(1, r)"}
    buckets = Buckets(settings_of(summary=summary))
    rows: list[Row] = [(0, b"a", 1, 2.0), (0, b"b", 1, 4.0), (0, b"c", 2, 3.0), (0, b"d", None, 9.0)]
    buckets.write(0, rows, 0)
    for routed in range(ROUTED):
        buckets.write(routed, [], END_MARK)
    blobs = [pipe.combine() for pipe in buckets.pipes]
    sent = [
        buckets.reduce(part, bucket, blobs[part][bucket], buckets.pipes[part].states[bucket])
        for part in range(2)
        for bucket in range(BUCKETS)
    ]
    (row,) = buckets.merge(sent, buckets.state)
    assert (row["key"], row["rank"], row["keys"], row["hi"], row["r"]) == (b"2", 1, 1, 3.0, 3.0)
    assert (row["_tuples"], row["_tuples_of_all"]) == (
        2,
        6,
    ), "tuples count once for each part that has them in a row"
    assert (row["window_start"], row["window_end"]) == (-20, 10)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"of": {"nobody": "at"}}, "of names 'nobody', which is neither 'query' nor a view"),
        ({"of": {"query": "att"}}, "query has no result column 'att'; did you mean 'at'"),
        ({"of": {"query": "key", "v": "key"}}, r"grouped by values of several types \(int64, string\)"),
        ({"aggregates": {"n": "count"}}, r"n = 'count' names no column: write count\(column\)"),
        ({"aggregates": {"n": "count(i)"}}, "reads 'i', which is a result column of none of its parts"),
        ({"aggregates": {"n": "last(hi)"}}, "rows of one window have no order in time"),
        ({"aggregates": {"n": "mean(hi)"}, "having": "n > 1"}, "having reads 'n', which is not exact"),
        ({"having": "keys"}, "having = 'keys' is a whole number, but a condition is needed"),
        ({"having": "key > 1"}, "having = '= key > 1' reads 'key', which is no aggregate beside it"),
        ({"emit": "changes"}, "a summary cannot emit 'changes'"),
        ({"emit": "top(3, at)"}, "'at' is no result column"),
    ],
)
def test_a_summary_that_cannot_be_computed_is_refused_and_it_is_said_why(
    changes: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        settings_of(summary=changes)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"late": "update", "allowed_lateness": "10ms"}, "late = 'update' does not go with summaries"),
        (
            {"aggregates": {"at": "last(i)", "hi": "count"}},
            "reads 'hi', which is a result column of q and of q.v",
        ),
        (
            {"views": {"v": {"key": "i", "aggregates": {"hi": "mean(f)"}}}},
            r"hi = 'mean\(f\)' of q.v is not exact",
        ),
        (
            {"views": {"v": {"key": "i", "slide": "20ms", "window": "20ms", "aggregates": {"hi": "max(f)"}}}},
            "its parts slide by 10ms, 20ms; parts of a summary have one slide",
        ),
        (
            {"views": {"query": {"aggregates": {"hi": "max(f)"}}}},
            "a summary means the query itself by 'query'",
        ),
    ],
)
def test_parts_that_no_summary_can_have_are_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        settings_of(query=changes)


def test_a_summary_needs_the_fused_wiring() -> None:
    with pytest.raises(ConfigError, match=r"needs spark\.wiring = 'fused'"):
        settings_of(spark={"wiring": "split"})


def test_a_summary_is_a_query_of_its_own_whose_identity_is_also_that_of_its_parts() -> None:
    settings = settings_of()
    assert [one.query.name for one in queries(settings)] == ["q", "q.v", "q.s"]
    one = view(settings, "s")
    assert (one.query.window, one.query.slide_ms, one.query.key_kind, one.query.key_name) == (
        30,
        10,
        "int64",
        "at",
    )
    assert (one.topic("results"), one.topic("routed")) == ("q.s.results", "q.routed")
    longer = settings_of(
        query={"views": {"v": {"key": "i", "window": "20ms", "aggregates": {"hi": "max(f)"}}}}
    )
    assert longer.fingerprint == settings.fingerprint
    others = [
        longer,
        settings_of(summary={"having": "keys > 0"}),
        settings_of(summary={"emit": "top(2, hi)"}),
    ]
    assert len({view(other, "s").fingerprint for other in (settings, *others)}) == 4
    assert AggregatePlan.of(settings.query).frame_schema.names == ["pane", "key", "time", "v:f", "v:i"]
