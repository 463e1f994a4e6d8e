"""What an instance reports: whole periods by an injected clock, and something even when nothing happens."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evenflow.partitioners import create
from evenflow.progress import PartitionState
from evenflow.settings import Settings, load_settings
from evenflow.telemetry import PartitionerRecord, parse
from partitioner_service.kafka.unfetchable import UnfetchableBatches
from partitioner_service.reports.rejections import RejectionCounts
from partitioner_service.reports.status import Work
from partitioner_service.reports.telemetry import Periods, Reports
from partitioner_service.routing.pieces import RoutedTuples
from partitioner_service.routing.router import Router
from partitioner_service.routing.window_loads import block_loads


def hashes(*keys: int) -> Any:
    return np.array(keys, np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def sent(*keys: int, workers: list[int] | None = None) -> RoutedTuples:
    """Tuples of these keys, all at worker 0 unless said otherwise."""
    names = pa.array([f"key {key}".encode() for key in keys], pa.binary())
    at = np.array(workers or [0] * len(keys), np.int32)
    loads = np.bincount(at, minlength=8)
    by_pane = block_loads(at, np.zeros(len(keys), np.int64), loads)
    return RoutedTuples(names, hashes(*keys), at, loads, loads, by_pane)


def make_settings(**spark: Any) -> Settings:
    return load_settings(
        query={"name": "q", "window": "4s", "slide": "1s", "out_of_orderness": "500ms"},
        input={"partitions": 3},
        partitioner={"workers": 2, "instance": "east-1"},
        spark=spark,
    )


class Instance:
    """An instance's reports, at a clock of our own."""

    def __init__(self, **spark: Any) -> None:
        self.settings = make_settings(**spark)
        self.now = 100.0
        self.reports = Reports(self.settings, clock=lambda: self.now, wall=lambda: 1_700_000_000 + self.now)
        self.router = Router(self.settings, create("hashing", workers=2))
        self.work = Work(rejected=RejectionCounts(self.settings))
        self.states: dict[int, PartitionState] = {}
        self.lags: dict[int, int | None] = {}

    def record(self) -> PartitionerRecord:
        source: Any = SimpleNamespace(
            partition_count=len(self.states),
            states=self.states,
            lag=self.lags.get,
            unfetchable=UnfetchableBatches("in"),
        )
        record = self.reports.record(source, self.router, self.work, ignored=4)
        assert parse(record.encode()) == record
        return record


def test_a_period_counts_tuples_distinct_keys_and_busy_time_of_itself_alone() -> None:
    periods = Periods(2.0, now=10.0)
    periods.note(sent(*range(300)), 0.5, workers=2, now=0.0)
    periods.roll(11.9)
    assert periods.last is None
    periods.note(sent(*range(100, 400)), 0.25, workers=2, now=0.0)
    periods.roll(12.5)
    assert periods.last is not None
    assert (periods.last.seconds, periods.last.tuples, periods.last.busy_seconds) == (2.5, 600, 0.75)
    assert periods.last.keys == pytest.approx(400, rel=0.05)
    periods.note(sent(1, 1), 0.1, workers=2, now=0.0)
    periods.roll(14.5)
    assert (periods.last.tuples, round(periods.last.keys), periods.last.busy_seconds) == (2, 1, 0.1)


def test_rate_keys_and_busy_are_those_of_the_last_whole_period() -> None:
    instance = Instance(batch_interval="5s")
    first = instance.record()
    assert (first.rate, first.keys, first.busy, first.period_ms) == (None, None, None, 0)
    instance.reports.note(sent(4, 5, 6, 6), 1.0, workers=2)
    instance.now += 5
    known = instance.record()
    assert (known.period_ms, known.rate, known.busy) == (5_000, 0.8, 0.2)
    assert round(known.keys or 0) == 3
    instance.reports.note(sent(9), 1.0, workers=2)
    instance.now += 4
    assert instance.record().rate == known.rate
    instance.now += 1
    assert instance.record().rate == 0.2


@pytest.mark.parametrize(
    ("interval", "seconds"), [("100ms", 1.0), ("2s", 2.0), ("5s", 5.0), ("1m", 5.0), ("0s", 1.0)]
)
def test_silence_is_never_longer_than_a_batch_interval_or_five_seconds(interval: str, seconds: float) -> None:
    instance = Instance(batch_interval=interval)
    assert instance.reports.due
    instance.record()
    instance.now += seconds - 0.01
    assert not instance.reports.due
    instance.now += 0.01
    assert instance.reports.due


def test_without_partitions_and_input_an_instance_says_that_it_lives() -> None:
    record = Instance().record()
    assert (record.instance, record.owned, record.lag, record.mark, record.event_time) == (
        "east-1",
        0,
        0,
        None,
        None,
    )
    assert (record.started, record.time) == (1_700_000_100_000, 1_700_000_100_000)
    assert (record.epoch, record.workers, record.loads, record.plans_ignored) == (0, 2, [0, 0], 4)


def test_what_is_not_known_is_none_and_the_mark_is_the_least_of_the_awake() -> None:
    instance = Instance()
    none = PartitionState(fingerprint=instance.settings.fingerprint, topic_id="t", offset=0)
    at = [replace(none, first_time=0, max_time=largest) for largest in (9_000, 5_000, 7_000)]
    instance.states = {0: at[0], 1: replace(at[1], asleep=True), 2: at[2]}
    instance.lags = {0: 5, 1: 0, 2: 2}
    record = instance.record()
    assert (record.owned, record.lag, record.event_time, record.mark) == (3, 7, 9_000, 6_500)
    assert record.slowest == 2, "partition 1 sleeps"
    instance.states[2] = none
    instance.lags[2] = None
    record = instance.record()
    assert (record.lag, record.mark) == (None, None)


def test_imbalance_and_the_hottest_keys_are_those_of_the_last_whole_period() -> None:
    instance = Instance(batch_interval="5s")
    instance.reports.note(sent(*[7] * 6, 8, 9, workers=[0, 0, 0, 0, 1, 1, 0, 1]), 0.1, workers=2)
    assert instance.record().imbalance is None
    instance.now += 5
    record = instance.record()
    assert record.imbalance == pytest.approx(5 / 8 - 1 / 2)
    hottest = record.hottest[0]
    assert (hottest.key, hottest.length, hottest.share, hottest.holders) == ("key 7", 5, 0.75, 2)
    assert (hottest.workers, hottest.parts) == ([0, 1], [0.6667, 0.3333])
    instance.now += 5
    idle = instance.record()
    assert (idle.imbalance, idle.hottest) == (None, []), "nothing was routed"


@pytest.mark.parametrize(("before", "after"), [(2, 4), (4, 2)])
def test_a_period_in_which_the_number_of_workers_changed_has_no_imbalance(before: int, after: int) -> None:
    periods = Periods(1.0, now=0.0)
    periods.note(sent(1, 2, workers=[0, before - 1]), 0.1, workers=before, now=0.0)
    periods.note(sent(1, 2, workers=[0, after - 1]), 0.1, workers=after, now=0.0)
    periods.roll(1.0)
    assert periods.last is not None
    assert periods.last.imbalance is None
    periods.note(sent(1, 2, workers=[0, after - 1]), 0.1, workers=after, now=0.0)
    periods.roll(2.0)
    assert periods.last.imbalance == pytest.approx(1 / 2 - 1 / after)
