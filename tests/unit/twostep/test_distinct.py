"""How many distinct keys there are."""

from __future__ import annotations

import numpy as np
import pytest

from evenflow.twostep.distinct import distinct


@pytest.mark.parametrize("keys", [0, 1, 2, 7, 8, 1_000, 50_000])
def test_every_key_counts_once_however_often_it_comes(keys: int) -> None:
    hashes = np.random.default_rng(keys).integers(0, 2**64, keys, np.uint64)
    assert distinct(np.repeat(hashes, 3)) == len(np.unique(hashes))


def test_keys_whose_hashes_are_alike_are_told_apart() -> None:
    low = np.arange(5_000, dtype=np.uint64)
    assert distinct(low) == distinct(low << np.uint64(40)) == 5_000


def test_a_hash_of_zero_is_a_key() -> None:
    assert distinct(np.zeros(3, np.uint64)) == 1
    assert distinct(np.array([0, 1, 0, 1], np.uint64)) == 2
