"""The telemetry contract: what is written is what is read, in all four kinds, and nothing else is read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.telemetry import (
    BatchesState,
    BatchRecord,
    BatchState,
    DecisionRecord,
    ExchangeState,
    HeartbeatRecord,
    HotKey,
    PartitionerRecord,
    PartWork,
    Record,
    parse,
)
from tests.examples import examples

COUNT = st.integers(0, 2**62)
TIME = st.integers(-(2**62), 2**62)
AMOUNT = st.floats(0, 1e18, allow_nan=False)
NAME = st.text("abcXYZ019-_. ", min_size=1, max_size=30)
STAGE = st.sampled_from(["fused", "combine", "reduce"])
PLAIN = st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.text(max_size=10)
COMMON: dict[str, Any] = {
    "query": NAME,
    "fingerprint": st.text("0123456789abcdef", min_size=16, max_size=16),
    "time": COUNT,
}


def some(strategy: st.SearchStrategy) -> st.SearchStrategy:
    return st.none() | strategy


HOT_KEY = st.builds(
    HotKey,
    key=st.text(max_size=100),
    length=COUNT,
    share=st.floats(0, 1),
    holders=COUNT,
    workers=st.lists(COUNT, max_size=3),
    parts=st.lists(st.floats(0, 1), max_size=3),
)
FIGURES = ("bsi", "bci", "ksr", "mpi")
BATCHES = st.builds(
    BatchesState,
    interval_ms=COUNT,
    clock=st.sampled_from(["event", "processing"]),
    count=COUNT,
    cut_short=st.dictionaries(st.text("abcxyz", min_size=1, max_size=20), COUNT, max_size=5),
    held=COUNT,
    held_bytes=COUNT,
    release_ms=some(AMOUNT),
    last=some(
        st.builds(
            BatchState,
            tuples=COUNT,
            keys=COUNT,
            split=COUNT,
            took_ms=some(AMOUNT),
            late=some(AMOUNT),
            **dict.fromkeys([*FIGURES, *(f"reduce_{figure}" for figure in FIGURES)], AMOUNT),
        )
    ),
)
PARTITIONER = st.builds(
    PartitionerRecord,
    **COMMON,
    instance=NAME,
    started=COUNT,
    owned=COUNT,
    inputs=COUNT,
    epoch=COUNT,
    workers=COUNT,
    tuples=COUNT,
    rejected=COUNT,
    read=COUNT,
    filtered=COUNT,
    period_ms=COUNT,
    rate=some(AMOUNT),
    keys=some(AMOUNT),
    busy=some(AMOUNT),
    lag=some(COUNT),
    event_time=some(TIME),
    mark=some(TIME),
    loads=st.lists(COUNT, max_size=4),
    imbalance=some(st.floats(0, 1)),
    hottest=st.lists(HOT_KEY, max_size=2),
    head_keys=some(COUNT),
    slowest=some(COUNT),
    batches=some(BATCHES),
    exchange=some(
        st.builds(
            ExchangeState,
            instances=COUNT,
            elected=st.booleans(),
            round=some(COUNT),
            members=COUNT,
            age_ms=some(COUNT),
            unanswered=COUNT,
            rate_in=some(AMOUNT),
            rate_out=some(AMOUNT),
        )
    ),
)
WORK = st.builds(
    PartWork,
    tasks=COUNT,
    busy_ms=AMOUNT,
    longest_ms=AMOUNT,
    rows=COUNT,
    keys=some(AMOUNT),
    repeated=COUNT,
    replication=some(AMOUNT),
    latencies=st.lists(st.tuples(COUNT, COUNT), max_size=3),
)
BATCH = st.builds(
    BatchRecord,
    **COMMON,
    stage=STAGE,
    batch=COUNT,
    rows=COUNT,
    finished=COUNT,
    warm_ms=some(COUNT),
    duration_ms=COUNT,
    batch_interval_ms=COUNT,
    load=some(AMOUNT),
    backlog=some(COUNT),
    frames_per_batch=some(COUNT),
    combine_tasks=some(COUNT),
    parts=st.dictionaries(st.sampled_from(["combine", "reduce"]), WORK),
    executors=some(COUNT),
    state_bytes=some(COUNT),
    mark=some(TIME),
    durations_ms=st.dictionaries(NAME, COUNT, max_size=3),
    offsets=st.lists(PLAIN, max_size=3),
)
HEARTBEAT = st.builds(
    HeartbeatRecord,
    **COMMON,
    stage=STAGE,
    batch=some(COUNT),
    running_ms=some(COUNT),
    batch_interval_ms=COUNT,
    slots=some(COUNT),
    frames_per_batch=some(COUNT),
    combine_tasks=some(COUNT),
    finished=COUNT,
    warm_ms=some(COUNT),
)
DECISION = st.builds(
    DecisionRecord,
    **COMMON,
    policy=NAME,
    step=COUNT,
    p=COUNT,
    r=COUNT,
    wanted_p=COUNT,
    wanted_r=COUNT,
    zone=some(st.integers(1, 3)),
    effective_from=some(TIME),
    held=st.booleans(),
    reason=st.text(max_size=30),
    observation=st.dictionaries(NAME, PLAIN, max_size=3),
)
VALID = HeartbeatRecord(
    query="q", fingerprint="0123456789abcdef", time=5, stage="fused", batch_interval_ms=5_000, finished=0
).encode()


@examples(150)
@given(record=PARTITIONER | BATCH | HEARTBEAT | DECISION)
def test_a_record_of_any_kind_survives_its_topic(record: Record) -> None:
    read = parse(record.encode())
    assert type(read) is type(record)
    assert read == record


def changed(**fields: Any) -> bytes:
    return json.dumps(json.loads(VALID) | fields).encode()


def test_fields_of_a_newer_evenflow_are_ignored() -> None:
    assert parse(changed(unheard={"a": 1})) == parse(VALID)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"v": 2}, "v: "),
        ({"v": "1"}, "v: "),
        ({"v": True}, "v: "),
        ({"v": 1.0}, "v: "),
        ({"kind": "gossip"}, "does not match any of the expected tags"),
        ({"fingerprint": "xyz"}, "fingerprint: "),
        ({"query": ""}, "query: "),
        ({"query": "a\nb"}, "query: "),
        ({"time": -1}, "time: "),
        ({"time": 1.0}, "time: "),
        ({"time": "5"}, "time: "),
        ({"time": None}, "time: "),
        ({"batch_interval_ms": True}, "batch_interval_ms: "),
        ({"stage": "nowhere"}, "stage: "),
    ],
)
def test_other_versions_kinds_and_types_are_refused_with_the_field(wrong: dict, why: str) -> None:
    with pytest.raises(ValueError, match=f"no telemetry: .*{why}"):
        parse(changed(**wrong))


@pytest.mark.parametrize("name", ["v", "kind", "query", "fingerprint", "time", "stage", "batch_interval_ms"])
def test_a_record_without_what_it_must_say_is_refused(name: str) -> None:
    fields = json.loads(VALID)
    del fields[name]
    with pytest.raises(ValueError, match="no telemetry"):
        parse(json.dumps(fields).encode())


@pytest.mark.parametrize("load", [b"NaN", b"Infinity", b"1e400", b"-0.1", b"1e19", b'"0.5"'])
def test_a_number_that_cannot_be_is_refused(load: bytes) -> None:
    record = BatchRecord(
        query="q", fingerprint="0" * 16, time=5, stage="fused", batch=1, rows=1, duration_ms=1,
        batch_interval_ms=5, load=0.5, finished=1,
    )  # fmt: skip
    data = record.encode()
    assert b'"load":0.5' in data
    with pytest.raises(ValueError, match="no telemetry"):
        parse(data.replace(b'"load":0.5', b'"load":' + load))


@pytest.mark.parametrize(
    ("longest", "busy", "spread"),
    [(50.0, 100.0, 2.0), (50.0, 0.0, None), (1e18, 1e-300, None), (0.0, 1e-289, 0.0)],
)
def test_the_spread_of_tasks_is_a_number_or_not_known(
    longest: float, busy: float, spread: float | None
) -> None:
    assert PartWork(tasks=4, busy_ms=busy, longest_ms=longest, rows=1).spread == spread
