from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError
from producers.partitioning import partitions_of


def murmur2(key: bytes) -> int:
    """Kafka's Utils.murmur2, written plainly from its Java."""
    mask, factor = 0xFFFFFFFF, 0x5BD1E995
    value = 0x9747B28C ^ len(key)
    whole = len(key) // 4 * 4
    for at in range(0, whole, 4):
        word = int.from_bytes(key[at : at + 4], "little") * factor & mask
        word = (word ^ word >> 24) * factor & mask
        value = (value * factor & mask) ^ word
    if key[whole:]:
        value = (value ^ int.from_bytes(key[whole:], "little")) * factor & mask
    value = (value ^ value >> 13) * factor & mask
    return value ^ value >> 15


def test_murmur2_gives_the_values_of_kafkas_own_tests() -> None:
    signed = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    assert {key: murmur2(key) for key in signed} == {key: value & 0xFFFFFFFF for key, value in signed.items()}


@given(
    keys=st.lists(st.binary(max_size=40) | st.none()), partitions=st.integers(1, 256), skip=st.integers(0, 5)
)
def test_partitions_by_key_are_those_of_murmur2(keys: list[bytes | None], partitions: int, skip: int) -> None:
    column = pa.array(keys, pa.large_binary()).slice(skip)
    expected = [(murmur2(key or b"") & 0x7FFFFFFF) % partitions for key in keys[skip:]]
    assert partitions_of(column, 0, partitions, "key").tolist() == expected


@given(first=st.integers(0, 10_000), count=st.integers(0, 500), partitions=st.integers(1, 16))
def test_taking_turns_depends_on_the_tuples_number_only(first: int, count: int, partitions: int) -> None:
    keys = pa.nulls(count, pa.large_binary())
    expected = [(first + place) % partitions for place in range(count)]
    assert partitions_of(keys, first, partitions, "round-robin").tolist() == expected


def test_sticky_changes_partition_after_each_run() -> None:
    chosen = partitions_of(pa.nulls(5_000, pa.large_binary()), 0, 2, "sticky")
    assert np.flatnonzero(np.diff(chosen)).tolist() == [999, 1_999, 2_999, 3_999]


def test_an_unknown_partitioning_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="round-robin, key, sticky"):
        partitions_of(pa.nulls(1, pa.large_binary()), 0, 2, "luck")  # type: ignore[arg-type]
