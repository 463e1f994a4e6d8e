"""What a partitioner says of a key is true: the next tuple goes where it says, and saying it changes
nothing.
"""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.keys import hash_keys
from evenflow.partitioners import create, describe, names, restore
from evenflow.simulation import generated
from tests.examples import examples
from tests.unit.partitioners.cases import each, each_micro_batch, each_online, run
from tests.unit.partitioners.streams import SPREAD, STREAMS, zipf

LATER = (0, 1, 99, 150, 450, 999, 3_000, 70_000, 10_000_000)
"""How long after the newest tuple the next one comes, ms. Some slides and windows end by then, or all of
them.
"""


def _next(p, key: int, time: int) -> int:
    return int(p.assign(np.array([key], np.uint64), np.array([time], np.int64))[0])


@pytest.mark.family
@each_online
@given(
    stream=st.sampled_from(sorted(STREAMS)),
    workers=st.sampled_from([1, 2, 7, 40]),
    tuples=st.integers(0, 1_500),
    rank=st.integers(0, 60),
    later=st.lists(st.sampled_from(LATER), min_size=1, max_size=6),
    source=st.integers(0, 2),
)
@examples(40)
def test_the_next_tuple_of_a_key_goes_to_a_worker_that_is_named(
    name, options, stream, workers, tuples, rank, later, source
) -> None:
    keys, times = (column[:tuples] for column in STREAMS[stream])
    p = create(name, workers=workers, source=source, sources=3 if source else 1, **options)
    p.assign(keys, times)
    now = int(times.max()) if len(times) else 0
    for wait in later:
        # A key of the stream, or one that never came.
        key = int(keys[-1 - rank]) if rank < len(keys) else rank
        before = p.snapshot()
        told = p.explain(key, now + wait)
        assert p.snapshot() == before, "it changes nothing"
        assert restore(before).explain(key, now + wait) == told, "it follows from the state alone"
        if told.home is not None:
            assert 0 <= told.home < workers
        assert all(0 <= holder.worker < workers for holder in told.holders)
        assert told.values is None or len(told.values) == workers
        assert told.share is None or 0 <= told.share <= 1
        now += wait
        got = _next(p, key, now)
        assert told.workers is None or got in told.workers, told
        assert told.workers is None or len(set(told.workers)) == len(told.workers)


@pytest.mark.parametrize("sources", [1, 3])
def test_a_key_in_a_run_that_has_moved_goes_to_a_worker_that_is_named(sources: int) -> None:
    stream = generated("runs:length=40", tuples=4_000, keys=2_000, seed=2)
    p, at_home = create("evenflow", workers=5, sources=sources, window_ms=1_000, slide_ms=50), True
    for first in range(0, len(stream), 10):
        p.assign(stream.keys[first : first + 10], stream.times[first : first + 10])
        key, now = int(stream.keys[first + 9]), int(stream.times[first + 9])
        told = p.explain(key, now)
        got = _next(restore(p.snapshot()), key, now)
        assert told.workers is not None
        assert got in told.workers, told
        at_home = at_home and got == told.home
    assert not at_home, "some run was not at its home"


@each_online
@given(rank=st.integers(0, 400), tuples=st.integers(1, 3_000))
@examples(20)
def test_without_a_time_no_slide_ends_before_the_next_tuple(name, options, rank, tuples) -> None:
    keys, times = (column[:tuples] for column in zipf(3_000))
    p = create(name, workers=12, **options)
    p.assign(keys, times)
    told = p.explain(rank * int(SPREAD) % 2**64)
    got = _next(p, rank * int(SPREAD) % 2**64, int(times[-1]))
    assert told.workers is None or got in told.workers, told


@each
def test_it_is_said_which_rule_decides(name, options) -> None:
    p = create(name, workers=5, **options)
    run(p, zipf(2_000))
    for key in (0, int(SPREAD), 77):
        told = p.explain(key)
        assert told.rule
        assert told.as_json()["rule"] == told.rule


@each_micro_batch
def test_a_micro_batch_scheme_says_that_it_decides_batch_by_batch(name, options) -> None:
    p = create(name, workers=5, **options)
    run(p, zipf(2_000))
    told = p.explain(0)
    assert "batch by batch" in told.rule
    assert told.workers is None


def _hot(name: str, **options):
    """A partitioner of four workers after 4,000 tuples, of which key `hot` has six tenths."""
    p = create(name, workers=4, **options)
    hot, many = int(hash_keys(["hot"])[0]), np.arange(4_000, dtype=np.uint64) * SPREAD
    keys = np.where(np.arange(4_000) % 10 < 6, np.uint64(hot), many)
    p.assign(keys, np.arange(4_000, dtype=np.int64))
    return p, hot, int(many[3_999])


@pytest.mark.parametrize(
    ("name", "rule", "rare"),
    [
        ("hashing", "its hash names the worker", "its hash names the worker"),
        ("pkg", "the less loaded of its 2 candidates", "the less loaded of its 2 candidates"),
        ("d-choices", "frequent: the least loaded of", "not frequent"),
        ("w-choices", "frequent: the least loaded of all", "not frequent"),
        ("rr-head", "frequent: all workers take turns", "not frequent"),
        ("am", "in the window, so it stays", "in the window, so it stays"),
        ("dagreedy", "hot: the best score", "not hot"),
        ("dalton", "hot: worker", "not hot"),
        ("evenflow", "split: worker", "whole: it stays at its home"),
    ],
)
def test_a_hot_key_and_a_rare_key_are_decided_by_the_rules_of_the_algorithm(name, rule, rare) -> None:
    options = {"window_ms": 60_000, "slide_ms": 1_000} if name in ("dalton", "dagreedy") else {}
    p, hot, cold = _hot(name, **options)
    assert p.explain(hot).rule.startswith(rule)
    assert p.explain(cold).rule.startswith(rare)


@pytest.mark.parametrize("name", ["evenflow", "dalton", "dagreedy", "w-choices"])
def test_the_share_of_a_hot_key_is_about_its_share_of_the_stream(name) -> None:
    p, hot, _ = _hot(name)
    assert p.explain(hot).share == pytest.approx(0.6, abs=0.1)


def test_the_holders_of_a_split_key_are_all_workers_that_got_it() -> None:
    p, hot, cold = _hot("evenflow")
    got = {_next(p, hot, 4_000) for _ in range(2_000)}
    assert len(got) > 1
    told = p.explain(hot)
    assert got <= {holder.worker for holder in told.holders}
    assert told.holders[0].worker == told.home
    assert all(holder.load is not None for holder in told.holders)
    assert p.explain(cold).workers == (p.explain(cold).home,)


def test_a_learned_policy_shows_what_it_expects_of_each_worker() -> None:
    p, hot, cold = _hot("dalton", window_ms=60_000, slide_ms=1_000)
    told = p.explain(hot)
    assert told.values is not None
    assert len(told.values) == 4
    assert p.explain(cold).values is None


def test_a_holder_is_shown_with_the_slide_in_which_it_last_got_the_key() -> None:
    p = create("am", workers=4, window_ms=1_000, slide_ms=100)
    _next(p, 5, 1_234)
    (holder,) = p.explain(5).holders
    assert holder.last == 1_200
    assert p.explain(5, 2_199).holders == (holder,)
    assert p.explain(5, 2_200).holders != (holder,), "it has left the window"


@pytest.mark.parametrize("name", ["dagreedy", "dalton"])
def test_a_key_that_is_hot_now_is_not_hot_any_more_after_a_silence(name: str) -> None:
    p, hot, _ = _hot(name, window_ms=60_000, slide_ms=1_000)
    assert p.explain(hot, 4_500).rule.startswith("hot")
    assert p.explain(hot, 40_000).rule.startswith("not hot")


def test_every_name_has_an_explanation_of_its_own() -> None:
    rules = {name: create(name, workers=3).explain(1).rule for name in names()}
    assert len(set(rules.values())) > len(names()) / 2
    assert all(describe(name).micro_batch == ("batch by batch" in rules[name]) for name in names())


@pytest.mark.parametrize(
    ("sources", "below", "words"), [(1, 0, "has reached"), (3, 1, "is within a tuple of")]
)
def test_evenflow_uses_a_holder_until_it_is_as_full_as_it_says(sources, below, words) -> None:
    p, hot, _ = _hot("evenflow", source=0, sources=sources)
    moved_on = 0
    for time in range(4_000, 4_400):
        told = p.explain(hot)
        used = int(
            re.fullmatch(rf"split: worker (\d+) is used until it {words} the mean load, .*", told.rule)[1]
        )
        load = next(holder.load for holder in told.holders if holder.worker == used)
        mean = (p.observe().loads.sum() + 1) / 4
        got = _next(p, hot, time)
        if load <= mean - below:
            assert got == used
        moved_on += got != used
    assert moved_on >= 100, "full holders are left"
