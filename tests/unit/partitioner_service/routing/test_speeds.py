"""Speeds of workers, from what Spark's telemetry says of micro-batches."""

import json
import logging
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError
from evenflow.numeric.arrays import Float64s
from evenflow.partitioners import create, restore
from evenflow.settings import Settings
from evenflow.telemetry import BatchRecord, PartWork, WorkerTimes
from partitioner_service.kafka.learned_state import LearnedState, new_partitioner
from partitioner_service.routing.speeds import MeasuredSpeeds, Speeds
from tests.examples import examples
from tests.unit.partitioners.streams import SPREAD

WORKERS = 8
WINDOW = {"window_ms": 1_000, "slide_ms": 100}


def settings_of(**partitioner: Any) -> Settings:
    return Settings(
        query={
            "name": "q",
            "window": "1s",
            "slide": "100ms",
            "key": "k",
            "time": "t",
            "aggregates": {"n": "count"},
        },
        input={"topic": "in", "partitions": 1},
        partitioner={"workers": WORKERS, "speeds": "measured", **partitioner},
    )


def record(settings: Settings, work: WorkerTimes, **fields: Any) -> bytes:
    part = PartWork(tasks=1, busy_ms=1.0, longest_ms=1.0, rows=sum(rows for _, rows, _ in work), routed=work)
    told = BatchRecord(
        query=settings.query.name,
        fingerprint=settings.fingerprint,
        time=1,
        stage="fused",
        batch=1,
        rows=1,
        finished=100,
        duration_ms=1,
        batch_interval_ms=1,
        parts={"combine": part},
    )
    return told.model_copy(update=fields).encode()


def even(ms: float = 10.0, *, slow: int | None = None, times: float = 4.0) -> WorkerTimes:
    return [(w, 1_000, ms * (times if w == slow else 1.0)) for w in range(WORKERS)]


@examples(60)
@given(
    st.lists(st.floats(0.05, 20), min_size=WORKERS, max_size=WORKERS),
    st.integers(1_000, 100_000),
    st.floats(1e-4, 10),
)
def test_measured_speeds_are_those_of_the_workers(speeds: list[float], tuples: int, unit: float) -> None:
    estimate, true = Speeds(WORKERS), np.array(speeds)
    for _ in range(5):
        estimate.combined([(w, tuples, tuples * unit / speed) for w, speed in enumerate(speeds)])
    told = estimate.of(WORKERS)
    assert told is not None
    # They are drawn to the mean by three hundredths of it.
    times = (1 / true) / (1 / true).mean()
    assert 1 / told == pytest.approx(np.clip((times + 0.03) / 1.03, 1 / 32, 32), rel=1e-6)


def test_before_a_thousand_tuples_of_a_worker_nothing_is_believed() -> None:
    estimate = Speeds(WORKERS)
    estimate.combined([(w, 200, 1.0) for w in range(WORKERS)])
    assert estimate.of(WORKERS) is None


def test_a_worker_without_tuples_is_as_fast_as_all() -> None:
    estimate = Speeds(WORKERS)
    estimate.combined([(w, 5_000, 20.0) for w in range(WORKERS - 1)])
    told = estimate.of(WORKERS)
    assert told is not None
    assert told[-1] == pytest.approx(1.0)


def test_workers_with_dear_tuples_are_not_taken_for_slow() -> None:
    estimate = Speeds(WORKERS)
    tuples = np.full(WORKERS, 10_000)
    costs = np.where(np.arange(WORKERS) == 2, 50, 5) * tuples
    estimate.routed(tuples, costs)
    estimate.combined([(w, 10_000, float(costs[w]) / 1_000) for w in range(WORKERS)])
    told = estimate.of(WORKERS)
    assert told is not None
    assert told.max() / told.min() < 1.2


def test_workers_that_share_a_partition_have_its_speed_whatever_their_tuples_cost() -> None:
    speeds = Speeds(4, 2)
    # Workers 0 and 2 share a partition. Each tuple of worker 0 is ten times the work, and its machine is as
    # fast as the other one.
    tuples, costs = np.array([500, 3_000, 5_000, 3_000]), np.array([5_000, 3_000, 5_000, 3_000])
    for _ in range(3):
        speeds.routed(tuples, costs)
        per_tuple = costs[[0, 2]].sum() / tuples[[0, 2]].sum()
        speeds.combined(
            [(w, int(tuples[w]), float(tuples[w] * (per_tuple if w % 2 == 0 else 1.0))) for w in range(4)]
        )
    measured = speeds.of(4)
    assert measured is not None
    assert measured.tolist() == pytest.approx([1.0] * 4, rel=0.1)


def test_the_partitioner_is_told_once_and_again_only_when_speeds_have_changed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    settings, p = settings_of(), create("evenflow", workers=WORKERS, **WINDOW)
    measured = MeasuredSpeeds(settings)
    for _ in range(3):
        measured.offer(record(settings, even(slow=3)))
    measured.tell(p)
    first = p.speeds
    assert first is not None
    assert first.argmin() == 3
    assert "the slowest is worker 3" in caplog.text
    before = p.snapshot()
    measured.offer(record(settings, even(slow=3)))
    measured.tell(p)
    assert p.snapshot() == before
    assert p.speeds.tolist() == first.tolist()
    for _ in range(20):
        measured.offer(record(settings, even()))
    measured.tell(p)
    assert p.speeds.tolist() != first.tolist()
    assert p.speeds is not None
    assert p.speeds.max() / p.speeds.min() < 1.1


def test_records_of_others_and_bytes_that_are_no_telemetry_change_nothing() -> None:
    settings = settings_of()
    measured, p = MeasuredSpeeds(settings), create("evenflow", workers=WORKERS, **WINDOW)
    good = json.loads(record(settings, even(slow=1)))
    for value in (
        None,
        b"",
        b"{}",
        b"\xff",
        record(settings, even(slow=1), fingerprint="0" * 16),
        json.dumps(
            good | {"parts": {"combine": good["parts"]["combine"] | {"routed": [[0, -1, 1.0]]}}}
        ).encode(),
        record(settings, []),
    ):
        measured.offer(value)
    measured.tell(p)
    assert p.speeds is None


def test_workers_that_do_not_exist_are_passed_over() -> None:
    settings = settings_of()
    measured, p = MeasuredSpeeds(settings), create("evenflow", workers=WORKERS, **WINDOW)
    measured.offer(record(settings, [*even(), (WORKERS, 10_000, 9e9), (4_000, 10_000, 1.0)]))
    measured.tell(p)
    assert p.speeds is None  # all are alike


def test_after_a_plan_the_speeds_of_the_workers_in_use_are_told() -> None:
    settings = settings_of(workers=4, routed_partitions=WORKERS)
    measured, p = MeasuredSpeeds(settings), create("evenflow", workers=4, **WINDOW)
    for _ in range(3):
        measured.offer(record(settings, even(slow=3)))
    measured.tell(p)
    p.rescale(WORKERS)
    measured.offer(record(settings, even(slow=3)))
    measured.tell(p)
    assert p.speeds is not None
    assert len(p.speeds) == WORKERS
    assert p.speeds.argmin() == 3


def test_a_partitioner_that_cannot_be_told_is_refused_in_words() -> None:
    with pytest.raises(ConfigError, match="partitioner pkg cannot be told how fast workers are"):
        new_partitioner(settings_of(name="pkg"))
    assert new_partitioner(settings_of()).takes_speeds


def _longest_by_window(
    *, measured: bool, seed: int, slow: int | None = None, dear: int | None = None
) -> Float64s:
    """Time of the slowest worker over the mean time, in each window. From the fifth window on something is
    amiss.

    slow: a worker whose machine is half as fast then. dear: a worker whose keys are twenty times the work
    then.
    """
    rng, p, settings = (
        np.random.default_rng(seed),
        create("evenflow", workers=WORKERS, **WINDOW),
        settings_of(),
    )
    speeds, ranks = MeasuredSpeeds(settings), 2_000
    shares = np.arange(1, ranks + 1) ** -0.8
    work, machines, newest = np.ones(ranks), np.ones(WORKERS), np.full(ranks, -1)
    took = []
    for batch in range(100):
        keys = rng.choice(ranks, 5_000, p=shares / shares.sum())
        out = p.assign((keys + 1).astype(np.uint64) * SPREAD, 200 * batch + np.arange(5_000) // 25)
        newest[keys] = out
        if batch == 20:
            machines[slow if slow is not None else []] = 0.5
            work[newest == dear] = 20.0
        counts = np.bincount(out, minlength=WORKERS)
        took.append(np.bincount(out, weights=work[keys], minlength=WORKERS) / machines)
        if measured:
            each = zip(range(WORKERS), counts.tolist(), took[-1].tolist(), strict=True)
            speeds.offer(record(settings, list(each)))
            speeds.note(counts, counts)
            speeds.tell(p)
    of_windows = np.array(took).reshape(-1, 5, WORKERS).sum(axis=1)
    ratios: Float64s = of_windows.max(axis=1) / of_windows.mean(axis=1)
    return ratios


@pytest.mark.parametrize("seed", range(3))
def test_a_slow_machine_gets_less_until_all_take_equally_long(seed: int) -> None:
    assert _longest_by_window(measured=False, seed=seed, slow=5)[-10:].min() > 1.7
    assert _longest_by_window(measured=True, seed=seed, slow=5)[-10:].max() < 1.1


@pytest.mark.parametrize("seed", range(3))
def test_a_worker_whose_keys_are_twenty_times_the_work_is_relieved(seed: int) -> None:
    assert _longest_by_window(measured=False, seed=seed, dear=4)[-10:].min() > 4
    assert _longest_by_window(measured=True, seed=seed, dear=4)[-10:].max() < 1.4


def test_after_a_restart_the_speeds_of_the_snapshot_give_way_to_what_is_measured() -> None:
    settings, p = settings_of(), create("evenflow", workers=WORKERS, **WINDOW)
    measured = MeasuredSpeeds(settings)
    for _ in range(3):
        measured.offer(record(settings, even(slow=3)))
    measured.tell(p)
    again, measured = restore(p.snapshot()), MeasuredSpeeds(settings)
    for _ in range(3):
        measured.offer(record(settings, even()))
    measured.tell(again)
    assert again.speeds is not None
    assert again.speeds.max() / again.speeds.min() < 1.05


@pytest.mark.parametrize(("speeds", "kept"), [("measured", True), ("settings", False)])
def test_speeds_of_a_snapshot_are_kept_only_while_they_are_measured(speeds: str, kept: bool) -> None:
    p = new_partitioner(settings_of())
    p.assign(np.arange(1, 100, dtype=np.uint64), np.arange(99))
    p.set_speeds(np.array([0.5, *[1.0] * (WORKERS - 1)]))
    side: Any = SimpleNamespace(snapshot=lambda: SimpleNamespace(snapshot=p.snapshot(), epoch=0, own=True))
    restored, _ = LearnedState(settings_of(speeds=speeds), side).restored()
    assert (restored.speeds is not None) == kept


def test_one_micro_batch_in_which_a_machine_stood_still_is_forgotten_soon() -> None:
    estimate = Speeds(WORKERS)
    for _ in range(20):
        estimate.combined(even())
    estimate.combined(even(slow=0, times=100))
    for _ in range(4):
        estimate.combined(even())
    told = estimate.of(WORKERS)
    assert told is not None
    assert told.min() / told.mean() > 0.75


def test_on_a_slow_stream_tuples_are_remembered_until_they_are_enough() -> None:
    estimate = Speeds(WORKERS)
    for _ in range(30):
        estimate.combined([(w, 50, 2.0 if w == 2 else 1.0) for w in range(WORKERS)])
    told = estimate.of(WORKERS)
    assert told is not None
    assert told.argmin() == 2


def test_the_first_micro_batches_of_a_driver_say_nothing() -> None:
    settings, p = settings_of(), create("evenflow", workers=WORKERS, **WINDOW)
    measured = MeasuredSpeeds(settings)
    for finished in (1, 2, 3):
        measured.offer(record(settings, even(slow=1), finished=finished))
    measured.tell(p)
    assert p.speeds is None
    measured.offer(record(settings, even(slow=1), finished=4))
    measured.tell(p)
    assert p.speeds is not None


def test_a_spark_that_does_not_measure_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    settings = settings_of()
    measured = MeasuredSpeeds(settings)
    silent = json.loads(record(settings, even()))
    silent["parts"]["combine"]["routed"] = []
    for _ in range(100):
        measured.offer(json.dumps(silent).encode())
    warnings = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "Spark does not say how long workers' tuples take" in warnings[0]


def test_frames_that_tell_marks_alone_are_no_measure_of_speed() -> None:
    estimate = Speeds(WORKERS)
    with np.errstate(all="raise"):
        estimate.combined([(w, 0, 1.0) for w in range(WORKERS)])
        estimate.combined(even())
        estimate.combined(even())
        assert estimate.of(WORKERS) is not None
