"""The picture of a pipeline: rates, loads, hot keys and verdicts, from telemetry of any order and any
bytes.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.metrics import imbalance
from evenflow.settings import load_settings
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
)
from monitoring.live import picture as module
from monitoring.live.glance import BatchesGlance, ExchangeGlance
from monitoring.live.picture import Picture
from tests.examples import examples
from tests.unit.test_telemetry import BATCH, DECISION, HEARTBEAT, PARTITIONER

SETTINGS = load_settings(query={"name": "q"}, input={"partitions": 4}, partitioner={"workers": 4})
COMMON: dict[str, Any] = {"query": "q", "fingerprint": SETTINGS.fingerprint}


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def make() -> tuple[Picture, Clock]:
    clock = Clock()
    return Picture(SETTINGS, clock=clock, wall=lambda: 1_700_000_000.0), clock


def instance(at: float, loads: list[int], name: str = "0", **changed: Any) -> PartitionerRecord:
    fields: dict[str, Any] = {
        "instance": name, "time": round(1000 * at), "started": 1, "owned": 2, "inputs": 2, "epoch": 0,
        "workers": 4,
        "tuples": sum(loads), "rejected": 0, "read": sum(loads) + changed.get("rejected", 0),
        "filtered": 0, "period_ms": 1_000, "rate": 100.0, "lag": 5, "loads": loads,
    }  # fmt: skip
    return PartitionerRecord(**COMMON, **fields | changed)


def batch(at: float = 1.0, **changed: Any) -> BatchRecord:
    combine = PartWork(
        tasks=2, busy_ms=100.0, longest_ms=75.0, rows=50, latencies=[(100, 98), (9_000, 2)], replication=1.5
    )
    fields: dict[str, Any] = {
        "stage": "fused", "batch": 1, "time": round(1000 * at), "rows": 4, "duration_ms": 700,
        "batch_interval_ms": 1_000,
        "load": 0.7, "parts": {"combine": combine}, "windows_closed": 1, "rows_out": 9,
        "last_window_end": 5_000,
        "open_windows": 2, "backlog": 3, "finished": 1,
    }  # fmt: skip
    return BatchRecord(**COMMON, **fields | changed)


def decision(**changed: Any) -> DecisionRecord:
    fields: dict[str, Any] = {
        "time": 5_000, "policy": "fixed", "step": 1, "p": 4, "r": 1, "wanted_p": 6, "wanted_r": 1,
        "reason": "because",
    }  # fmt: skip
    return DecisionRecord(**COMMON, **fields | changed)


STUCK = HeartbeatRecord(
    **COMMON, time=1, stage="fused", running_ms=60_000, batch_interval_ms=1_000, finished=1
)


def test_a_stage_that_has_said_why_it_ended_is_bad_at_once_until_another_process_speaks() -> None:
    picture, _ = make()
    picture.add(instance(1, [1, 1, 1, 1]))
    picture.add(batch())
    assert picture.glance().verdicts["keeping up"].word == "good"
    last = STUCK.model_copy(update={"running_ms": None, "ended": "q.results was deleted\x1b[2J"})
    picture.take(last.encode())
    verdict = picture.glance().verdicts["keeping up"]
    assert (verdict.word, verdict.text) == ("bad", "spark fused has ended: q.results was deleted\\x1b[2J")
    picture.add(batch(2.0, batch=2))
    assert picture.glance().verdicts["keeping up"].word == "good"


def test_loads_are_rates_between_two_records_and_add_up_over_instances() -> None:
    picture, _ = make()
    assert picture.glance().loads == []
    for record in (
        instance(1, [0, 0, 0, 0]),
        instance(1, [5, 0, 0, 0], "1"),
        instance(3, [60, 20, 20, 0]),
        instance(2, [15, 10, 0, 0], "1"),
    ):
        picture.add(record)
    glance = picture.glance()
    assert glance.loads == [40.0, 20.0, 10.0, 0.0]
    assert glance.imbalance == pytest.approx((40 - 70 / 4) / 70)
    assert glance.imbalance == pytest.approx(imbalance(np.array([40, 20, 10, 0]))), "a copy of this function"
    assert (glance.rate, glance.lag, glance.workers) == (200.0, 10, 4)


@pytest.mark.parametrize(
    "after",
    [
        instance(3, [4, 4, 4, 4], started=2),
        instance(3, [4, 4, 4, 4, 4, 4]),
        instance(3, [4, 0, 0, 0]),
        instance(1, [40, 40, 40, 40]),
    ],
    ids=["restarted", "another number of workers", "counted anew", "no later"],
)
def test_what_cannot_be_compared_has_no_load(after: PartitionerRecord) -> None:
    picture, _ = make()
    picture.add(instance(1, [9, 9, 9, 9]))
    picture.add(after)
    assert picture.glance().loads == []
    assert picture.glance().verdicts["balanced"].word == "unknown"


def hot(key: str, share: float, workers: list[int], parts: list[float]) -> HotKey:
    return HotKey(key=key, length=len(key), share=share, holders=len(workers), workers=workers, parts=parts)


def test_hot_keys_of_several_instances_are_one_by_the_rate_of_each() -> None:
    picture, _ = make()
    picture.add(instance(1, [0] * 4, "0", rate=300.0, hottest=[hot("a", 0.4, [1], [1.0])]))
    picture.add(
        instance(
            1,
            [0] * 4,
            "1",
            rate=100.0,
            hottest=[hot("a", 0.8, [1, 2], [0.5, 0.5]), hot("b", 0.1, [3], [1.0])],
        )
    )
    first, second = picture.glance().hottest
    assert (first["key"], first["share"], first["workers"], first["holders"]) == ("a", 0.5, [1, 2], 2)
    assert first["parts"] == [0.8, 0.2]
    assert (second["key"], second["share"]) == ("b", 0.025)


def test_the_three_answers_of_a_pipeline_that_is_well() -> None:
    picture, _ = make()
    assert {verdict.word for verdict in picture.glance().verdicts.values()} == {"unknown"}
    for record in (instance(1, [0] * 4), instance(2, [25, 25, 26, 24]), batch(), decision()):
        picture.add(record)
    glance = picture.glance()
    assert {name: verdict.word for name, verdict in glance.verdicts.items()} == {
        "keeping up": "good",
        "balanced": "good",
        "right": "good",
    }
    assert glance.results is not None
    assert (glance.results.latency_p50_s, glance.results.latency_p99_s, glance.results.replication) == (
        0.1,
        9.0,
        1.5,
    )
    assert glance.points == [(1_000, "fused", 0.7)]
    assert glance.decisions[0].wanted_p == 6


@pytest.mark.parametrize(
    ("records", "question", "says"),
    [
        ([instance(1, [0] * 4), batch(load=1.3)], "keeping up", "W is 1.30: overload"),
        ([instance(1, [0] * 4)], "keeping up", "nothing has been heard of Spark yet"),
        ([instance(1, [0] * 4, lag=10**9), batch()], "keeping up", "1,000,000,000 records are not read yet"),
        ([instance(1, [0] * 4), instance(2, [100, 0, 0, 0])], "balanced", "75.0% of all tuples more"),
        ([instance(1, [0] * 4), instance(2, [40] * 4, rejected=40)], "right",
        "20.0% of the records are rejected"),
        ([instance(1, [0] * 4, rejected=3)], "right", "3 records were rejected"),
        ([instance(1, [0] * 4), batch(unfit=2)], "right", "2 result values do not fit"),
        (
            [instance(1, [0] * 4), STUCK],
            "keeping up",
            "spark fused has been in one micro-batch for 1 min",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(records: list[Any], question: str, says: str) -> None:
    picture, _ = make()
    for record in records:
        picture.add(record)
    assert says in picture.glance().verdicts[question].text
    assert picture.glance().verdicts[question].word != "good"


@pytest.mark.parametrize(
    ("tuples", "read", "rate", "lag", "word"),
    [
        (5, 5_000, 5.0, 500, "good"),  # a filter keeps one of a thousand; 0.1 s of work
        (100_000, 1_000, 100_000.0, 150_000, "bad"),  # a record is a hundred tuples; 150 s of work
    ],
)
def test_what_waits_is_told_by_the_records_that_are_read(
    tuples: int, read: int, rate: float, lag: int, word: str
) -> None:
    picture, _ = make()
    picture.add(instance(1, [0] * 4, tuples=0, read=0))
    picture.add(instance(2, [1] * 4, tuples=tuples, read=read, rate=rate, lag=lag))
    picture.add(batch(2.0))
    assert picture.glance().verdicts["keeping up"].word == word


def test_an_instance_whose_partitions_others_have_taken_over_counts_no_more() -> None:
    picture, clock = make()
    for at in (1, 2):
        picture.add(instance(at, [100 * at] + [0] * 3, "gone", owned=4, lag=50))
    clock.now += 21
    assert "partitioner gone" in picture.glance().verdicts["keeping up"].text, (
        "nobody else has its partitions"
    )
    for at in (22, 23):
        picture.add(instance(at, [25 * at] * 4, "next", owned=4))
    glance = picture.glance()
    assert [each.name for each in glance.instances] == ["next"]
    assert (glance.loads, glance.lag, glance.imbalance) == ([25.0] * 4, 5, 0.0)


def test_a_stage_that_waits_has_no_load_and_one_that_runs_long_has_what_it_has_by_now() -> None:
    picture, _ = make()
    picture.add(batch(load=1.3))
    beat = HeartbeatRecord(
        **COMMON, time=2, stage="fused", batch=1, running_ms=None, batch_interval_ms=1_000, finished=1
    )
    picture.add(beat)
    assert picture.glance().stages[0].load == 0
    picture.add(beat.model_copy(update={"running_ms": 4_000}))
    assert picture.glance().stages[0].load == 4


def test_decisions_that_change_nothing_do_not_push_plans_out() -> None:
    picture, _ = make()
    picture.add(decision(time=1, epoch=3))
    for at in range(500):
        picture.add(decision(time=2 + at, wanted_p=4, reason=f"still {at}"))
    assert [(each.at, each.epoch) for each in picture.glance().decisions] == [(1, 3), (501, None)]


def test_a_part_that_falls_silent_is_named_and_forgotten_later() -> None:
    picture, clock = make()
    picture.add(instance(1, [0] * 4, "east"))
    picture.add(batch())
    clock.now += 21
    assert "partitioner east" in picture.glance().verdicts["keeping up"].text
    clock.now += 600
    picture.add(instance(1, [0] * 4, "west"))
    assert [each.name for each in picture.glance().instances] == ["west"]


def test_what_was_said_before_anybody_looked_is_as_old_as_it_says() -> None:
    picture, _ = make()
    now = 1_700_000_000.0
    picture.take(instance(now - 60, [0] * 4, "gone").encode(), old=True)
    picture.take(instance(now + 60, [0] * 4, "ahead").encode(), old=True)
    picture.take(instance(now - 3_600, [0] * 4, "long ago").encode(), old=True)
    assert [(each.name, each.silent) for each in picture.glance().instances] == [
        ("gone", 60.0),
        ("ahead", 0.0),
    ]


def test_records_of_others_and_bytes_of_any_kind_change_nothing() -> None:
    picture, _ = make()
    for value in (None, b"", b"\xff", b"{}", instance(1, [0]).model_copy(update={"query": "other"}).encode()):
        assert not picture.take(value)
    assert picture.take(instance(1, [0] * 4).encode())
    assert len(picture.glance().instances) == 1


def test_a_picture_of_very_many_instances_decisions_and_micro_batches_stays_small() -> None:
    picture, _ = make()
    for number in range(1_000):
        picture.add(instance(1, [0] * 4, f"i{number}"))
        picture.add(decision(time=number, epoch=number + 1))
        picture.add(batch(number))
    glance = picture.glance()
    assert len(glance.instances) == module.MOST_INSTANCES
    assert len(glance.decisions) == module.MOST_DECISIONS
    assert len(glance.points) == module.MOST_POINTS
    assert glance.decisions[-1].at == 999


@examples(60)
@given(st.lists(PARTITIONER | BATCH | HEARTBEAT | DECISION, max_size=12))
def test_whatever_telemetry_says_the_view_is_json(records: list[Any]) -> None:
    picture, _ = make()
    for record in records:
        picture.take(record.model_copy(update=COMMON).encode())
    assert json.loads(json.dumps(picture.glance().plain(), allow_nan=False))["query"] == "q"


def test_what_an_instance_hears_of_the_others_is_shown_and_grows_older_while_it_is_silent() -> None:
    picture, clock = make()
    known = ExchangeState(
        instances=3, elected=True, round=7, members=2, age_ms=1_500, unanswered=1, rate_in=700.5,
        rate_out=350.2,
    )  # fmt: skip
    picture.add(instance(1.0, [1, 1, 1, 1], exchange=known))
    picture.add(instance(1.0, [1, 1, 1, 1], name="1"))
    clock.now += 2
    shown = {one.name: one.exchange for one in picture.glance().instances}
    assert shown["1"] is None
    assert shown["0"] == ExchangeGlance(
        elected=True, round=7, members=2, instances=3, age_s=3.5, unanswered=1, rate_in=700.5, rate_out=350.2
    )


def test_micro_batches_of_an_instance_are_shown() -> None:
    picture, _ = make()
    last = BatchState(
        tuples=900, keys=40, split=2, bsi=4.0, bci=3.0, ksr=1.05, mpi=2.7, reduce_bsi=5.0, reduce_bci=6.0,
        reduce_ksr=1.0,
        reduce_mpi=4.0, took_ms=40.0, late=0.03,
    )  # fmt: skip
    known = BatchesState(
        interval_ms=1_500, clock="processing", count=9, cut_short={"memory": 2, "end": 1}, held=70, last=last
    )
    for name, batches in {"0": known, "1": known.model_copy(update={"last": None}), "2": None}.items():
        picture.add(instance(1.0, [1, 1, 1, 1], name, batches=batches))
    shown = {one.name: one.batches for one in picture.glance().instances}
    empty = {"tuples": None, "split": None, "took_s": None, "late": None}
    common: dict[str, Any] = {
        "interval_s": 1.5,
        "clock": "processing",
        "count": 9,
        "cut_short": 3,
        "held": 70,
    }
    assert shown["0"] == BatchesGlance(**common, tuples=900, split=2, took_s=0.04, late=0.03)
    assert shown["1"] == BatchesGlance(**common, **empty)
    assert shown["2"] is None
