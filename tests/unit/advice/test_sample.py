"""What a sample says: unseen keys, skew, hot keys, rates."""

import numpy as np
import pyarrow as pa
import pytest

from evenflow.advice.sample import (
    Sample,
    busiest_rate,
    hot_keys,
    keys_of,
    unseen_too,
    zipf_exponent,
)
from evenflow.errors import ConfigError
from evenflow.simulation import generated


@pytest.mark.parametrize("tuples", [20_000, 200_000])
@pytest.mark.parametrize("exponent", [0.6, 1.0, 1.5])
def test_the_exponent_of_a_zipf_stream_is_found_also_from_a_sample_that_misses_keys(
    exponent: float, tuples: int
) -> None:
    result = keys_of(generated("zipf", tuples=tuples, keys=20_000, zipf=exponent), complete=False)
    assert result.zipf == pytest.approx(exponent, abs=0.06)


@pytest.mark.parametrize("tuples", [30_000, 300_000])
def test_the_noise_of_a_uniform_stream_is_not_taken_for_skew(tuples: int) -> None:
    result = keys_of(generated("uniform", tuples=tuples, keys=10_000), complete=False)
    assert result.zipf is not None
    assert result.zipf < 0.15
    assert result.estimate == pytest.approx(10_000, rel=0.05)
    assert result.distinct <= min(result.estimate, 10_000)
    assert result.counts.min() > 0


def test_a_single_key_has_no_exponent_and_ever_the_same_two_have_one() -> None:
    assert zipf_exponent(np.array([9]), 1) is None
    assert zipf_exponent(np.array([1]), 2) is None
    assert zipf_exponent(np.array([500, 500]), 2) == pytest.approx(0, abs=0.05)


def test_keys_seen_once_and_twice_tell_how_many_were_not_seen() -> None:
    assert unseen_too(np.array([5, 2, 1, 1, 1])) == 5 + 3 * 2 // 4
    assert unseen_too(np.array([5, 5])) == 2
    whole = keys_of(Sample("x", pa.array(["a", "b", "c"])).stream(), complete=True)
    assert whole.estimate == whole.distinct == 3


def test_keys_are_ranked_and_new_ones_counted() -> None:
    result = keys_of(Sample("x", pa.array(["a", "b", "a", "b", "b", "c"])).stream(), complete=True)
    assert result.counts.tolist() == [3, 2, 1]
    assert result.shares.tolist() == pytest.approx([1 / 2, 1 / 3, 1 / 6])
    assert result.new_share == pytest.approx(1 / 3)  # c


def test_hot_keys_have_their_names_or_their_bytes() -> None:
    sample = Sample("x", pa.array([b"\xff\x00"] * 5 + ["ключ".encode()] * 3 + [b"", b"z"], pa.large_binary()))
    stream = sample.stream()
    keys = keys_of(stream, complete=True)
    hot = hot_keys(sample, stream, keys, least=0.1, most=3)
    assert [(one.key, one.key_base64, one.tuples, one.share) for one in hot] == [
        (None, "/wA=", 5, 0.5),
        ("ключ", None, 3, 0.3),
        ("", None, 1, 0.1),
    ]
    assert len(hot_keys(sample, stream, keys, least=0.3, most=9)) == 2


def test_the_rate_is_that_of_the_busiest_slide() -> None:
    times = np.concatenate([np.arange(0, 5_000, 10), np.arange(5_000, 6_000, 2), [10**12]])
    assert busiest_rate(times, 1_000) == 500
    assert busiest_rate(np.array([0, 250, 500]), 1_000) == 6  # less than a slide: over its span
    assert busiest_rate(np.array([7, 7]), 1_000) is None


def test_no_tuples_and_keys_that_are_missing_are_refused() -> None:
    with pytest.raises(ConfigError, match="orders has no tuples"):
        Sample("orders", pa.array([], pa.string())).stream()
    with pytest.raises(ConfigError, match="1 of 2 keys are missing"):
        Sample("orders", pa.array(["a", None])).stream()
