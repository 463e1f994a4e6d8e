"""The rhythm of blocks and commits where the settings do not say: laws over every rate and number of
workers.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.settings import PartitionerSettings, load_settings
from evenflow.settings.sections.rhythm import (
    CHEAP_FRAMES,
    FRAME_TUPLES,
    LEAST_BLOCK,
    LEAST_LINGER,
    MOST_BLOCK,
    MOST_LINGER,
    Rhythm,
    most_frames,
    rhythm,
)

workers = st.integers(1, 1_024)
rates = st.floats(0, 2e6)
delays = st.integers(20, 60_000)


def of(**how: int) -> PartitionerSettings:
    return PartitionerSettings(**{"transaction_timeout": 120_000, **how})


@given(workers, rates, rates, delays)
def test_frames_are_full_or_few_or_as_old_as_they_may_be(
    w: int, rate: float, earlier: float, delay: int
) -> None:
    wishes = of(max_delay=delay)
    before = rhythm(wishes, routed=w, rate=earlier)
    now = rhythm(wishes, routed=w, rate=rate, before=before)
    assert now.linger + now.commit_interval <= delay
    tuples = min(now.block_tuples, rate * now.linger / 1_000) / w
    full = tuples >= FRAME_TUPLES - 1e-6
    few = w * 1_000 / now.linger <= CHEAP_FRAMES + 1e-6
    oldest = now.linger == min(MOST_LINGER, delay - now.commit_interval)
    assert full or few or oldest
    if now.linger > LEAST_LINGER and not oldest:
        assert tuples <= 3 * FRAME_TUPLES or w * 1_000 / now.linger >= CHEAP_FRAMES / 3, (
            "no longer than needed"
        )


@given(workers, rates, st.floats(0.8, 1.25), delays)
def test_a_rate_that_hardly_moves_changes_nothing(w: int, rate: float, factor: float, delay: int) -> None:
    wishes = of(max_delay=delay)
    settled = rhythm(wishes, routed=w, rate=rate)
    assert rhythm(wishes, routed=w, rate=rate, before=settled) == settled
    if rate > 0 and factor >= 0.81:
        assert rhythm(wishes, routed=w, rate=rate * factor, before=settled) == settled


@given(workers, rates, st.integers(1, 1_000_000), st.integers(0, 30_000), st.integers(0, 30_000))
def test_what_is_set_counts_as_it_is(w: int, rate: float, block: int, linger: int, commit: int) -> None:
    wishes = of(block_tuples=block, linger=linger, commit_interval=commit)
    assert rhythm(wishes, routed=w, rate=rate) == Rhythm(block, linger, commit)


@given(workers, rates, st.integers(1_600, 10_000), delays)
def test_no_choice_makes_a_transaction_time_out(w: int, rate: float, timeout: int, delay: int) -> None:
    wishes = PartitionerSettings(transaction_timeout=timeout, max_delay=delay)
    now = rhythm(wishes, routed=w, rate=rate)
    assert now.linger + now.commit_interval + 1_000 <= timeout
    assert LEAST_BLOCK <= now.block_tuples <= MOST_BLOCK


@given(workers, st.integers(0, 30_000), delays)
def test_a_linger_that_is_set_leaves_a_transaction_its_length(w: int, linger: int, delay: int) -> None:
    now = rhythm(of(linger=linger, max_delay=delay), routed=w)
    assert now.commit_interval >= min(500, delay)


@given(workers, st.floats(0, 1e6), st.integers(0, 30_000), delays)
def test_a_micro_batch_may_hold_all_that_an_instance_writes_meanwhile(
    w: int, rate: float, commit: int, delay: int
) -> None:
    wishes = of(commit_interval=commit, max_delay=delay)
    now = rhythm(wishes, routed=w, rate=rate)
    blocks = max(1_000 / now.linger, rate / now.block_tuples)
    written = min(rate, w * blocks) + 1_000 * w / max(1, commit)
    assert most_frames(wishes, w) >= min(written, 1_000 * w / LEAST_LINGER) * 0.99 - 1


def test_a_small_pipeline_has_the_rhythm_that_it_always_had() -> None:
    for rate in (0, 100, 1e5, 1e6):
        assert rhythm(of(), routed=8, rate=rate) == (50_000, 50, 500)


def test_a_thousand_workers_get_frames_of_200_tuples_where_the_rate_allows() -> None:
    now = rhythm(of(), routed=1_000, rate=250_000)
    assert now == (200_000, 1_000, 1_000)
    assert rhythm(of(), routed=1_000, rate=1_000, batches=True).linger == LEAST_LINGER
    assert rhythm(of(), routed=64, rate=1e6).linger == LEAST_LINGER, "full frames come by themselves"
    assert rhythm(of(max_delay=60_000), routed=1_000).commit_interval == pytest.approx(2_235, abs=5)


def test_a_micro_batch_takes_no_more_frames_than_full_ones_can_be() -> None:
    alone = {"workers": 1_000, "routed_partitions": 1_000, "instances": 50}
    made = load_settings(partitioner=alone, spark={"batch_interval": 5_000})
    assert made.frames_per_batch == 2 * 5 * (5_000 + 1_000) * 50
    shared = load_settings(partitioner={"workers": 1_000, "instances": 50}, spark={"batch_interval": 5_000})
    assert shared.frames_per_batch == 2 * 5 * (63 * 20 + 63 * 2) * 50
    small = load_settings(partitioner={"workers": 64, "instances": 4}, spark={"batch_interval": 5_000})
    assert small.frames_per_batch == 2 * 5 * (64 * 20 + 64 * 2) * 4


def test_tasks_of_the_combiner_follow_the_workers() -> None:
    def tasks(workers: int, **spark: object) -> int:
        made = load_settings(partitioner={"workers": workers}, spark={"master": "k8s://host", **spark})
        return made.combine_tasks(cores=2)

    assert tasks(64) == 64
    assert tasks(128) == 64
    assert tasks(1_000) == 63, "16 workers share a partition, which is combined by one task"
    assert tasks(1_000, partitions_per_slot=1) == 63
    assert tasks(100, partitions_per_slot=4) == 64
    assert tasks(1_000, combine_tasks=7) == 7
    here = load_settings(partitioner={"workers": 4, "routed_partitions": 8})
    assert here.combine_tasks(cores=2) == 4
    assert load_settings().combine_tasks(cores=2) == 2
