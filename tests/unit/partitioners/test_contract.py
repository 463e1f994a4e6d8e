"""The laws of every partitioner, applied to every name of the registry, plain and with other options."""

import subprocess
import sys
import zlib
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError, IncompatibleStateError
from evenflow.partitioners import create, restore
from tests.examples import examples
from tests.unit.partitioners.cases import CASES, each, each_micro_batch, each_online, keeps_every_key, run
from tests.unit.partitioners.streams import STREAMS, all_distinct, zipf


@each
@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("workers", [1, 2, 7, 64])
def test_every_tuple_gets_one_worker_in_range(name: str, options: dict, stream: str, workers: int) -> None:
    p = create(name, workers=workers, **options)
    out = run(p, STREAMS[stream])
    assert out.dtype == np.int32
    assert len(out) == len(STREAMS[stream][0])
    assert not len(out) or (out.min() >= 0 and out.max() < workers)
    seen = p.observe()
    assert seen.tuples == len(out)
    assert seen.loads.tolist() == np.bincount(out, minlength=workers).tolist()
    assert 1 <= seen.choices <= workers
    assert seen.state_bytes >= 0
    assert -1e-12 <= seen.imbalance <= 1


@each
def test_a_million_distinct_keys_stay_in_range_and_in_bounded_state(name: str, options: dict) -> None:
    p = create(name, workers=16, **options)
    out = run(p, all_distinct(1_000_000))
    assert out.min() == 0
    assert out.max() == 15
    assert p.observe().state_bytes < (400_000_000 if keeps_every_key(p) else 1_000_000)


@each_online
@given(cuts=st.lists(st.integers(0, 3000), max_size=12), seed=st.integers(0, 3))
@examples(15)
def test_the_result_does_not_depend_on_block_cuts(
    name: str, options: dict, cuts: list[int], seed: int
) -> None:
    stream = zipf(3000, seed=seed)
    whole = run(create(name, workers=10, **options), stream)
    assert run(create(name, workers=10, **options), stream, cuts).tolist() == whole.tolist()


@each_online
@pytest.mark.parametrize("stream", STREAMS)
def test_one_tuple_at_a_time_equals_one_block(name: str, options: dict, stream: str) -> None:
    keys, times = (column[:600] for column in STREAMS[stream])
    p = create(name, workers=6, **options)
    whole = create(name, workers=6, **options).assign(keys, times)
    single = [int(p.assign(keys[i : i + 1], times[i : i + 1])[0]) for i in range(len(keys))]
    assert single == whole.tolist()


@each_online
@pytest.mark.parametrize("disorder", [30, 300, 5000])
def test_a_late_tuple_counts_as_if_it_came_at_the_greatest_time_so_far(
    name: str, options: dict, disorder: int
) -> None:
    """So all that is said of windows holds by that clock, however disordered the stream.

    But `evenflow` doubts a silence of more than a window: for it, disorder is less than that.
    """
    if name == "evenflow":
        disorder = min(disorder, 500)
    keys, times = zipf(3000)
    times = times - np.random.default_rng(5).integers(0, disorder, len(times))
    clock = np.maximum.accumulate(times)
    assert not np.array_equal(clock, times)
    out = create(name, workers=9, **options).assign(keys, times)
    assert out.tolist() == create(name, workers=9, **options).assign(keys, clock).tolist()


@each_online
def test_a_batch_is_a_block_like_any_other_to_a_tuple_at_a_time_scheme(name: str, options: dict) -> None:
    keys, times = zipf(1000)
    p, q = create(name, workers=6, **options), create(name, workers=6, **options)
    for rows in (slice(0, 300), slice(300, 1000)):
        assert p.assign(keys[rows], times[rows]).tolist() == q.assign_batch(keys[rows], times[rows]).tolist()
    assert p.snapshot() == q.snapshot()


@each_micro_batch
def test_a_micro_batch_scheme_refuses_blocks_that_are_no_batches(name: str, options: dict) -> None:
    p = create(name, workers=4, **options)
    before = p.snapshot()
    with pytest.raises(ConfigError, match=f"{name} decides on whole batches\n  -> call assign_batch"):
        p.assign(*zipf(10))
    assert p.snapshot() == before


@each_micro_batch
@pytest.mark.parametrize("sizes", [[3000], [1, 2, 3, 1000, 1994], [1] * 20])
def test_a_batch_may_have_any_size(name: str, options: dict, sizes: list[int]) -> None:
    keys, times = zipf(3000)
    p, q = create(name, workers=7, **options), create(name, workers=7, **options)
    for start, size in zip(np.cumsum([0, *sizes[:-1]]).tolist(), sizes, strict=True):
        batch = keys[start : start + size], times[start : start + size]
        out = p.assign_batch(*batch)
        assert len(out) == size
        assert out.min() >= 0
        assert out.max() < 7
        assert q.assign_batch(*batch).tolist() == out.tolist()
        q = restore(q.snapshot())


@each
@pytest.mark.parametrize("cuts", [[1, 2, 999], [500], list(range(0, 1000, 7))])
def test_a_batch_is_the_same_however_its_tuples_are_added(name: str, options: dict, cuts: list[int]) -> None:
    keys, times = zipf(2000)
    p, q = create(name, workers=6, **options), create(name, workers=6, **options)
    ends = int(times[:1000].max()) + 1
    for low, high in pairwise([0, *cuts, 1000]):
        p.add_to_batch(keys[low:high], times[low:high], ends=ends)
    q.add_to_batch(keys[:1000], times[:1000], ends=ends)
    assert p.finish_batch().tolist() == q.finish_batch().tolist()
    assert p.snapshot() == q.snapshot()
    assert p.finish_batch().tolist() == []
    rest = keys[1000:], times[1000:]
    assert p.assign_batch(*rest).tolist() == q.assign_batch(*rest).tolist()


@each
def test_a_batch_that_is_dropped_leaves_no_trace(name: str, options: dict) -> None:
    keys, times = zipf(1500)
    p, q = create(name, workers=6, **options), create(name, workers=6, **options)
    p.assign_batch(keys[:500], times[:500])
    q.assign_batch(keys[:500], times[:500])
    p.add_to_batch(keys[700:1500], times[700:1500])
    with pytest.raises(ValueError, match="a batch of 800 tuples is open"):
        p.assign_batch(keys[500:], times[500:])
    p.drop_batch()
    assert p.snapshot() == q.snapshot()
    assert (
        p.assign_batch(keys[500:], times[500:]).tolist() == q.assign_batch(keys[500:], times[500:]).tolist()
    )


@each_micro_batch
def test_an_open_batch_is_planned_for_the_workers_that_there_are_at_its_end(name: str, options: dict) -> None:
    keys, times = zipf(1000)
    p = create(name, workers=6, **options)
    p.add_to_batch(keys, times)
    p.rescale(workers=3)
    assert set(p.finish_batch().tolist()) <= {0, 1, 2}


@each_micro_batch
def test_a_batch_may_hold_a_million_distinct_keys(name: str, options: dict) -> None:
    out = create(name, workers=16, **options).assign_batch(*all_distinct(1_000_000))
    assert out.min() >= 0
    assert out.max() <= 15


@each
def test_an_empty_block_changes_nothing(name: str, options: dict) -> None:
    keys, times = zipf(500)
    p = create(name, workers=5, max_disorder_ms=0, **options)
    for _ in range(2):
        before = p.snapshot()
        assert p.assign_batch(keys[:0], times[:0]).tolist() == []
        assert p.snapshot() == before
        p.assign_batch(keys, times)
        times = times + 500


@each
@pytest.mark.parametrize("stream", STREAMS)
def test_a_restored_snapshot_continues_identically(name: str, options: dict, stream: str) -> None:
    keys, times = STREAMS[stream]
    half = len(keys) // 2
    p = create(name, workers=12, source=1, sources=3, **options)
    run(p, (keys[:half], times[:half]))
    blob = p.snapshot()
    q = restore(blob)
    assert q.snapshot() == blob
    rest = keys[half:], times[half:]
    assert run(q, rest).tolist() == run(p, rest).tolist()
    a, b = p.observe(), q.observe()
    assert (a.name, a.tuples, a.choices, a.head_keys) == (b.name, b.tuples, b.choices, b.head_keys)
    assert a.loads.tolist() == b.loads.tolist()


@each
def test_another_source_takes_a_snapshot_over_only_if_it_asks_for_it_and_stays_itself(
    name: str, options: dict
) -> None:
    keys, times = zipf(2000)
    p, other = (create(name, workers=12, source=source, sources=3, **options) for source in (1, 2))
    run(p, (keys[:1000], times[:1000]))
    with pytest.raises(IncompatibleStateError, match="other values of source"):
        restore(p.snapshot(), like=other)
    q = restore(p.snapshot(), like=other, any_source=True)
    assert (q.source, q.sources) == (2, 3)
    assert q.observe().loads.tolist() == p.observe().loads.tolist()
    out = run(q, (keys[1000:], times[1000:]))
    assert 0 <= out.min() <= out.max() < 12
    assert restore(q.snapshot()).source == 2


@each
@pytest.mark.parametrize("path", [(4, 9), (9, 4), (3, 1), (1, 5), (8, 40, 5)])
def test_rescaling_keeps_every_law(name: str, options: dict, path: tuple[int, ...]) -> None:
    stream = zipf(2000)
    p = create(name, workers=path[0], **options)
    twin = create(name, workers=path[0], **options)
    for workers in path:
        p.rescale(workers)
        twin.rescale(workers)
        out = run(p, stream)
        assert out.min() >= 0
        assert out.max() < workers
        assert p.observe().workers == workers
        assert len(p.observe().loads) == workers
        assert run(twin, stream, [700]).tolist() == out.tolist()
        twin = restore(twin.snapshot())
    assert p.observe().tuples == 2000 * len(path)


@each
def test_rescaling_to_the_same_number_changes_nothing(name: str, options: dict) -> None:
    p = create(name, workers=5, **options)
    run(p, zipf(1000))
    before = p.snapshot()
    p.rescale(5)
    assert p.snapshot() == before


SCRIPT = """
import zlib
from itertools import pairwise
from tests.unit.partitioners.cases import CASES, run
from tests.unit.partitioners.streams import STREAMS
from evenflow.partitioners import create
for name, options in CASES:
    for stream in STREAMS.values():
        print(zlib.crc32(run(create(name, workers=11, seed=5, **options), stream).tobytes()))
"""


def test_other_processes_route_alike() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    here = [
        zlib.crc32(run(create(name, workers=11, seed=5, **options), stream).tobytes())
        for name, options in CASES
        for stream in STREAMS.values()
    ]
    assert [int(line) for line in done.stdout.split()] == here


@each
def test_input_that_is_read_only_strided_or_a_view_routes_alike(name: str, options: dict) -> None:
    keys, times = zipf(500)
    expected = create(name, workers=4, **options).assign_batch(keys, times).tolist()
    wide = np.repeat(keys, 2)[::2], np.repeat(times, 2)[::2]
    assert create(name, workers=4, **options).assign_batch(*wide).tolist() == expected
    for column in (frozen := (keys.copy(), times.copy())):
        column.flags.writeable = False
    assert create(name, workers=4, **options).assign_batch(*frozen).tolist() == expected
    assert keys.flags.writeable


@each
def test_keys_and_times_of_the_wrong_kind_are_refused(name: str, options: dict) -> None:
    p = create(name, workers=4, **options)
    keys, times = zipf(10)
    with pytest.raises(TypeError, match="keys must be a numpy array of uint64, not int64"):
        p.assign_batch(keys.astype(np.int64), times)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="keys must be a numpy array of uint64, not list"):
        p.assign_batch([1, 2], times)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="times must be a numpy array of int64, not float64"):
        p.assign_batch(keys, times.astype(float))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="one dimension, not 2"):
        p.assign_batch(keys.reshape(2, 5), times)
    with pytest.raises(ValueError, match="10 keys but 9 times"):
        p.assign_batch(keys, times[:9])
    assert p.observe().tuples == 0
