"""Laws of dynamic key grouping: rows of consecutive workers that grow and shrink, one step at a time."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.keys import candidate
from evenflow.partitioners import Partitioner, create
from evenflow.partitioners.snapshots import unpack
from evenflow.sketches.space_saving import SpaceSaving
from tests.examples import examples
from tests.unit.partitioners.streams import Stream, one_key, zipf

few = examples(40)
streams = st.builds(
    zipf, st.integers(1, 400), keys=st.integers(1, 60), z=st.floats(0, 2.5), seed=st.integers(0, 99)
)
QUICK = {"check_ms": 100, "warm_up_ms": 100}


def widths(p: Partitioner) -> dict[int, int]:
    state = unpack(p.snapshot())[1]
    return dict(zip(state["keys"].tolist(), state["width"].tolist(), strict=True))


def naive(
    stream: Stream,
    n: int,
    *,
    frequent: float,
    counters: int,
    check_ms: int,
    warm_up_ms: int,
    window: int | None,
) -> list[int]:
    """The rule in plain Python; the window is in slides of 100 ms."""
    homes = candidate(stream[0], 1, n, 7).tolist()
    clock = np.maximum.accumulate(stream[1]).tolist()
    sketch = SpaceSaving(counters)
    rows: dict[int, list[int]] = {}  # key: [width, time of the last change]
    out: list[int] = []
    ideal = 100 / n
    for key, home, now in zip(stream[0].tolist(), homes, clock, strict=True):
        sketch.offer(np.array([key], np.uint64))
        monitored = sketch.counters()[0].tolist()
        rows = {k: v for k, v in rows.items() if k in set(monitored)}
        mine = rows.setdefault(key, [min(2, n), now])
        inside = [w for at, w in enumerate(out) if window is None or clock[at] // 100 > now // 100 - window]
        loads = np.bincount(inside, minlength=n)
        percent = 100 * loads / max(1, len(inside))
        workers = [(home + i) % n for i in range(mine[0])]
        tenth = monitored[-math.ceil(frequent * len(monitored)) :] if frequent else []
        if key in tenth and now - mine[1] >= check_ms and now - clock[0] >= warm_up_ms:
            following = (home + mine[0]) % n
            least = min(workers, key=lambda w: loads[w])
            low = [w for w in workers if percent[w] < ideal - math.sqrt(ideal) - 1e-9]
            if (
                mine[0] < n
                and percent[least] > ideal + math.sqrt(ideal) + 1e-9
                and loads[following] < loads[least]
            ):
                workers.append(following)
            elif mine[0] > 2 and len(low) >= 2:
                workers.pop()
            if len(workers) != mine[0]:
                rows[key] = [len(workers), now]
        out.append(min(workers, key=lambda w: loads[w]))
    return out


@few
@given(
    streams,
    st.integers(1, 20),
    st.sampled_from([0.0, 0.1, 1.0]),
    st.sampled_from([5, 64]),
    st.sampled_from([1, 20, 150]),
    st.sampled_from([0, 100]),
    st.booleans(),
)
def test_dkg_equals_the_rule_in_plain_python(
    stream: Stream, n: int, frequent: float, counters: int, check_ms: int, warm_up_ms: int, windowed: bool
) -> None:
    load = {"window": "sliding", "window_ms": 200, "slide_ms": 100} if windowed else {}
    shape = {"frequent": frequent, "counters": counters, "check_ms": check_ms, "warm_up_ms": warm_up_ms}
    out = create("dkg", workers=n, **shape, **load).assign(*stream)
    assert out.tolist() == naive(stream, n, **shape, window=2 if windowed else None)


@pytest.mark.parametrize("n", [1, 2, 9, 64])
def test_every_key_starts_with_two_consecutive_workers(n: int) -> None:
    keys, times = zipf(20_000)
    out = create("dkg", workers=n, warm_up_ms=10**9).assign(keys, times)
    step = (out - candidate(keys, 1, n, 7)) % n
    assert set(step.tolist()) == set(range(min(2, n)))


@pytest.mark.parametrize("n", [10, 200])
def test_a_key_changes_at_most_once_in_a_check_interval(n: int) -> None:
    """Real shares: also beyond 100 workers, where whole percents would see nothing."""
    keys, times = one_key(4000)
    p = create("dkg", workers=n, **QUICK)
    seen = []
    for start in range(0, len(keys), 20):
        p.assign(keys[start : start + 20], times[start : start + 20])
        seen.append(widths(p)[12345])
    assert set(np.diff(seen).tolist()) == {0, 1}
    assert seen[:5] == [2] * 5  # the warm-up
    assert np.diff(np.flatnonzero(np.diff(seen))).min() >= 5  # 100 ms are five blocks
    assert seen[-1] > 5
    assert p.observe().choices == seen[-1]


def test_a_key_gives_workers_back_when_its_load_is_gone() -> None:
    """Key 12345 is hot, then only now and then; a hotter key elsewhere leaves its workers idle."""
    load = {"window": "sliding", "window_ms": 500, "slide_ms": 100}
    p = create("dkg", workers=12, frequent=1.0, **QUICK, **load)
    home = candidate(np.array([12345], np.uint64), 1, 12, 7)[0]
    others = np.arange(1, 500, dtype=np.uint64)
    far = others[(candidate(others, 1, 12, 7) - home) % 12 == 6][0]
    p.assign(np.full(3000, 12345, np.uint64), np.arange(3000))
    grown = widths(p)[12345]
    assert grown >= 5
    later = np.where(np.arange(20_000) % 100 == 0, np.uint64(12345), far)
    p.assign(later, np.arange(3000, 23_000))
    assert 2 <= widths(p)[12345] <= grown - 3


def test_rare_keys_never_gain_workers() -> None:
    keys, times = zipf(50_000, z=1.5)
    p = create("dkg", workers=20, **QUICK)
    p.assign(keys, times)
    seen = p.observe()
    grown = [key for key, width in widths(p).items() if width > 2]
    hottest = np.unique(keys, return_counts=True)
    assert 0 < len(grown) <= seen.head_keys
    assert hottest[0][hottest[1].argmax()] in grown
