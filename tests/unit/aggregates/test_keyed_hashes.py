"""Nobody who writes keys makes a hash table slow: after too many steps it begins anew with a secret."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.aggregates.partials import grouping
from evenflow.aggregates.partials.grouping import group_rows
from evenflow.aggregates.partials.orders import order_keys
from evenflow.keys import hash_keys
from evenflow.numeric.keyed_hashes import keyed_hashes, sip_hash, steps_for
from evenflow.twostep import key_index
from evenflow.twostep.key_index import KeyIndex
from tests.examples import examples

_64 = 2**64
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
KEYS = st.lists(st.binary(max_size=20), max_size=60)


def unshifted(word: int, bits: int) -> int:
    """x of word = x ^ (x >> bits)."""
    result = word
    for _ in range(64 // bits + 1):
        result = word ^ (result >> bits)
    return result


def _rotated(word: int, bits: int) -> int:
    return ((word << bits) | (word >> (64 - bits))) % _64


def key_of(hashed: int) -> bytes:
    """The key of eight bytes whose XXH64 is this: every step of the hash can be taken back."""
    word = unshifted(hashed, 32) * pow(_P3, -1, _64) % _64
    word = unshifted(word, 29) * pow(_P2, -1, _64) % _64
    word = unshifted(word, 33)
    word = _rotated((word - _P4) * pow(_P1, -1, _64) % _64, 64 - 27) ^ (_P5 + 8)
    lane = _rotated(word * pow(_P1, -1, _64) % _64, 64 - 31) * pow(_P2, -1, _64) % _64
    return lane.to_bytes(8, "little")


def chosen_keys(count: int) -> list[bytes]:
    """Different keys that begin at one slot of every table: the halves of their hashes fold to one number."""
    return [key_of(high << 32 | (high ^ 12_345)) for high in range(count)]


def columns(keys: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.cumsum([0, *map(len, keys)], dtype=np.int64)
    return offsets, np.frombuffer(b"".join(keys) or b"\0", np.uint8)


@pytest.fixture
def keyed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many keys were hashed with the secret, one number for each time."""
    counts: list[int] = []

    def counted(offsets: Any, data: Any, panes: Any = None) -> Any:
        counts.append(len(offsets) - 1)
        return keyed_hashes(offsets, data, panes)

    for module in (grouping, key_index):
        monkeypatch.setattr(module, "keyed_hashes", counted)
    return counts


def test_the_hash_is_that_of_its_paper() -> None:
    secret = np.frombuffer(bytes(range(16)), np.uint64)
    data = np.frombuffer(bytes(range(15)), np.uint8)
    assert int(sip_hash(data, 0, 15, secret)) == 0xA129CA6149BE45E5


def test_the_keys_of_these_tests_have_the_hashes_that_were_chosen() -> None:
    chosen = [0, 1, 2**63, 0xDEADBEEF_01234567]
    assert hash_keys([key_of(one) for one in chosen]).tolist() == chosen


@examples(40)
@given(KEYS)
def test_equal_keys_have_equal_hashes_and_others_have_others(keys: list[bytes]) -> None:
    hashes = keyed_hashes(*columns(keys)).tolist()
    assert len(set(hashes)) == len(set(keys))
    assert len({*zip(keys, hashes, strict=True)}) == len(set(keys))


def test_panes_of_a_key_have_hashes_of_their_own() -> None:
    hashes = keyed_hashes(*columns([b"a"] * 100), np.arange(100))
    assert len(set(hashes.tolist())) == 100


@pytest.mark.parametrize("panes", [None, np.zeros(3_000, np.int64)], ids=["keys alone", "panes"])
def test_keys_that_were_chosen_for_one_slot_are_grouped_by_hashes_of_a_secret(
    panes: Any, keyed: list[int]
) -> None:
    keys = chosen_keys(1_500) * 2
    result = group_rows(pa.array(keys, pa.binary()), panes)
    assert result.ids.tolist() == [*range(1_500)] * 2
    assert result.first.tolist() == [*range(1_500)]
    assert keyed == [3_000]


def test_honest_keys_and_a_hot_key_are_grouped_without_a_secret(keyed: list[int]) -> None:
    draw = np.random.default_rng(3)
    keys = [b"%d" % number for number in draw.zipf(1.4, 60_000)]
    assert group_rows(pa.array(keys, pa.binary())).count == len(set(keys))
    assert not keyed


def test_an_index_of_keys_that_were_chosen_for_one_slot_takes_hashes_of_a_secret(keyed: list[int]) -> None:
    keys = chosen_keys(3_000)
    index = KeyIndex(pa.array(keys[:2_000], pa.binary()))
    expected = [*range(2_000), *[-1] * 1_000]
    query = pa.array(keys, pa.binary())
    assert index.find(query).tolist() == expected
    assert index.find(query, hash_keys(query)).tolist() == expected
    assert keyed == [2_000, 3_000, 3_000]


def test_an_index_that_is_asked_for_its_worst_key_again_and_again_takes_hashes_of_a_secret(
    keyed: list[int],
) -> None:
    # Few enough that the index itself is made within its steps.
    keys = chosen_keys(150)
    honest = [b"%d" % number for number in range(1_000)]
    index = KeyIndex(pa.array([*honest, *keys], pa.binary()))
    assert not keyed
    worst = pa.array([keys[-1]] * 20_000, pa.binary())
    assert set(index.find(worst).tolist()) == {1_149}
    assert keyed == [1_150, 20_000]
    assert index.find(pa.array(honest, pa.binary())).tolist() == [*range(1_000)]


@examples(60)
@given(KEYS, KEYS, st.sampled_from([-1, steps_for(1_000)]))
def test_groups_and_places_do_not_depend_on_the_hashes(
    keys: list[bytes], queries: list[bytes], steps: int
) -> None:
    limit: Callable[[int], int] = partial(lambda limit, rows: limit, steps)
    with pytest.MonkeyPatch.context() as patch:
        for module in (grouping, key_index):
            patch.setattr(module, "steps_for", limit)
        different = list(dict.fromkeys(keys))
        groups = group_rows(pa.array(keys, pa.binary()))
        assert groups.ids.tolist() == [different.index(key) for key in keys]
        rows = KeyIndex(pa.array(different, pa.binary())).find(pa.array(queries, pa.binary()))
        assert rows.tolist() == [different.index(key) if key in different else -1 for key in queries]


def one_hash_of_arrow(count: int) -> list[str]:
    """Different texts of 16 letters of ASCII that have one hash in Arrow's tables, with all 64 bits."""
    high = np.uint64(0x8080808080808080)
    draw = np.random.default_rng(1)
    texts: set[bytes] = set()
    while len(texts) < count:
        last = draw.integers(0, 2**63, 1_000_000, np.uint64) & ~high
        first = np.uint64(pow(14_029_467_366_897_019_727, -1, _64)) * (
            (np.uint64(11_400_714_785_074_694_791) * last) ^ np.uint64(12_345)
        )
        plain = (first & high) == 0
        texts.update(word.tobytes() for word in np.stack([first[plain], last[plain]], axis=1))
    return [text.decode() for text in texts][:count]


ROOT = Path(__file__).parents[3]
PUBLIC = re.compile(
    r"pc\.unique\(|dictionary_encode\(|value_counts\(|index_in\(|is_in\(|TableGroupBy|\.group_by\("
)
"""Calls that make a table of Arrow. Its hash is public and has no secret."""
HONEST = {
    "evenflow/aggregates/own/tables.py": "numbers of groups",
    "evenflow/aggregates/partials/reductions.py": "numbers of groups",
    "evenflow/twostep/reducing/reducer.py": "numbers of panes",
    "partitioner_service/reading/cells/typed_columns.py": "a few words of evenflow's own",
    "partitioner_service/reading/columns.py": "a few words of evenflow's own",
}
"""Files that call one all the same, with what their tables hold."""


def test_what_records_hold_is_in_no_table_of_arrow() -> None:
    packages = ["evenflow/aggregates", "evenflow/twostep", "evenflow/expressions", "evenflow/wire"]
    packages += ["partitioner_service", "spark_consumers", "workbench/assist"]
    files = [file for package in packages for file in (ROOT / package).rglob("*.py")]
    assert len(files) > 200
    with_tables = {
        file.relative_to(ROOT).as_posix() for file in files if PUBLIC.search(file.read_text(encoding="utf-8"))
    }
    assert with_tables == HONEST.keys()


def test_texts_that_arrow_would_put_into_one_slot_have_the_places_of_their_order() -> None:
    texts = one_hash_of_arrow(20_000)
    places = order_keys(pa.array([*texts, None, texts[0]], pa.large_string()))
    assert len(set(places[:-2].tolist())) == len(texts)
    assert places[-1] == places[0]
    assert [texts[row] for row in np.argsort(places[:-2])] == sorted(texts)
