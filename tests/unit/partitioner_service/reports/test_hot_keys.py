"""The hottest keys: found in a sample, with the workers they went to, in bounded memory and safe to show."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from evenflow.keys import hash_keys
from partitioner_service.reports import hot_keys
from partitioner_service.reports.hot_keys import HotKeys


def note(found: HotKeys, keys: list[bytes], workers: npt.NDArray[np.int32]) -> None:
    column = pa.array(keys, pa.binary())
    found.note(column, hash_keys(column), workers)


def test_a_key_with_most_of_a_large_block_is_found_with_its_share_and_its_split() -> None:
    result, draw = HotKeys(), np.random.default_rng(3)
    for _ in range(20):
        hot = draw.random(20_000) < 0.9
        cold = draw.integers(0, 10_000, len(hot))
        workers = np.where(hot, draw.choice(4, len(hot), p=[0.5, 0.25, 0.25, 0]), cold % 4).astype(np.int32)
        note(result, [b"hot" if h else b"%d" % c for h, c in zip(hot, cold, strict=True)], workers)
    first = result.top()[0]
    assert (first.key, first.length, first.holders, first.workers[0]) == ("hot", 3, 3, 0)
    assert first.share == pytest.approx(0.9, abs=0.02)
    assert first.parts[0] == pytest.approx(0.5, abs=0.03)
    assert sum(first.parts) == pytest.approx(1, abs=0.001)


def test_keys_that_come_in_the_rhythm_of_the_sample_are_found_all_the_same() -> None:
    result = HotKeys()
    for _ in range(40):
        keys = [b"tick" if at % 10 == 3 else b"%d" % at for at in range(10_240)]
        note(result, keys, np.zeros(len(keys), np.int32))
        note(result, [b"one"], np.zeros(1, np.int32))  # the blocks are not all alike
    assert result.top()[0].key == "tick"
    assert result.top()[0].share == pytest.approx(0.1, abs=0.04)


def test_a_stream_of_nothing_but_new_keys_takes_bounded_memory() -> None:
    result = HotKeys()
    for block in range(200):
        note(result, [b"%d-%d" % (block, at) for at in range(2_000)], np.zeros(2_000, np.int32))
    assert len(result._keys) <= hot_keys._REMEMBERED
    assert len(result.top()) == hot_keys.SHOWN


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        (b"", ""),
        (b"<script>alert(1)</script>", "<script>alert(1)</script>"),
        (b"\x00\x1b[2J", "\\x00\\x1b[2J"),
        (b"\xff\xfe", "\\xff\\xfe"),
        (b"x" * 1_000_000, "x" * 77 + "..."),
    ],
)
def test_a_hostile_key_is_short_and_printable(key: bytes, shown: str) -> None:
    result = HotKeys()
    note(result, [key], np.zeros(1, np.int32))
    assert (result.top()[0].key, result.top()[0].length) == (shown, len(key))


def test_without_tuples_there_is_no_hottest_key() -> None:
    result = HotKeys()
    note(result, [], np.zeros(0, np.int32))
    assert result.top() == []
