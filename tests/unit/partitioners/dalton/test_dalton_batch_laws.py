"""Laws of Dalton for micro-batches (spec section 9), against a plain second writing of the rule."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.keys import candidate
from evenflow.partitioners import create
from evenflow.partitioners.dalton.batch import DaltonBatch
from tests.examples import examples
from tests.unit.partitioners.dalton.dalton_model import SlowDaltonBatch
from tests.unit.partitioners.streams import SPREAD, Stream, all_distinct, with_gaps, zipf

few = examples(25)
small = st.builds(
    zipf, st.integers(1, 500), keys=st.integers(1, 60), z=st.floats(0, 2.5), seed=st.integers(0, 99)
)


def fast(workers: int, **options: object) -> DaltonBatch:
    made = create("dalton-batch", workers=workers, **{"window_ms": 1000, "slide_ms": 100, **options})
    assert isinstance(made, DaltonBatch)
    return made


def batches(stream: Stream, cuts: list[int]) -> list[Stream]:
    edges = sorted({0, len(stream[0]), *(cut for cut in cuts if cut < len(stream[0]))})
    return [(stream[0][a:b], stream[1][a:b]) for a, b in pairwise(edges)]


@few
@given(small, st.integers(1, 12), st.lists(st.integers(1, 500), max_size=8), st.booleans(), st.booleans())
def test_it_places_as_a_plain_second_writing_of_the_rule(
    stream: Stream, workers: int, cuts: list[int], by_batch: bool, capped: bool
) -> None:
    p = fast(
        workers,
        eps=0.3,
        load_scope="batch" if by_batch else "window",
        **({"explore": "capped", "cap": 2, "cap_growth": 0.4} if capped else {}),
    )
    slow = SlowDaltonBatch(
        workers, eps=0.3, by_batch=by_batch, **({"cap": 2, "cap_growth": 0.4} if capped else {})
    )
    for keys, times in batches(stream, cuts):
        assert p.assign_batch(keys, times).tolist() == slow.assign_batch(keys.tolist(), times.tolist())
        assert p._loads.loads.tolist() == slow.loads()
        assert {k: v.tolist() for k, v in p._split.values().items()} == slow.q
        held = slow.holders()
        assert p._split.holders(slow.batch) == {k: held.get(k, set()) for k in slow.q}
        assert len(slow.new) <= workers
        assert len(p._split) <= 2 * workers


def test_loads_of_the_window_survive_gaps_and_batches() -> None:
    p, slow = fast(8, eps=0.5), SlowDaltonBatch(8, eps=0.5)
    for keys, times in batches(with_gaps(1500), [100, 333, 700, 1200]):
        assert p.assign_batch(keys, times).tolist() == slow.assign_batch(keys.tolist(), times.tolist())
        assert p._loads.loads.tolist() == slow.loads()


@pytest.mark.parametrize("scope", ["window", "batch"])
def test_batches_without_frequent_keys_are_hashed(scope: str) -> None:
    rng = np.random.default_rng(4)
    uniform = rng.integers(0, 20_000, 30_000).astype(np.uint64) * SPREAD, np.arange(30_000)
    for stream in (uniform, all_distinct(5000)):
        p = fast(16, load_scope=scope)
        for keys, times in batches(stream, list(range(1000, 30_000, 1000))):
            assert p.assign_batch(keys, times).tolist() == candidate(keys, 1, 16, 7).tolist()
        assert p.observe().head_keys == 0


@few
@given(small, st.integers(1, 30), st.lists(st.integers(1, 500), max_size=5))
def test_without_exploration_no_key_ever_leaves_its_first_worker(
    stream: Stream, workers: int, cuts: list[int]
) -> None:
    p = fast(workers, eps=0.0)
    for keys, times in batches(stream, cuts):
        assert p.assign_batch(keys, times).tolist() == candidate(keys, 1, workers, 7).tolist()


def test_a_key_is_hot_from_its_batchs_first_tuple_and_in_the_next_batch() -> None:
    p = fast(10, eps=1.0)
    hot, rest = np.full(100, 9, np.uint64) * SPREAD, (np.arange(100) + 20).astype(np.uint64) * SPREAD
    out = p.assign_batch(np.concatenate([hot, rest]), np.arange(200, dtype=np.int64))
    assert len(set(out[:20].tolist())) > 3
    assert p.observe().head_keys == 1
    p.assign_batch(rest, np.arange(200, 300, dtype=np.int64))
    assert p.observe().head_keys == 1
    assert p._split.holders(2) == {int(hot[0]): set()}
    p.assign_batch(rest, np.arange(300, 400, dtype=np.int64))
    assert p.observe().head_keys == 0
    assert len(p._split) == 0


def test_balancing_the_batch_balances_the_batch() -> None:
    stream = zipf(60_000, keys=5000, z=1.4)
    worst = {}
    for scope in ("window", "batch"):
        p = create("dalton-batch", workers=16, load_scope=scope)
        worst[scope] = [
            np.bincount(p.assign_batch(*batch), minlength=16).max()
            for batch in batches(stream, list(range(1000, 60_000, 1000)))
        ][10:]
    hashed = np.bincount(candidate(stream[0], 1, 16, 7), minlength=16).max() / 60
    assert np.mean(worst["batch"]) < 0.7 * hashed
    assert np.mean(worst["window"]) < 0.9 * hashed
