"""Prompt's Algorithm 3: every key meets in one bucket, and each task's own clusters are dealt out evenly."""

from collections import defaultdict
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenflow.keys import bucket_of
from evenflow.metrics import block_size_imbalance
from evenflow.partitioners import create
from evenflow.partitioners.prompt.reduce_buckets import allocate, allocate_all, clusters_of
from tests.examples import examples
from tests.unit.partitioners.streams import Stream, zipf

few = examples(40)
streams = st.builds(
    zipf, st.integers(0, 1200), keys=st.integers(1, 300), z=st.floats(0, 2.5), seed=st.integers(0, 99)
)
tasks = st.dictionaries(
    st.one_of(st.integers(0, 30), st.integers(0, 2**64 - 1)),
    st.tuples(st.integers(1, 50), st.booleans()),
    max_size=60,
)
Task = dict[int, tuple[int, bool]]


def columns(task: Task) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    sizes = np.array([size for size, _ in task.values()], np.int64)
    return np.array(list(task), np.uint64), sizes, np.array([split for _, split in task.values()], bool)


def naive(task: Task, buckets: int, first: int = 0) -> dict[int, int]:
    """Algorithm 3 by the listing."""
    keys = list(task)
    hashed = bucket_of(np.array(keys, np.uint64), buckets).tolist()
    placed = {key: to for key, to in zip(keys, hashed, strict=True) if task[key][1]}
    capacity = [Fraction(sum(size for size, _ in task.values()), buckets)] * buckets
    for key, to in placed.items():
        capacity[to] -= task[key][0]
    candidates = list(range(buckets))
    for key in sorted((k for k in keys if not task[k][1]), key=lambda k: (-task[k][0], k)):
        to = max(candidates, key=lambda b: (capacity[b], -((b - first) % buckets)))
        placed[key] = to
        capacity[to] -= task[key][0]
        candidates.remove(to)
        candidates = candidates or list(range(buckets))
    return placed


@few
@given(tasks, st.integers(1, 9), st.integers(0, 8))
def test_one_tasks_buckets_equal_a_naive_model_of_the_listing(task: Task, buckets: int, first: int) -> None:
    keys, sizes, split = columns(task)
    first %= buckets
    out = allocate(keys, sizes, split, buckets, first=first)
    assert dict(zip(keys.tolist(), out.tolist(), strict=True)) == naive(task, buckets, first)


@few
@given(tasks, st.integers(1, 9))
def test_a_tasks_own_clusters_differ_by_at_most_one_per_bucket(task: Task, buckets: int) -> None:
    keys, sizes, split = columns(task)
    own = np.bincount(allocate(keys, sizes, split, buckets)[~split], minlength=buckets)
    assert own.max() - own.min() <= 1


@few
@given(tasks, st.integers(1, 9), st.integers(0, 9))
def test_the_order_of_the_clusters_does_not_matter(task: Task, buckets: int, seed: int) -> None:
    keys, sizes, split = columns(task)
    shuffled = np.random.default_rng(seed).permutation(len(keys))
    out = allocate(keys, sizes, split, buckets)
    again = allocate(keys[shuffled], sizes[shuffled], split[shuffled], buckets)
    assert again.tolist() == out[shuffled].tolist()


@few
@given(
    st.sampled_from(["prompt", "hashing", "shuffle", "time-based"]),
    streams,
    st.integers(1, 8),
    st.integers(1, 9),
)
def test_each_key_is_in_one_bucket_over_all_map_tasks_and_split_keys_where_they_hash(
    name: str, stream: Stream, workers: int, buckets: int
) -> None:
    keys, times = stream
    data_blocks = create(name, workers=workers).assign_batch(keys, times)
    clusters = clusters_of(data_blocks, keys)
    out = allocate_all(clusters, buckets)
    homes = defaultdict(set)
    for key, bucket in zip(clusters.keys.tolist(), out.tolist(), strict=True):
        homes[key].add(bucket)
    assert set(homes) == set(keys.tolist())
    assert all(len(result) == 1 for result in homes.values())
    split = clusters.split
    assert out[split].tolist() == bucket_of(clusters.keys[split], buckets).tolist()
    for data_block in np.unique(clusters.data_block):
        own = np.bincount(out[(clusters.data_block == data_block) & ~split], minlength=buckets)
        assert own.max() - own.min() <= 1


@few
@given(streams, st.integers(1, 8))
def test_clusters_and_reference_tables_equal_brute_force(stream: Stream, workers: int) -> None:
    keys, times = stream
    data_blocks = create("shuffle", workers=workers).assign_batch(keys, times)
    clusters = clusters_of(data_blocks, keys)
    pairs = list(zip(data_blocks.tolist(), keys.tolist(), strict=True))
    listed = list(zip(clusters.data_block.tolist(), clusters.keys.tolist(), strict=True))
    assert listed == sorted(set(pairs))
    assert clusters.sizes.tolist() == [pairs.count(pair) for pair in listed]
    blocks_of = defaultdict(set)
    for data_block, key in pairs:
        blocks_of[key].add(data_block)
    assert clusters.split.tolist() == [len(blocks_of[key]) > 1 for _, key in listed]
    assert [listed[row] for row in clusters.of_tuple] == pairs


def test_reduce_buckets_of_a_prompt_batch_are_more_even_than_hashed_ones() -> None:
    keys, times = zipf(100_000, keys=10_000, z=0.8)
    clusters = clusters_of(create("prompt", workers=8).assign_batch(keys, times), keys)
    allocated = allocate_all(clusters, 8)[clusters.of_tuple]
    assert block_size_imbalance(allocated, 8) < block_size_imbalance(bucket_of(keys, 8), 8)


def test_tasks_that_know_nothing_of_each_other_do_not_all_begin_with_the_same_bucket() -> None:
    keys, times = zipf(100_000, keys=10_000, z=0.8)
    clusters = clusters_of(create("hashing", workers=8).assign_batch(keys, times), keys)
    largest = [
        np.flatnonzero(clusters.data_block == b)[clusters.sizes[clusters.data_block == b].argmax()]
        for b in range(8)
    ]
    assert sorted(allocate_all(clusters, 8)[largest].tolist()) == list(range(8))
