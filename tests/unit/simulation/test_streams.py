"""Generated streams are those of `evenflow replay`; files keep their order; bad parameters are refused."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from evenflow.errors import ConfigError
from evenflow.generation.laws import LAWS
from evenflow.generation.rank_laws import WanderingExponent, numbered_times
from evenflow.keys import hash_keys
from evenflow.simulation import STREAMS, KeyedStream, from_columns, generated
from evenflow.simulation import streams as module
from evenflow.simulation.streams import check_order, opened
from evenflow.sources.generators import generate
from evenflow.windows import without_leaps


@pytest.mark.parametrize(
    "kind",
    [
        "zipf",
        "uniform",
        "alternating",
        "drift",
        "drift:step=3",
        "random-exponent",
        "runs:length=7,longest=90",
        "flash",
        "sessions",
        "disjoint",
        "costly:share=0.4",
    ],
)
def test_a_generated_stream_is_the_one_that_replay_sends(kind: str) -> None:
    made = generated(kind, tuples=30_000, keys=500, zipf=1.3, seed=4, rate=2_000, period_ms=2_500)
    kind, _, settings = kind.partition(":")
    z = "z=1.3," if "z" in LAWS[kind].settings else ""
    z += f"{settings}," if settings else ""
    words = f"{z}keys=500,tuples=30000,seed=4,rate=2000,period=2500ms,start=0"
    sent = list(generate(kind, words).batches())
    assert np.array_equal(made.keys, np.concatenate([hash_keys(part.keys) for part in sent]))
    assert np.array_equal(made.times, np.concatenate([part.times for part in sent]))


@pytest.mark.parametrize("kind", STREAMS)
def test_pieces_and_files_change_no_tuple(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = generated(kind, tuples=5_001, keys=90, period_ms=700)
    monkeypatch.setattr(module, "_AT_ONCE", 64)
    cut = generated(kind, tuples=5_001, keys=90, period_ms=700, folder=tmp_path)
    mapped = opened(tmp_path, key_count=cut.key_count, next_time=cut.next_time)
    for other in (cut, mapped):
        assert_same(whole, other)


def assert_same(one: KeyedStream, other: KeyedStream) -> None:
    assert (one.costs is None) == (other.costs is None)
    for name in ("keys", "codes", "times", *(() if one.costs is None else ("costs",))):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    assert (one.key_count, one.next_time) == (other.key_count, other.next_time)


def test_shift_is_uniform_in_its_first_half_and_zipf_in_its_second() -> None:
    codes = generated("shift", tuples=40_001, keys=100, zipf=1.5).codes
    shares = [np.bincount(half, minlength=100)[0] / len(half) for half in (codes[:20_001], codes[20_001:])]
    assert shares[0] < 0.02
    assert shares[1] > 0.3


def test_without_rate_the_index_is_the_time_in_ms() -> None:
    stream = generated("uniform", tuples=10, keys=3)
    assert stream.times.tolist() == list(range(10))
    assert stream.next_time == 10
    assert generated("uniform", tuples=10, keys=3, rate=100).next_time == 100


def test_columns_of_a_file_keep_their_order_and_get_numbers() -> None:
    keys, times = pa.array([b"b", b"a", b"b"], pa.large_binary()), np.array([5, 3, 9])
    stream = from_columns(keys, times)
    assert stream.keys.tolist() == hash_keys(keys).tolist()
    assert (stream.codes.tolist(), stream.key_count) == ([0, 1, 0], 2)
    assert (stream.times.tolist(), stream.next_time) == ([5, 3, 9], None)
    numbered = from_columns(keys, None, rate=10)
    assert (numbered.times.tolist(), numbered.next_time) == ([0, 100, 200], 300)


def test_a_stored_stream_is_the_same_and_is_stored_once(tmp_path: Path) -> None:
    stream = from_columns(pa.array(["x", "y", "x"]), None)
    stored = stream.stored(tmp_path)
    assert stored.stored(tmp_path / "nowhere") is stored
    assert_same(stream, opened(tmp_path, key_count=2, next_time=3))


def test_times_may_run_back_as_far_as_allowed_and_no_further() -> None:
    times = np.array([0, 5_000, 4_000, 9_000])
    check_order(times, max_disorder_ms=1_000, where="f.csv")
    with pytest.raises(ConfigError, match=r"f.csv: tuple 3 lies 1,000 ms behind.*\n.*sort the file"):
        check_order(times, max_disorder_ms=999, where="f.csv")


def test_a_time_that_runs_back_over_all_of_int64_is_behind() -> None:
    ends = np.array([2**63 - 1, -(2**63)])
    with pytest.raises(ConfigError, match="tuple 2 lies 18,446,744,073,709,551,615 ms behind"):
        check_order(ends, max_disorder_ms=1_000, where="f.csv")
    check_order(ends[::-1], max_disorder_ms=0, where="f.csv")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kind": "pareto"}, "no stream 'pareto'.*\n.*known: zipf"),
        ({"kind": "runs:size=3"}, "stream runs has no option size.*\n.*its options are length, longest"),
        ({"kind": "zipf:z=2"}, "stream zipf has no option z.*\n.*it has no options"),
        ({"kind": "giant:share=0.5"}, "stream giant has no option share.*\n.*first, last"),
        ({"kind": "runs:length=1e12"}, "length=1e\\+12 must be at most 1e\\+09"),
        (
            {"kind": "replaced:generations=1000000"},
            "would have 1,000,\\d+,\\d+ keys, more than 100,000,000|more than 100,000,000",
        ),
        ({"kind": "runs:length=none"}, "length=none must be a whole number"),
        ({"keys": 0}, "keys must be between 1 and"),
        ({"tuples": 0}, "tuples must be at least 1"),
        ({"zipf": -0.1}, "zipf must be an exponent"),
        ({"zipf": float("nan")}, "zipf must be an exponent"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"rate": 0.0}, "rate must be more than 0"),
        ({"period_ms": 0}, "period must be at least 1 ms"),
        ({"rate": 1e-300}, "at 1e-300 tuples per second the event time of tuple 11 is past int64 ms"),
        ({"rate": 5e-324}, "past int64 ms.*\n.*higher rate"),
    ],
)
def test_impossible_streams_are_refused(wrong: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        generated(**{"kind": "zipf", "tuples": 10, **wrong})


def test_times_reach_to_the_end_of_int64_and_no_further() -> None:
    rate = 1000 / 2**60
    assert numbered_times(0, 8, rate=rate).tolist() == [number * 2**60 for number in range(8)]
    for first, count, start in ((0, 9, 0), (8, 1, 0), (0, 8, 2**60)):
        with pytest.raises(ConfigError, match="past int64"):
            numbered_times(first, count, rate=rate, start=start)
    with pytest.raises(ConfigError, match="past int64"):
        from_columns(pa.array(["a", "b"]), None, rate=1e-300)


@pytest.mark.parametrize("tuples", [10**13, 10**25])
def test_a_stream_that_the_folder_cannot_hold_is_refused_before_a_file_is_made(
    tmp_path: Path, tuples: int
) -> None:
    with pytest.raises(ConfigError, match=rf"{tuples:,} tuples need .* GB .* left\n.*fewer tuples"):
        generated("zipf", tuples=tuples, keys=5, rate=1e15, folder=tmp_path)
    assert not list(tmp_path.iterdir())


def test_files_without_tuples_or_with_missing_keys_are_refused() -> None:
    with pytest.raises(ConfigError, match="no tuples"):
        from_columns(pa.array([], pa.string()), None)
    with pytest.raises(ConfigError, match="1 of 2 keys are missing"):
        from_columns(pa.array(["a", None]), None)
    with pytest.raises(ConfigError, match="rate must be more than 0"):
        from_columns(pa.array(["a"]), None, rate=-1)


def test_few_has_a_thousandth_of_the_rate() -> None:
    assert generated("few", tuples=3, keys=9, rate=1_000).times.tolist() == [0, 1_000, 2_000]


def test_replaced_gives_the_hottest_ranks_keys_of_their_own_in_each_period() -> None:
    stream = generated("replaced", tuples=30_000, keys=1_000, zipf=1.2, period_ms=10_000)
    periods = [set(part.tolist()) for part in np.split(stream.codes, 3)]
    new = [{code for code in period if code >= 1_000} for period in periods]
    assert all(150 < len(keys) <= 200 for keys in new)
    assert not new[0] & new[1]
    assert not new[1] & new[2]
    assert all(code >= 200 for code in periods[0]), "nobody has the ranks themselves"
    assert len(np.unique(stream.keys)) == len(np.unique(stream.codes))


def test_the_exponent_wanders_in_steps_and_within_its_bounds() -> None:
    law = WanderingExponent(10, 1.0, low=0.5, high=1.8, step=0.15, seed=3)
    exponents = np.array([law.exponent(period) for period in range(300)])
    assert exponents[0] == 1.0
    assert 0.5 <= exponents.min() < 0.7
    assert 1.6 < exponents.max() <= 1.8
    assert np.abs(np.diff(exponents)).max() < 0.7


def test_the_load_wanders_and_no_tuple_is_out_of_order() -> None:
    stream = generated("wandering-load", tuples=200_000, keys=50, rate=1_000, period_ms=5_000)
    rates = np.bincount(stream.times // 5_000)[:-1] / 5.0
    assert np.all(np.diff(stream.times) >= 0)
    assert rates[0] == 1_000
    assert 190 <= rates.min() < 500
    assert 2_000 < rates.max() <= 5_010
    assert stream.next_time is not None
    assert stream.next_time >= stream.times[-1]


def test_a_giant_has_nine_of_ten_tuples_of_the_second_half() -> None:
    codes = generated("giant", tuples=40_000, keys=100).codes
    shares = [np.mean(half == 99) for half in (codes[:20_000], codes[20_000:])]
    assert shares[0] < 0.05
    assert 0.89 < shares[1] < 0.92


def test_one_tuple_of_the_wrong_clock_is_an_hour_ahead() -> None:
    wrong, right = (generated(kind, tuples=1_001, keys=9).times for kind in ("wrong-clock", "zipf"))
    assert np.flatnonzero(wrong != right).tolist() == [500]
    assert wrong[500] == right[500] + 3_600_000
    assert without_leaps(wrong, 60_000).tolist() == [*range(500), 499, *range(501, 1_001)]


def test_after_the_silence_everything_is_an_hour_later() -> None:
    times = generated("silence", tuples=1_000, keys=9).times
    assert times.tolist() == [*range(500), *range(3_600_500, 3_601_000)]
    assert without_leaps(times, 60_000).tolist() == times.tolist(), "a silence is no leap"
