"""How many distinct keys there are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evenflow.numeric.keyed_hashes import keyed_hashes
from evenflow.numeric.words import mix64
from evenflow.twostep import distinct as module
from evenflow.twostep.distinct import distinct
from tests.unit.aggregates.test_keyed_hashes import unshifted

_M1, _M2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def unmixed(word: int) -> int:
    """The word of which `mix64` makes this one."""
    word = unshifted(word, 31) * pow(_M2, -1, 2**64) % 2**64
    word = unshifted(word, 27) * pow(_M1, -1, 2**64) % 2**64
    return unshifted(word, 30)


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


def test_keys_that_were_chosen_for_one_slot_are_counted_by_hashes_of_a_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keyed: list[int] = []

    def counted(places: Any, data: Any) -> Any:
        keyed.append(len(places) - 1)
        return keyed_hashes(places, data)

    monkeypatch.setattr(module, "keyed_hashes", counted)
    chosen = np.array([unmixed(number << 32) for number in range(3_000)], np.uint64)
    assert {int(mix64(word)) % 2**32 for word in chosen} == {0}
    assert distinct(np.concatenate([chosen, chosen])) == 3_000
    assert keyed == [6_000]
    assert distinct(np.arange(6_000, dtype=np.uint64)) == 6_000
    assert keyed == [6_000]
