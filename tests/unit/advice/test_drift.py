"""Whether the hot keys of a sample change."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.advice.drift import FEWEST, hot_turnover
from evenflow.simulation import KeyedStream, generated

LEAST = 1 / 160


def of(codes: np.ndarray) -> KeyedStream:
    return KeyedStream(
        codes.astype(np.uint64),
        codes.astype(np.int32),
        np.arange(len(codes)),
        int(codes.max()) + 1,
        len(codes),
    )


@pytest.mark.parametrize("zipf", [0.8, 1.0, 1.5, 2.0])
@pytest.mark.parametrize("tuples", [10_000, 200_000])
def test_on_a_steady_stream_next_to_nothing_is_newly_hot(zipf: float, tuples: int) -> None:
    result = hot_turnover(generated("zipf", tuples=tuples, keys=20_000, zipf=zipf), least=LEAST)
    assert result is not None
    assert result < 0.01


@pytest.mark.parametrize("workers", [8, 32, 64])
@pytest.mark.parametrize("period", [5_000, 20_000, 50_000])
@pytest.mark.parametrize("kind", ["replaced", "drift"])
def test_where_hot_keys_are_replaced_or_move_on_the_change_is_seen(
    kind: str, period: int, workers: int
) -> None:
    """Ten ranks a period: at 64 workers no key that gets hot was far below the threshold a part before."""
    stream = generated(kind, tuples=200_000, keys=20_000, zipf=1.2, period_ms=period)
    result = hot_turnover(stream, least=1 / (5 * workers))
    assert result is not None
    assert result > 0.5


def test_a_sample_as_large_as_the_usual_one_shows_hot_keys_that_move_on_slowly() -> None:
    stream = generated("drift", tuples=1_000_000, keys=100_000, zipf=1.0, period_ms=100_000)
    result = hot_turnover(stream, least=1 / 320)
    assert result is not None
    assert result > 0.5


@given(st.integers(2, 10), st.integers(1, 5))
def test_keys_of_one_part_only_are_all_newly_hot_and_keys_of_every_part_never(parts: int, keys: int) -> None:
    part = np.arange(FEWEST * 5 * keys) % keys
    least = parts * FEWEST / (parts * len(part))  # as many parts as are wanted, of these tuples each
    new = np.concatenate([part + number * keys for number in range(parts)])
    assert hot_turnover(of(new), least=least) == pytest.approx(1.0)
    assert hot_turnover(of(np.tile(part, parts)), least=least) == 0.0


def test_too_few_tuples_and_no_hot_keys_say_nothing() -> None:
    assert hot_turnover(generated("zipf", tuples=6000, keys=100, zipf=1.0), least=LEAST) is None
    assert hot_turnover(generated("uniform", tuples=100_000, keys=10_000), least=LEAST) is None
