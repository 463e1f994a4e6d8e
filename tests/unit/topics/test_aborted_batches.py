"""Which batches of a fetch were aborted is known as Kafka's own consumers know it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.settings import load_settings
from tests.forged_batches import batch, record
from topics.batches.bombs import raw_records, unreadable_at
from topics.batches.raw_batches import RawBatch, RawFetch, batches_of

TRANSACTIONAL, CONTROL = 0x10, 0x20
ABORT, COMMIT = b"\0\0\0\0", b"\0\0\0\1"


def data(first: int, count: int = 1, *, producer: int = -1) -> bytes:
    """So many records of a producer, in a transaction if it has an id."""
    attributes = 0 if producer < 0 else TRANSACTIONAL
    records = [record(delta) for delta in range(count)]
    return batch(records, first=first, producer=producer, attributes=attributes)


def end(first: int, kind: bytes, *, producer: int) -> bytes:
    """The mark of the end of a transaction."""
    marker = record(0, bytes(6), key=kind)
    return batch([marker], first=first, producer=producer, attributes=TRANSACTIONAL | CONTROL)


def offsets(batches: Sequence[bytes], aborted: Sequence[tuple[int, int]]) -> list[int]:
    """The offsets that a reader of committed records gets of a fetch."""
    whole = [one for each in batches for one in batches_of(each)]
    return [
        row.offset
        for one, gone in RawFetch(whole, aborted, 0, 0).verdicts
        for row in one.records(1_000_000, aborted=gone)
    ]


def test_behind_the_mark_of_an_aborted_transaction_the_next_one_of_its_producer_is_read() -> None:
    log = [
        data(30, producer=7),
        end(31, ABORT, producer=7),
        data(32, producer=7),
        end(33, COMMIT, producer=7),
    ]
    assert offsets(log, [(7, 30)]) == [32]


def test_a_transaction_that_was_committed_before_an_aborted_one_is_read() -> None:
    log = [
        data(30, producer=7),
        end(31, COMMIT, producer=7),
        data(32, producer=7),
        data(33, producer=8),
        end(34, ABORT, producer=7),
    ]
    assert offsets(log, [(7, 32)]) == [30, 33]


def test_what_a_producer_writes_outside_of_transactions_is_read() -> None:
    outside = batch([record(0)], first=31, producer=7)
    assert offsets([data(30, producer=7), outside, end(32, ABORT, producer=7)], [(7, 30)]) == [31]


@dataclass
class Log:
    """A log as a broker writes it. producers: of the transactions that are open, with their first offsets."""

    batches: list[bytes] = field(default_factory=list)
    producers: dict[int, int] = field(default_factory=dict)
    aborted: list[tuple[int, int, int]] = field(default_factory=list)
    """(producer, first offset, last offset) of aborted transactions, in the order of their ends."""
    open_offsets: dict[int, list[int]] = field(default_factory=dict)
    committed: list[int] = field(default_factory=list)
    """Offsets of the records that nobody has aborted."""
    end: int = 0

    def write(self, producer: int, count: int) -> None:
        self.batches.append(data(self.end, count, producer=producer))
        offsets = list(range(self.end, self.end + count))
        if producer < 0:
            self.committed += offsets
        else:
            self.producers.setdefault(producer, self.end)
            self.open_offsets.setdefault(producer, []).extend(offsets)
        self.end += count

    def finish(self, producer: int, kind: bytes) -> None:
        if producer not in self.producers:
            return
        first = self.producers.pop(producer)
        if kind == ABORT:
            self.aborted.append((producer, first, self.end))
            del self.open_offsets[producer]
        else:
            self.committed += self.open_offsets.pop(producer)
        self.batches.append(end(self.end, kind, producer=producer))
        self.end += 1

    def fetch(self, partition: int, offset: int, *, most: int = 1) -> RawFetch:
        """`most` batches from this offset on, up to the first transaction that is open."""
        stable = min(self.producers.values(), default=self.end)
        whole: list[RawBatch] = [one for each in self.batches for one in batches_of(each)]
        ahead = [one for one in whole if one.last >= offset and one.last < stable][:most]
        aborted = [
            (producer, first)
            for producer, first, last in self.aborted
            if ahead and last >= ahead[0].first and first <= ahead[-1].last
        ]
        return RawFetch(ahead, aborted, self.end, stable)


@st.composite
def logs(draw: st.DrawFn) -> Log:
    log = Log()
    for _ in range(draw(st.integers(0, 14))):
        producer = draw(st.sampled_from([-1, 7, 8]))
        if producer >= 0 and draw(st.booleans()):
            log.finish(producer, draw(st.sampled_from([ABORT, COMMIT])))
        else:
            log.write(producer, draw(st.integers(1, 3)))
    return log


@given(logs(), st.integers(1, 20), st.integers(0, 40))
def test_from_each_offset_on_all_committed_records_come_and_no_aborted_one(
    log: Log, together: int, begin: int
) -> None:
    stable = min(log.producers.values(), default=log.end)
    expected = [offset for offset in sorted(log.committed) if begin <= offset < stable]
    kafka = load_settings().kafka
    read: Iterator[int] = (
        row.offset
        for row in raw_records(log, 0, begin, log.end, kafka=kafka, most=together)  # type: ignore[arg-type]
    )
    assert list(read) == expected


@pytest.mark.parametrize(("deltas", "readable"), [([0, 1], True), ([0, 5], False), ([1, 0], False)])
def test_an_order_to_skip_and_the_partitioner_agree_on_what_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, deltas: list[int], readable: bool
) -> None:
    forged = batch([record(delta) for delta in deltas], first=30)
    log = Log([forged], end=32)
    monkeypatch.setattr("topics.batches.bombs.RawReader", lambda *_: _Reader(log))
    why = unreadable_at(load_settings().kafka, "t", 0, 31)
    assert why == (None if readable else (30, 31, "an offset is out of its order or range"))


class _Reader:
    """In place of a reader of batches. log: what it reads."""

    def __init__(self, log: Log) -> None:
        self.fetch = log.fetch

    def __enter__(self) -> _Reader:
        return self

    def __exit__(self, *_: object) -> None: ...
