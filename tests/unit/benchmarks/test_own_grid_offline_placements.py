"""The placements that know the future, on streams small enough to say what they must give."""

import numpy as np

from benchmarks.own_grid.measuring import QUICK
from benchmarks.own_grid.offline_placements import WORKERS, on_rings, whole_runs
from evenflow.simulation import KeyedStream


def stream(codes: list[int]) -> KeyedStream:
    """These keys, whose hashes are their numbers. A tuple per ms."""
    keys = np.array(codes, np.int32)
    return KeyedStream(keys.astype(np.uint64), keys, np.arange(len(keys)), max(codes) + 1, len(keys))


def test_runs_go_whole_to_the_emptiest_worker_and_sources_with_equal_parts_agree() -> None:
    size = QUICK._replace(slide=WORKERS * 10 // QUICK.window + 1)
    codes = np.repeat(np.arange(2 * WORKERS, dtype=np.int32), 10)
    for sources in (1, 5):
        out = whole_runs(codes, size, sources)
        assert out.reshape(-1, 10).min(axis=1).tolist() == out.reshape(-1, 10).max(axis=1).tolist()
        assert np.bincount(out[: WORKERS * 10]).tolist() == [10] * WORKERS


def test_sources_whose_parts_differ_by_a_tuple_choose_other_workers() -> None:
    lengths = 10 + np.arange(300) % 3
    codes = np.repeat(np.arange(300, dtype=np.int32), lengths)
    out = whole_runs(codes, QUICK, 5)
    assert len(np.unique(codes * WORKERS + out)) > 2 * 300


def test_a_hot_key_fills_all_workers_up_to_what_rare_keys_leave() -> None:
    # A thousand tuples of a hot key for each of the keys 0 and 1, which are rare.
    made = stream([3] * 1_000 + [0] + [3] * 1_000 + [1])
    out = on_rings(made, QUICK._replace(slide=len(made)), 1, 1)
    assert out[1_000] == 0
    assert out[-1] == 1
    loads = np.bincount(out, minlength=WORKERS)
    assert loads.max() - loads.min() <= 3


def test_hot_keys_in_a_row_share_the_workers_between_them_alone() -> None:
    made = stream([5, 7] * 1_600)
    out = on_rings(made, QUICK._replace(slide=len(made)), 1, 1)
    first, second = (set(out[made.codes == key].tolist()) for key in (5, 7))
    assert len(first & second) <= 1
    assert first | second == set(range(WORKERS))
