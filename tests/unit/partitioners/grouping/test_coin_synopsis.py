"""The synopsis of popular keys: two bits make a key hot, declines make it forgotten."""

import numpy as np
import pytest

from evenflow.generation.draws import generator
from evenflow.partitioners.grouping.coin_synopsis import (
    CoinSynopsis,
    coin_synopsis,
    decline,
    log_stay,
    look,
    place_of,
)


def looked(synopsis: CoinSynopsis, key: int, *bits: int, spot: int = 5) -> None:
    for bit in bits:
        look(synopsis, np.uint64(spot), np.uint64(key), bit)


def is_hot(synopsis: CoinSynopsis, key: int, *, spot: int = 5) -> bool:
    at = place_of(synopsis, np.uint64(spot), np.uint64(key))
    return bool(at >= 0 and synopsis.hot[at])


def everything_declines(synopsis: CoinSynopsis) -> None:
    decline(synopsis, generator(1, 0), log_stay(1.0))


def test_a_key_is_hot_with_two_different_bits_and_until_none_is_left() -> None:
    synopsis = coin_synopsis(0.1)
    looked(synopsis, 9, 0, 0, 0)
    assert not is_hot(synopsis, 9)
    looked(synopsis, 9, 2)
    assert is_hot(synopsis, 9)
    for _ in range(2):
        everything_declines(synopsis)
        assert is_hot(synopsis, 9)
    everything_declines(synopsis)
    assert not is_hot(synopsis, 9)
    looked(synopsis, 9, 1)
    assert not is_hot(synopsis, 9)


def test_a_full_set_enters_nobody_until_a_place_is_free() -> None:
    synopsis = coin_synopsis(0.1)
    for key in range(8):
        looked(synopsis, key, 1, 2)
    looked(synopsis, 100, 1, 2)
    assert [is_hot(synopsis, key) for key in (*range(8), 100)] == [True] * 8 + [False]
    for _ in range(3):
        everything_declines(synopsis)
    looked(synopsis, 100, 1, 2)
    assert is_hot(synopsis, 100)
    assert not is_hot(synopsis, 0)


def test_key_zero_is_a_key_like_any_other() -> None:
    synopsis = coin_synopsis(0.1)
    assert not is_hot(synopsis, 0)
    looked(synopsis, 0, 3)
    assert not is_hot(synopsis, 0)
    looked(synopsis, 0, 4)
    assert is_hot(synopsis, 0)


@pytest.mark.parametrize("p", [0.3, 0.01, 0.0001])
def test_each_place_declines_with_the_probability_that_was_asked_for(p: float) -> None:
    synopsis, rng = coin_synopsis(p), generator(3, 1)
    size, rounds = len(synopsis.bits), 200
    declined = np.zeros(size)
    for _ in range(rounds):
        synopsis.bits[:] = 2
        decline(synopsis, rng, log_stay(p))
        declined += synopsis.bits == 1
    expected, spread = rounds * size * p, 5 * np.sqrt(rounds * size * p)
    assert abs(declined.sum() - expected) < spread
    assert abs(declined[: size // 2].sum() - expected / 2) < spread
