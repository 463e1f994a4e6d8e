from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError
from producers.profiles import (
    Curve,
    FixedRate,
    FullSpeed,
    Profile,
    RecordedSpeed,
    Sine,
    choose_profile,
    pareto,
    parse_profile,
    poisson,
    spike,
    staircase,
)
from tests.examples import examples

CURVES = [
    FixedRate(5_000),
    spike(1_000, 5_000, 10, 5),
    spike(1_000, 5_000, 0, 5),
    staircase(1_000, 5_000, 1_000, 10),
    staircase(5_000, 1_000, 1_500, 2),
    Sine(1_000, 500, 60),
    Sine(1_000, 1_000, 7),
]
ALL = [*CURVES, poisson(1_000, 3), pareto(1.5, 0.0002, 3)]
NAMES = [*map(repr, CURVES), "poisson", "pareto"]  # no addresses: every process must collect the same names


def times_of(profile: Profile, first: int, count: int) -> np.ndarray:
    times = profile.send_times(first, np.zeros(count, np.int64), 0)
    assert times is not None
    return times


@pytest.mark.parametrize("curve", CURVES, ids=repr)
def test_the_tuples_sent_by_a_moment_are_the_integral_of_the_rate_up_to_it(curve: Curve) -> None:
    times = times_of(curve, 0, 100_000)
    for moment in (0.5, 3.3, 9.999, 12.0, 15.5):
        assert np.count_nonzero(times < moment) == pytest.approx(
            float(curve.due(np.float64(moment))), abs=1.01
        )


@pytest.mark.parametrize("curve", CURVES, ids=repr)
def test_the_send_time_of_a_tuple_inverts_the_integral(curve: Curve) -> None:
    numbers = np.arange(0, 200_000, 997, dtype=np.float64)
    np.testing.assert_allclose(curve.due(curve.inverse(numbers)), numbers, atol=1e-3)


@pytest.mark.parametrize("profile", ALL, ids=NAMES)
def test_tuples_are_due_in_order_and_never_before_the_start(profile: Profile) -> None:
    times = times_of(profile, 0, 150_000)
    assert times[0] >= 0
    assert (np.diff(times) >= 0).all()


@cache
def in_one_batch(profile: Profile) -> np.ndarray:
    """Send times of the first 140,001 tuples; computed once, not for each example."""
    return times_of(profile, 0, 140_001)


@pytest.mark.parametrize("profile", ALL, ids=NAMES)
@given(cuts=st.lists(st.integers(1, 140_000), max_size=4))
@examples(20)
def test_send_times_do_not_depend_on_the_cut_into_batches(profile: Profile, cuts: list[int]) -> None:
    bounds = [0, *sorted(set(cuts)), 140_001]
    parts = [times_of(profile, low, high - low) for low, high in pairwise(bounds)]
    np.testing.assert_array_equal(np.concatenate(parts), in_one_batch(profile))


@pytest.mark.parametrize("make", [lambda: poisson(1_000, 3), lambda: pareto(1.5, 0.0002, 3)])
def test_random_arrivals_may_be_asked_for_in_any_order(make) -> None:
    late_first = times_of(fresh := make(), 200_000, 10)
    np.testing.assert_array_equal(times_of(make(), 0, 200_010)[-10:], late_first)
    np.testing.assert_array_equal(times_of(fresh, 0, 10), times_of(make(), 0, 10))


def test_a_spike_sends_its_peak_rate_inside_and_its_base_rate_outside() -> None:
    times = times_of(spike(1_000, 5_000, 10, 5), 0, 60_000)
    per_second = np.histogram(times, bins=np.arange(0, 21))[0]
    assert per_second[:10] == pytest.approx(1_000, abs=1)
    assert per_second[10:15] == pytest.approx(5_000, abs=1)
    assert per_second[15:20] == pytest.approx(1_000, abs=1)


def test_a_staircase_climbs_by_its_step_and_stays_at_the_top() -> None:
    times = times_of(staircase(1_000, 3_000, 1_000, 2), 0, 40_000)
    per_second = np.histogram(times, bins=np.arange(0, 9))[0]
    assert per_second == pytest.approx([1000, 1000, 2000, 2000, 3000, 3000, 3000, 3000], abs=1)


def test_poisson_gaps_have_the_mean_and_the_spread_of_an_exponential() -> None:
    gaps = np.diff(times_of(poisson(2_000, 11), 0, 400_000))
    assert gaps.mean() == pytest.approx(1 / 2_000, rel=0.01)
    assert gaps.std() == pytest.approx(1 / 2_000, rel=0.02)


def test_pareto_gaps_start_at_xm_and_have_the_tail_that_alpha_says() -> None:
    gaps = np.diff(times_of(pareto(1.5, 0.001, 11), 0, 400_000))
    assert gaps.min() >= 0.001 * (1 - 1e-6)
    assert np.mean(gaps > 0.004) == pytest.approx(4**-1.5, rel=0.02)


def test_seeds_make_different_arrivals_and_the_same_seed_makes_the_same() -> None:
    assert not np.array_equal(times_of(poisson(100, 1), 0, 100), times_of(poisson(100, 2), 0, 100))
    np.testing.assert_array_equal(times_of(poisson(100, 1), 0, 100), times_of(poisson(100, 1), 0, 100))


def test_recorded_speed_divides_the_recorded_time() -> None:
    times = RecordedSpeed(60).send_times(0, np.array([1_000, 61_000, 31_000, 121_000]), 1_000)
    np.testing.assert_allclose(times, [0, 1, 0.5, 2])


def test_full_speed_knows_no_time() -> None:
    assert FullSpeed().send_times(0, np.zeros(5, np.int64), 0) is None


def test_words_become_profiles() -> None:
    assert choose_profile(rate=5_000) == FixedRate(5_000)
    assert choose_profile(speed="60x") == RecordedSpeed(60)
    assert choose_profile(profile="spike:base=1000,peak=5000,at=10s,for=5s") == spike(1_000, 5_000, 10, 5)
    assert choose_profile(profile="sine:base=10,amplitude=5,period=500ms") == Sine(10, 5, 0.5)
    assert choose_profile() == FullSpeed()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("triangle:base=1", "known: full; fixed"),
        ("spike:base=1000,peak=5000,at=10s", "needs the option for"),
        ("spike:base=1000,peak=5000,at=10s,for=5s,until=3", "no option until"),
        ("fixed:rate=0", "more than 0"),
        ("fixed:rate=fast", "a number"),
        ("fixed:rate=nan", "finite"),
        ("fixed:5000", "option=value"),
        ("fixed:rate=1,rate=2", "twice"),
        ("sine:base=10,amplitude=11,period=1s", "never below 0"),
        ("spike:base=1,peak=2,at=soon,for=1s", "not a duration"),
    ],
)
def test_a_wrong_profile_is_refused_with_what_is_known(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        parse_profile(text)


def test_rate_speed_and_profile_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="exclude"):
        choose_profile(rate=1, speed="2x")
