"""Prompt's Algorithm 2: the plan a naive model makes, its bounds, and what the data blocks then hold."""

from collections import Counter, defaultdict
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.metrics import (
    block_cardinality_imbalance,
    block_size_imbalance,
    fragmentation,
    replication_factor,
    worker_loads,
)
from evenflow.partitioners import create
from evenflow.partitioners.prompt.data_blocks import DataBlockPlan, plan_data_blocks
from tests.examples import examples
from tests.unit.partitioners.streams import Stream, all_distinct, one_key, zipf

few = examples(40)
streams = st.builds(
    zipf, st.integers(1, 1500), keys=st.integers(1, 400), z=st.floats(0, 2.5), seed=st.integers(0, 99)
)
counts_lists = st.lists(st.one_of(st.integers(1, 6), st.integers(1, 400)), min_size=1, max_size=80).map(
    lambda counts: np.array(sorted(counts, reverse=True), np.int64)
)
Fragments = list[list[tuple[int, int]]]
Rest = Literal["tightest", "roomiest"]
rests = st.sampled_from(["tightest", "roomiest"])


def fragments_of(plan: DataBlockPlan, counts: np.ndarray) -> Fragments:
    """(data block, tuples) of each fragment of each key."""
    whole = []
    for data_block, count in zip(plan.data_block.tolist(), counts.tolist(), strict=True):
        if data_block >= 0:
            whole.append([(data_block, count)])
        else:
            rows = slice(plan.fragment_from[-1 - data_block], plan.fragment_from[-data_block])
            pairs = zip(
                plan.fragment_data_block[rows].tolist(), plan.fragment_size[rows].tolist(), strict=True
            )
            whole.append(list(pairs))
    return whole


def cut_off(tuples: int, keys: int, data_blocks: int) -> int:
    return max(1, min(tuples // keys, tuples // data_blocks))


def first_steps(counts: list[int], data_blocks: int) -> tuple[dict[int, int], dict[int, int], list[int]]:
    """Steps 1 and 2 by the listing: data block of each large and of each other key, and the loads."""
    cut = cut_off(sum(counts), len(counts), data_blocks)
    loads = [0] * data_blocks
    large: dict[int, int] = {}
    other: dict[int, int] = {}
    for key, count in enumerate(counts):
        if count > cut:
            large[key] = len(large) % data_blocks
            loads[large[key]] += cut
    todo = [key for key in range(len(counts)) if key not in large]
    passing = list(range(data_blocks))
    while todo:
        for data_block in passing:
            if todo:
                key = todo.pop(0)
                other[key] = data_block
                loads[data_block] += counts[key]
        passing.reverse()
    return large, other, loads


def naive(counts: list[int], data_blocks: int, chosen: str = "tightest") -> Fragments:
    """Algorithm 2 by the listing, with the decisions of the module."""
    cut, capacity = cut_off(sum(counts), len(counts), data_blocks), -(-sum(counts) // data_blocks)
    large, other, loads = first_steps(counts, data_blocks)
    placed: dict[int, list[list[int]]] = {
        key: [[data_block, counts[key]]] for key, data_block in other.items()
    }
    for key, home in large.items():
        rest = counts[key] - cut
        room = max(0, min(rest, capacity - loads[home]))
        placed[key] = [[home, cut + room]]
        loads[home] += room
        rest -= room
        while rest:
            free = [capacity - load for load in loads]
            holders = [b for b in range(data_blocks) if free[b] >= rest]
            tightest = chosen == "tightest" and holders
            into = min(holders, key=lambda b: (free[b], b)) if tightest else free.index(max(free))
            taken = min(rest, free[into])
            placed[key].append([into, taken])
            loads[into] += taken
            rest -= taken
    return [[(data_block, size) for data_block, size in placed[key]] for key in range(len(counts))]


@few
@given(counts_lists, st.integers(1, 12), rests)
def test_the_plan_equals_a_naive_model_of_the_listing(
    counts: np.ndarray, data_blocks: int, rest: Rest
) -> None:
    plan = plan_data_blocks(counts, data_blocks, rest=rest)
    assert fragments_of(plan, counts) == naive(counts.tolist(), data_blocks, rest)


@few
@given(counts_lists, st.integers(1, 12), st.randoms())
def test_a_list_that_is_only_nearly_sorted_finds_the_same_large_keys(
    counts: np.ndarray, data_blocks: int, random: object
) -> None:
    shuffled = counts.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    plan = plan_data_blocks(shuffled, data_blocks)
    assert fragments_of(plan, shuffled) == naive(shuffled.tolist(), data_blocks)
    assert plan.large == plan_data_blocks(counts, data_blocks).large == (counts > plan.cut).sum()


@few
@given(counts_lists, st.integers(1, 12), rests)
def test_a_plan_places_every_tuple_and_never_the_same_key_twice_in_a_block(
    counts: np.ndarray, data_blocks: int, rest: Rest
) -> None:
    plan = plan_data_blocks(counts, data_blocks, rest=rest)
    fragments = fragments_of(plan, counts)
    for count, parts in zip(counts.tolist(), fragments, strict=True):
        assert sum(size for _, size in parts) == count
        assert all(size >= 1 and 0 <= data_block < data_blocks for data_block, size in parts)
        assert len({data_block for data_block, _ in parts}) == len(parts)
    assert plan.split == sum(len(parts) > 1 for parts in fragments)
    assert len(plan.fragment_data_block) == sum(len(parts) for parts in fragments if len(parts) > 1)


@few
@given(counts_lists, st.integers(1, 12), rests)
def test_no_block_exceeds_its_capacity_unless_the_first_two_steps_did(
    counts: np.ndarray, data_blocks: int, rest: Rest
) -> None:
    loads = Counter[int]()
    for parts in fragments_of(plan_data_blocks(counts, data_blocks, rest=rest), counts):
        for data_block, size in parts:
            loads[data_block] += size
    _, _, before = first_steps(counts.tolist(), data_blocks)
    capacity = -(-int(counts.sum()) // data_blocks)
    for data_block in range(data_blocks):
        assert loads[data_block] <= max(capacity, before[data_block])


@few
@given(counts_lists, st.integers(1, 12))
def test_the_first_two_steps_give_each_block_equally_many_keys_within_one(
    counts: np.ndarray, data_blocks: int
) -> None:
    plan = plan_data_blocks(counts, data_blocks)
    fragments = fragments_of(plan, counts)
    for large in (True, False):
        homes = [parts[0][0] for c, parts in zip(counts, fragments, strict=True) if (c > plan.cut) == large]
        spread = np.bincount(homes, minlength=data_blocks)
        assert spread.max() - spread.min() <= 1


@few
@given(counts_lists, st.integers(1, 12))
def test_keys_up_to_the_cut_off_are_not_split(counts: np.ndarray, data_blocks: int) -> None:
    plan = plan_data_blocks(counts, data_blocks)
    assert plan.cut == cut_off(int(counts.sum()), len(counts), data_blocks)
    assert (plan.data_block[counts <= plan.cut] >= 0).all()
    if len(counts) >= data_blocks:
        assert (plan.data_block[counts <= counts.mean()] >= 0).all()


@few
@given(streams, st.integers(1, 20), st.integers(0, 9))
def test_the_plan_does_not_depend_on_the_order_of_arrival(stream: Stream, workers: int, seed: int) -> None:
    keys, times = stream
    shuffled = np.random.default_rng(seed).permutation(keys)
    cells = []
    for arrived in (keys, shuffled):
        out = create("prompt", workers=workers).assign_batch(arrived, times)
        cells.append(Counter(zip(arrived.tolist(), out.tolist(), strict=True)))
    assert cells[0] == cells[1]


@few
@given(streams, st.integers(1, 20))
def test_a_keys_tuples_go_to_its_fragments_in_order_of_arrival(stream: Stream, workers: int) -> None:
    keys, times = stream
    out = create("prompt", workers=workers).assign_batch(keys, times)
    distinct, counts = np.unique(keys, return_counts=True)
    order = np.lexsort((distinct, -counts))
    fragments = naive(counts[order].tolist(), workers)
    routes = defaultdict(list)
    for key, data_block in zip(keys.tolist(), out.tolist(), strict=True):
        routes[key].append(data_block)
    for key, parts in zip(distinct[order].tolist(), fragments, strict=True):
        assert routes[key] == [data_block for data_block, size in parts for _ in range(size)]


@given(streams, st.integers(1, 20), st.sampled_from(["exact", "quasi"]), rests)
@few
def test_blocks_are_bounded_and_rare_keys_whole_with_any_options(
    stream: Stream, workers: int, order: str, rest: Rest
) -> None:
    keys, times = stream
    p = create("prompt", workers=workers, order=order, rest=rest)
    out = p.assign_batch(keys, times)
    distinct, holders = fragmentation(out, keys)
    _, counts = np.unique(keys, return_counts=True)
    cut = cut_off(len(keys), len(distinct), workers)
    large = int((counts > cut).sum())
    assert holders[counts <= cut].max(initial=1) == 1
    assert replication_factor(out, keys) >= 1
    assert p.observe().head_keys == large
    whole = -(-(len(distinct) - large) // workers)
    most = max(-(-len(keys) // workers), cut * (-(-large // workers) + whole))
    assert worker_loads(out, workers).max() <= most


@given(streams)
@few
def test_one_block_splits_no_key(stream: Stream) -> None:
    keys, times = stream
    assert replication_factor(create("prompt", workers=1).assign_batch(keys, times), keys) == 1


def test_one_key_fills_all_blocks_evenly() -> None:
    out = create("prompt", workers=7).assign_batch(*one_key(1000))
    assert sorted(worker_loads(out, 7).tolist()) == [142, 143, 143, 143, 143, 143, 143]


def test_distinct_keys_are_dealt_out_evenly_and_whole() -> None:
    keys, times = all_distinct(1003)
    out = create("prompt", workers=10).assign_batch(keys, times)
    assert block_size_imbalance(out, 10) < 1
    assert block_cardinality_imbalance(out, keys, 10) < 1
    assert replication_factor(out, keys) == 1


def test_fewer_keys_than_blocks_still_fill_every_block() -> None:
    keys, times = zipf(1000, keys=3, z=1.0)
    loads = worker_loads(create("prompt", workers=16).assign_batch(keys, times), 16)
    assert loads.max() == 63
    assert loads.min() >= 55


def test_blocks_of_a_skewed_batch_are_level_where_hashing_is_not() -> None:
    keys, times = zipf(100_000, keys=10_000, z=1.2)
    prompt = create("prompt", workers=16).assign_batch(keys, times)
    hashing = create("hashing", workers=16).assign_batch(keys, times)
    assert block_size_imbalance(prompt, 16) < 1
    assert block_size_imbalance(hashing, 16) > 10_000
    assert replication_factor(prompt, keys) < 1.2


def test_the_roomiest_block_for_the_rest_makes_fewer_splits_and_evener_cardinalities() -> None:
    keys, times = zipf(100_000, keys=10_000, z=1.0)
    tight, roomy = (
        create("prompt", workers=16, rest=rest).assign_batch(keys, times) for rest in ("tightest", "roomiest")
    )
    assert block_size_imbalance(roomy, 16) < 1
    assert replication_factor(roomy, keys) < replication_factor(tight, keys)
    assert block_cardinality_imbalance(roomy, keys, 16) < block_cardinality_imbalance(tight, keys, 16) / 4


def test_a_rescale_keeps_what_was_learnt_of_batches() -> None:
    p = create("prompt", workers=4, order="quasi")
    p.assign_batch(*zipf(2000))
    q = create("prompt", workers=9, order="quasi")
    q.assign_batch(*zipf(2000))
    p.rescale(9)
    nxt = zipf(2000, seed=2)
    assert p.assign_batch(*nxt).tolist() == q.assign_batch(*nxt).tolist()


@pytest.mark.parametrize(("counts", "data_blocks"), [([], 3), ([2, 0], 3), ([3, 1], 0)])
def test_a_list_that_cannot_be_planned_is_refused(counts: list[int], data_blocks: int) -> None:
    with pytest.raises(ValueError, match="a plan needs a data block, and keys"):
        plan_data_blocks(np.array(counts, np.int64), data_blocks)
