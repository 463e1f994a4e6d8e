"""The offsets of a batch are looked at before its first record comes, and any place of it is found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.forged_batches import batch, record
from topics.batches.raw_batches import DamagedBatchError, RawBatch, RawRecord, batches_of

MOST = 1_000_000


def one(*records: bytes, first: int = 10, last: int | None = None) -> RawBatch:
    (made,) = batches_of(batch(records, first=first, last=last))
    return made


@given(
    st.lists(st.integers(-1, 12) | st.sampled_from([1 << 30, 1 << 62, -(1 << 40)]), max_size=8),
    st.integers(8, 25),
)
def test_records_come_from_an_offset_on_or_the_batch_is_damaged_before_the_first_one(
    deltas: list[int], begin: int
) -> None:
    made = one(*(record(delta, b"%d" % delta) for delta in deltas), last=20)
    in_order = all(0 <= delta <= 10 for delta in deltas) and sorted(set(deltas)) == deltas
    if not in_order:
        with pytest.raises(DamagedBatchError, match="out of its order or range"):
            made.checked_records(MOST, begin=begin)
        with pytest.raises(DamagedBatchError, match="out of its order or range"):
            list(made.records(MOST, begin=begin))
        return
    expected = [(10 + delta, b"%d" % delta) for delta in deltas if 10 + delta >= begin]

    def pairs(records: list[RawRecord]) -> list[tuple[int, bytes | None]]:
        return [(each.offset, each.value) for each in records]

    assert pairs(list(made.checked_records(MOST, begin=begin))) == expected
    assert pairs(list(made.records(MOST, begin=begin))) == expected


def test_bytes_behind_the_fields_of_a_record_are_left_alone_as_by_librdkafka() -> None:
    made = one(record(0, b"a", behind=b"more"), record(1, b"b"))
    for records in (made.records(MOST), made.checked_records(MOST)):
        assert [(each.offset, each.value) for each in records] == [(10, b"a"), (11, b"b")]


def test_a_record_that_is_shorter_than_its_fields_is_damaged() -> None:
    cut = bytearray(record(0, b"abcdef"))
    cut[0] -= 4
    with pytest.raises(DamagedBatchError, match="ends within a record"):
        list(one(bytes(cut), record(1)).records(MOST))


def test_of_a_batch_that_nobody_wants_any_more_no_record_comes() -> None:
    many = one(*(record(delta) for delta in range(2_000)))
    assert list(many.checked_records(MOST, stopping=lambda: True)) == []
    assert len(list(many.checked_records(MOST))) == 2_000
