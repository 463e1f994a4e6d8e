"""The log of one partition: records, markers of transactions, where it begins and ends, what is still
open.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from confluent_kafka import TIMESTAMP_CREATE_TIME, KafkaError

Headers = list[tuple[str, bytes | str | None]] | None


class Committed(NamedTuple):
    """An offset that a group has committed. written: number of the request, the last one counts."""

    offset: int
    metadata: str
    written: int


@dataclass(eq=False)
class Transaction:
    """One transaction. outcome: None while it is open. logs: where it wrote. offsets: by group."""

    number: int
    outcome: str | None = None
    logs: dict[Log, None] = field(default_factory=dict)
    offsets: dict[str, dict[tuple[str, int], Committed]] = field(default_factory=dict)


@dataclass(frozen=True)
class Batch:
    """A batch that cannot be fetched, by its first and last offset. code: what librdkafka says of it."""

    first: int
    last: int
    code: int


class Entry:
    """A record in a log, or a marker that ends a transaction there. batch: None if it can be fetched."""

    __slots__ = ("batch", "headers", "key", "marker", "offset", "stamp", "transaction", "value")

    def __init__(
        self,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        stamp: int,
        transaction: Transaction | None,
        marker: bool = False,
    ) -> None:
        self.offset = -1
        self.batch: Batch | None = None
        self.key = key
        self.value = value
        self.headers = headers
        self.stamp = stamp
        self.transaction = transaction
        self.marker = marker

    def visible(self) -> bool:
        """Whether a reader of committed records gets it. The reader must not be past the stable end."""
        if self.marker:
            return False
        return self.transaction is None or self.transaction.outcome == "commit"


class Log:
    """begin: offset of the first record that is left. end: offset behind the last."""

    def __init__(self, topic: str, number: int) -> None:
        self.topic = topic
        self.number = number
        self.begin = 0
        self.entries: list[Entry] = []
        self.open: dict[Transaction, int] = {}

    @property
    def end(self) -> int:
        return len(self.entries)

    @property
    def stable_end(self) -> int:
        """Offset of the first record of the oldest open transaction, or the end."""
        return min(self.open.values(), default=self.end)

    def append(self, entry: Entry) -> int:
        """Returns the entry's offset."""
        entry.offset = len(self.entries)
        if entry.transaction is not None:
            if entry.marker:
                self.open.pop(entry.transaction, None)
            else:
                self.open.setdefault(entry.transaction, entry.offset)
                entry.transaction.logs[self] = None
        self.entries.append(entry)
        return entry.offset

    def append_unfetchable(self, records: int, code: int) -> None:
        """A batch of so many records that no client can read."""
        batch = Batch(self.end, self.end + records - 1, code)
        for _ in range(records):
            entry = Entry(None, b"", None, 0, None)
            entry.batch = batch
            self.append(entry)

    def trim(self, begin: int) -> None:
        """Forget the records before this offset, as retention does."""
        self.begin = max(self.begin, min(begin, self.stable_end))

    def truncate(self, end: int) -> int:
        """Lose the records from this offset on, as an election of a replica that lags does.

        Transactions are lost whole: the cut moves down to where none is open. Returns how many
        offsets were lost. Others will get them, so even the loss of markers is one.
        """
        while end > self.begin and (self._inside(end) or self._parts(end)):
            end -= 1
        lost = self.end - end
        del self.entries[end:]
        self.open = {transaction: first for transaction, first in self.open.items() if first < end}
        return lost

    def _parts(self, end: int) -> bool:
        """Whether a batch that cannot be fetched begins before this offset and ends behind it."""
        batch = self.entries[end].batch if end < self.end else None
        return batch is not None and batch.first < end

    def _inside(self, end: int) -> bool:
        before = {entry.transaction for entry in self.entries[self.begin : end] if not entry.marker}
        ended = {entry.transaction for entry in self.entries[self.begin : end] if entry.marker}
        return any(transaction is not None and transaction not in ended for transaction in before)


class Message:
    """What a consumer gets: a record, or an event about its partition."""

    __slots__ = ("_entry", "_error", "_offset", "_partition", "_topic")

    def __init__(self, log: Log, entry: Entry | None, offset: int, error: KafkaError | None = None) -> None:
        self._topic, self._partition = log.topic, log.number
        self._entry = entry
        self._offset = offset
        self._error = error

    def topic(self) -> str:
        return self._topic

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._offset

    def error(self) -> KafkaError | None:
        return self._error

    def key(self) -> bytes | None:
        return None if self._entry is None else self._entry.key

    def value(self) -> bytes | None:
        return None if self._entry is None else self._entry.value

    def headers(self) -> Headers:
        return None if self._entry is None else self._entry.headers

    def timestamp(self) -> tuple[int, int]:
        return TIMESTAMP_CREATE_TIME, -1 if self._entry is None else self._entry.stamp

    def leader_epoch(self) -> int | None:
        return None

    def __len__(self) -> int:
        return len(self.value() or b"")
