"""Workers whose speeds are told while the partitioner runs."""

import numpy as np
import pytest

from evenflow.errors import ConfigError, IncompatibleStateError
from evenflow.numeric.arrays import Float64s, Int64s, UInt64s
from evenflow.partitioners import create, restore
from evenflow.partitioners.exchange import Table
from tests.unit.partitioners.evenflow.test_water_filling_model import skewed

WINDOW = {"window_ms": 300, "slide_ms": 50}


def test_a_worker_that_is_found_to_be_half_as_fast_gets_half_as_much() -> None:
    keys, times = skewed(60_000, z=1.2, keys=2_000, seed=3, busy=40)
    p = create("evenflow", workers=8, **WINDOW)
    p.assign(keys[:20_000], times[:20_000])
    p.set_speeds(np.array([0.5, *[1.0] * 7]))
    out = p.assign(keys[20_000:], times[20_000:])
    loads = np.bincount(out[-20_000:], minlength=8)
    assert loads[0] == pytest.approx(loads[1:].mean() / 2, rel=0.05)


def test_what_was_sent_is_remembered_exactly_whatever_speeds_are_told() -> None:
    keys, times = skewed(5_000, z=1.2, keys=200, seed=5)
    p = create("evenflow", workers=5, **WINDOW)
    p.assign(keys, times, np.arange(1, 5_001))
    before = p.window_tuples().tolist()
    rng = np.random.default_rng(1)
    for _ in range(20):
        p.set_speeds(rng.uniform(0.001, 1_000, 5))
        assert p.window_tuples().tolist() == before


def test_after_a_rescale_the_workers_that_stay_are_as_fast_as_before() -> None:
    keys, times = skewed(60_000, z=1.0, keys=2_000, seed=4, busy=40)
    p = create("evenflow", workers=4, **WINDOW)
    p.set_speeds(np.array([0.25, 1.0, 1.0, 1.0]))
    p.rescale(6)
    loads = np.bincount(p.assign(keys, times)[-30_000:], minlength=6)
    # A worker that nobody has measured counts as fast as the others on average.
    assert loads[0] / loads[1] == pytest.approx(0.25, rel=0.1)
    assert loads[5] / loads[1] == pytest.approx(np.mean([0.25, 1, 1, 1]), rel=0.1)


def test_speeds_that_are_no_speeds_are_refused_and_nothing_has_changed() -> None:
    p = create("evenflow", workers=3, **WINDOW)
    before = p.snapshot()
    for speeds, words in (
        ([1.0, 1.0], "3 workers"),
        ([1, 1, 0.0], "a speed must be"),
        ([1, 1, np.nan], "a speed"),
    ):
        with pytest.raises(ValueError, match=words):
            p.set_speeds(np.array(speeds))
    assert p.snapshot() == before


def test_an_algorithm_that_counts_only_its_own_tuples_says_so() -> None:
    with pytest.raises(ConfigError, match="pkg cannot be told how fast workers are"):
        create("pkg", workers=3).set_speeds(np.ones(3))


def routed_by(sources: int, keys: UInt64s, times: Int64s, speeds: Float64s, *, exchange: bool) -> Int64s:
    """Tuples of each worker in the last third, when so many sources take turns and have been told these
    speeds.
    """
    n = len(speeds)
    each = [create("evenflow", workers=n, source=s, sources=sources, **WINDOW) for s in range(sources)]
    merger = each[0].merger(clock=lambda: 0.0)
    loads = np.zeros(n, np.int64)
    for first in range(0, len(keys), 2_000):
        for number, one in enumerate(each):
            mine = slice(first + number, first + 2_000, sources)
            out = one.assign(keys[mine], times[mine])
            if first == 4_000:
                one.set_speeds(speeds)
            if first > len(keys) * 2 // 3:
                loads += np.bincount(out, minlength=n)
        if exchange:
            now = int(times[min(first + 2_000, len(times)) - 1])
            told = [message for one in each if (message := one.tell(now)) is not None]
            if told:
                body = merger.merge(told)
                table = Table(told[0].round, tuple(message.source for message in told), body)
                assert all(one.hear(table, now) for one in each)
    return loads


@pytest.mark.parametrize("exchange", [False, True])
@pytest.mark.parametrize("sources", [2, 4])
@pytest.mark.parametrize("z", [0.3, 0.8])
def test_through_several_sources_a_slow_worker_gets_less_too(z: float, sources: int, exchange: bool) -> None:
    keys, times = skewed(120_000, z=z, keys=20_000, seed=6, busy=40)
    speeds = np.array([0.5, *[1.0] * 7])
    loads = routed_by(sources, keys, times, speeds, exchange=exchange)
    took = loads / speeds
    assert took.max() / took.mean() < 1.1


def test_speeds_are_forgotten_on_demand() -> None:
    p = create("evenflow", workers=3, weights=(1.0, 2.0, 1.0), **WINDOW)
    assert p.speeds is None
    p.set_speeds(np.array([1.0, 0.5, 1.0]))
    assert p.speeds is not None
    assert p.speeds.tolist() == [1.0, 0.5, 1.0]
    p.set_speeds(None)
    assert p.speeds is None
    assert restore(p.snapshot()).speeds is None
    keys, times = skewed(20_000, z=0.5, keys=2_000, seed=7, busy=40)
    loads = np.bincount(p.assign(keys, times), minlength=3)
    assert loads[1] / loads[0] == pytest.approx(2, rel=0.1)


def test_a_snapshot_with_speeds_that_are_none_is_refused() -> None:
    p = create("evenflow", workers=3, **WINDOW)
    p._speeds[:] = [1.0, 0.0, 1.0]
    with pytest.raises(IncompatibleStateError, match="does not fit this evenflow"):
        restore(p.snapshot())
