from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError
from evenflow.generation.laws import LAWS
from evenflow.generation.rank_laws import RandomExponent, zipf_cdf
from evenflow.sources.generators import generate
from evenflow.sources.source import Batch, SourceOptions
from tests.examples import examples

SMALL = "keys=500,tuples=20000,rate=5000,period=1s,disorder=300ms"


def whole(
    name: str, words: str = SMALL, *, batch: int = 50_000, options: SourceOptions | None = None
) -> Batch:
    batches = list(generate(name, words, options).batches(batch))
    return Batch(
        columns=pa.concat_tables([part.columns for part in batches]),
        keys=pa.concat_arrays([part.keys for part in batches]),
        times=np.concatenate([part.times for part in batches]),
    )


def assert_same(one: Batch, other: Batch) -> None:
    assert one.columns.equals(other.columns)
    assert one.keys.equals(other.keys)
    np.testing.assert_array_equal(one.times, other.times)


def key_counts(batch: Batch, keys: int) -> np.ndarray:
    ids = np.array([int(key[1:]) for key in batch.keys.to_pylist()])
    return np.bincount(ids, minlength=keys)


@pytest.mark.parametrize("name", LAWS)
@examples(10)
@given(size=st.integers(1_000, 21_000))
def test_the_cut_into_batches_changes_no_tuple(name: str, size: int) -> None:
    assert_same(whole(name, batch=size), whole(name))


@pytest.mark.parametrize("name", LAWS)
def test_the_same_seed_gives_the_same_stream_and_another_seed_another(name: str) -> None:
    assert_same(whole(name, SMALL + ",seed=4"), whole(name, SMALL + ",seed=4"))
    assert not whole(name, SMALL + ",seed=4").keys.equals(whole(name, SMALL + ",seed=5").keys)


def test_a_stream_is_the_same_on_every_machine_and_in_every_process() -> None:
    batch = whole("zipf", "z=1.4,keys=1000,tuples=5,seed=1")
    assert batch.keys.to_pylist() == [b"k2", b"k193", b"k0", b"k185", b"k0"]


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.4, 2.5])
def test_zipf_frequencies_are_those_of_its_exponent(exponent: float) -> None:
    tuples, keys = 400_000, 50
    counts = key_counts(whole("zipf", f"z={exponent},keys={keys},tuples={tuples},seed=9"), keys)
    expected = np.arange(1, keys + 1) ** -exponent
    expected *= tuples / expected.sum()
    chi_square = float((((counts - expected) ** 2) / expected).sum())
    assert chi_square < 49 + 5 * np.sqrt(2 * 49)


def test_the_cdf_ends_at_exactly_one_so_that_every_draw_has_a_rank() -> None:
    cdf = zipf_cdf(100_000, 1.4)
    assert cdf[-1] == 1.0
    assert np.searchsorted(cdf, np.nextafter(1.0, 0.0), side="right") < 100_000


def test_uniform_keys_are_equally_frequent() -> None:
    counts = key_counts(whole("uniform", "keys=50,tuples=400000"), 50)
    assert float(((counts - 8_000.0) ** 2 / 8_000.0).sum()) < 49 + 5 * np.sqrt(2 * 49)


def test_alternating_is_uniform_in_even_periods_and_skewed_in_odd_ones() -> None:
    batch = whole("alternating", "z=1.4,keys=100,tuples=40000,rate=10000,period=1s")
    shares = [
        key_counts(batch.slice(low, low + 10_000), 100).max() / 10_000 for low in range(0, 40_000, 10_000)
    ]
    assert shares[0] < 0.02 < 0.3 < shares[1]
    assert shares[2] < 0.02 < 0.3 < shares[3]


def test_random_exponents_lie_in_their_range_and_change_by_period() -> None:
    law = RandomExponent(10, 0.5, 1.5, seed=3)
    exponents = [law.exponent(period) for period in range(200)]
    assert 0.5 <= min(exponents) < 0.55
    assert 1.45 < max(exponents) <= 1.5
    assert len(set(exponents)) == 200


def test_drift_moves_the_hottest_key_by_its_step_each_period() -> None:
    batch = whole("drift", "z=1.5,keys=100,tuples=30000,rate=10000,period=1s,step=7")
    hottest = [
        int(key_counts(batch.slice(low, low + 10_000), 100).argmax()) for low in range(0, 30_000, 10_000)
    ]
    assert hottest == [0, 7, 14]


def numbers(name: str, words: str) -> np.ndarray:
    """The keys of a stream as numbers."""
    return np.array([int(key[1:]) for key in whole(name, words).keys.to_pylist()])


def run_lengths(keys: np.ndarray) -> np.ndarray:
    edges = np.flatnonzero(np.diff(keys)) + 1
    return np.diff(np.concatenate([[0], edges, [len(keys)]]))


def test_runs_are_as_long_as_asked_for_and_of_keys_from_all() -> None:
    keys = numbers("runs", "keys=100000,tuples=50000,length=20,seed=2")
    assert set(run_lengths(keys)) == {20}
    assert keys.min() < 1_000
    assert keys.max() >= 99_000


def test_runs_of_changing_length_are_even_over_the_range() -> None:
    lengths = run_lengths(numbers("runs", "keys=1000000,tuples=60000,length=10,longest=30,seed=2"))[:-1]
    assert (lengths.min(), lengths.max()) == (10, 30)
    assert 19 < lengths.mean() < 21


def test_in_every_tenth_period_another_cold_key_has_its_share() -> None:
    keys = numbers("flash", "keys=1000,tuples=40000,rate=1000,period=1s,z=1,share=0.3,every=10")
    for period, part in enumerate(np.split(keys, 40)):
        hot = int(np.bincount(part, minlength=1000)[500:].argmax()) + 500
        share = np.mean(part == hot)
        if period % 10 == 9:
            assert hot == 999 - period // 10
            assert 0.25 < share < 0.35
        else:
            assert share < 0.02


def test_a_session_lives_for_its_life_and_never_comes_back() -> None:
    keys = numbers("sessions", "keys=100000,tuples=60000,rate=1000,period=1s,alive=60,life=6")
    periods = np.arange(len(keys)) // 1000
    for key in np.unique(keys):
        mine = periods[keys == key]
        assert mine.max() - mine.min() < 6
        assert len(np.unique(mine)) == mine.max() - mine.min() + 1, "60 keys share 1,000 tuples of a period"
    alive = [len(np.unique(keys[periods == period])) for period in range(60)]
    assert set(alive) == {60}


def test_sources_with_keys_of_their_own_share_none() -> None:
    keys = numbers("disjoint", "keys=1000,tuples=30000,z=1.2,sources=3")
    own = [set(keys[source::3].tolist()) for source in range(3)]
    assert not own[0] & own[1]
    assert not own[1] & own[2]
    assert not own[2] & own[0]


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        ("runs", "length=9,longest=3", "length=9 must not exceed longest=3"),
        ("runs", "length=0", "must be at least 1"),
        ("flash", "share=1", "share=1 must be above 0 and below 1"),
        ("disjoint", "keys=3,sources=4", "sources=4 must not exceed the 3 keys"),
        ("costly", "keys=2", "2 keys are too few"),
        ("costly", "share=0.7,rare=0.3", "share=0.7 and rare=0.3 must be above 0, and together below 1"),
        ("costly", "dearer=1000001", "dearer=1.*must be at most"),
    ],
)
def test_impossible_settings_of_a_law_are_refused(name: str, words: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        generate(name, words)


def test_event_times_advance_at_the_rate_from_the_start() -> None:
    batch = whole("uniform", "tuples=5,rate=400,start=1970-01-01T00:00:10Z")
    assert batch.times.tolist() == [10_000, 10_002, 10_005, 10_007, 10_010]
    assert batch.columns.column("time").to_pylist() == batch.times.tolist()


@examples(20)
@given(disorder=st.integers(0, 2_000), seed=st.integers(0, 100))
def test_a_tuple_is_never_further_behind_than_the_disorder(disorder: int, seed: int) -> None:
    times = whole("uniform", f"tuples=5000,rate=1000,disorder={disorder}ms,seed={seed}").times
    behind = np.maximum.accumulate(times) - times
    assert behind.max() <= disorder
    assert disorder < 20 or behind.max() > 0


def test_permuted_labels_are_the_same_keys_in_another_order() -> None:
    plain = key_counts(whole("zipf", "keys=100,tuples=50000"), 100)
    permuted = key_counts(whole("zipf", "keys=100,tuples=50000,permute=yes"), 100)
    assert not np.array_equal(plain, permuted)
    np.testing.assert_array_equal(np.sort(plain), np.sort(permuted))


def test_columns_are_called_and_chosen_as_the_query_wants() -> None:
    options = SourceOptions(
        key="word", time="at", values=("amount",), time_unit="iso", columns=("at", "word")
    )
    batch = whole("zipf", "keys=10,tuples=3,rate=1", options=options)
    assert batch.columns.column_names == ["at", "word"]
    assert batch.columns.column("at").to_pylist()[1] == "2026-01-01T00:00:01.000Z"


def test_whole_seconds_are_the_event_time_when_the_unit_is_seconds() -> None:
    batch = whole("zipf", "keys=10,tuples=30,rate=10", options=SourceOptions(time_unit="s"))
    np.testing.assert_array_equal(np.array(batch.columns.column("time")) * 1000, batch.times)


def test_values_are_whole_numbers_below_the_bound() -> None:
    values = np.array(whole("zipf", "keys=10,tuples=50000,values=7").columns.column("value"))
    assert values.dtype == np.int64
    assert set(values.tolist()) == set(range(7))


def test_an_endless_stream_goes_on() -> None:
    source = generate("zipf", "keys=10,tuples=endless")
    batches = source.batches(10)
    assert source.rows is None
    assert [len(next(batches)) for _ in range(5)] == [10] * 5


@pytest.mark.parametrize(
    ("name", "words", "complaint"),
    [
        ("zipff", "", "known: zipf"),
        ("zipf", "zz=1", "no option zz"),
        ("zipf", "keys=0", "at least 1"),
        ("zipf", "tuples=many", "whole number"),
        ("zipf", "start=yesterday", "ISO 8601"),
        ("zipf", "keys=20000000", "exceeds"),
        ("uniform", "z=1", "no option z"),
        ("random-exponent", "low=2,high=1", "must not exceed"),
    ],
)
def test_a_wrong_generator_is_refused_with_what_to_do(name: str, words: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        generate(name, words)


def test_a_flash_crowd_gives_one_cold_key_its_share_in_its_periods_only() -> None:
    words = "z=1.0,keys=100,tuples=30000,rate=10000,period=1s,share=0.9,first=1,last=1"
    batch = whole("flash-crowd", words)
    keys = np.array([key.decode() for key in batch.keys.to_pylist()])
    shares = [float((part == "k99").mean()) for part in np.split(keys, 3)]
    assert shares[0] < 0.01
    assert 0.89 < shares[1] < 0.91
    assert shares[2] < 0.01


@pytest.mark.parametrize("words", ["share=1", "share=0", "first=3,last=2"])
def test_a_flash_crowd_that_cannot_be_is_refused(words: str) -> None:
    with pytest.raises(ConfigError, match=r"flash-crowd|share"):
        generate("flash-crowd", words)
