"""The coordinator of transactions: producers by transactional id, their epochs, and what ends a
transaction.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError

from tests.faults.model.errors import Refused
from tests.faults.model.log import Committed, Entry, Log, Transaction

if TYPE_CHECKING:
    from tests.faults.model.broker import Broker

_SLOWEST_MARKER = 0.03
"""Seconds until the markers of a transaction that was ended are written."""
_CHECK_EVERY = 1.0
"""Seconds that a transaction may last beyond its timeout."""
_REMEMBERED = 5
"""Batches of a client whose numbers a broker remembers, by log."""


def _last_numbers() -> deque[int]:
    return deque(maxlen=_REMEMBERED)


@dataclass
class Identity:
    """What the brokers know of a transactional id.

    to_write: markers that are not written yet. numbers: of the last records of its client, by log.
    """

    name: str
    epoch: int = -1
    timeout: float = 60.0
    transaction: Transaction | None = None
    to_write: int = 0
    numbers: defaultdict[Log, deque[int]] = field(default_factory=lambda: defaultdict(_last_numbers))


class Transactions:
    """Transactional ids and their transactions."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._identities: dict[str, Identity] = {}
        self._count = 0
        self._written = 0

    def busy(self, name: str) -> bool:
        """Whether a transaction of this id has ended and its markers are not all written."""
        known = self._identities.get(name)
        return known is not None and known.to_write > 0

    def take(self, name: str, timeout: float) -> int | None:
        """A new epoch of this id, which fences every older one. None as long as a transaction is being
        ended.
        """
        identity = self._identities.setdefault(name, Identity(name))
        if identity.to_write:
            return None
        identity.timeout = timeout
        if identity.transaction is not None:
            identity.epoch += 1
            self._end(identity, "abort")
            return None
        identity.epoch += 1
        identity.numbers.clear()
        return identity.epoch

    def write(self, name: str, epoch: int, log: Log, entry: Entry, number: int) -> None:
        """Append a record in the open transaction of this id.

        number: of the record, by its client. A record with the number of one that is there is taken for a
        repetition: it is acknowledged, and not written. A gap, which a broker refuses, is not modelled.
        """
        entry.transaction = transaction = self._ongoing(name, epoch)
        numbers = self._identities[name].numbers[log]
        if number in numbers:
            transaction.logs[log] = None
            return
        numbers.append(number)
        log.append(entry)

    def offsets(
        self, name: str, epoch: int, group: str, offsets: dict[tuple[str, int], tuple[int, str]]
    ) -> None:
        """Commit these offsets of a group with the open transaction."""
        transaction = self._ongoing(name, epoch)
        mine = transaction.offsets.setdefault(group, {})
        for part, (offset, metadata) in offsets.items():
            self._written += 1
            mine[part] = Committed(offset, metadata, self._written)

    def end(self, name: str, epoch: int, outcome: str) -> None:
        """End the open transaction. The markers follow a little later."""
        identity = self._checked(name, epoch)
        if identity.transaction is not None:
            self._end(identity, outcome)

    def pending(self, group: str, parts: set[tuple[str, int]]) -> bool:
        """Whether a transaction that is not yet over may change these offsets."""
        every = [*(i.transaction for i in self._identities.values()), *self._ending]
        return any(t is not None and parts & set(t.offsets.get(group, ())) for t in every)

    @property
    def _ending(self) -> list[Transaction]:
        return self._broker.ending

    def _checked(self, name: str, epoch: int) -> Identity:
        identity = self._identities[name]
        if epoch != identity.epoch:
            raise Refused(KafkaError.INVALID_PRODUCER_EPOCH)
        return identity

    def _ongoing(self, name: str, epoch: int) -> Transaction:
        identity = self._checked(name, epoch)
        if identity.transaction is None:
            self._count += 1
            mine = identity.transaction = Transaction(self._count)
            late = identity.timeout + self._broker.world.random.uniform(0, _CHECK_EVERY)
            self._broker.world.at(late, lambda: self._timed_out(identity, mine))
        return identity.transaction

    def _timed_out(self, identity: Identity, transaction: Transaction) -> None:
        if identity.transaction is transaction:
            self._broker.note("transaction", f"of {identity.name} timed out")
            identity.epoch += 1
            self._end(identity, "abort")

    def _end(self, identity: Identity, outcome: str) -> None:
        transaction, identity.transaction = identity.transaction, None
        assert transaction is not None
        transaction.outcome = outcome
        identity.to_write = len(transaction.logs) + 1
        self._broker.ending.append(transaction)
        world = self._broker.world
        self._broker.note(outcome, f"{identity.name} #{transaction.number} {_shown(transaction)}")

        def written() -> None:
            identity.to_write -= 1

        def offsets() -> None:
            if outcome == "commit":
                for group, result in transaction.offsets.items():
                    self._broker.groups.of(group).take(result)
            self._broker.ending.remove(transaction)
            written()

        for log in transaction.logs:
            world.at(
                world.random.uniform(0, _SLOWEST_MARKER),
                lambda log=log: (_marker(log, transaction), written()),
            )
        world.at(world.random.uniform(0, _SLOWEST_MARKER), offsets)


def _marker(log: Log, transaction: Transaction) -> None:
    if transaction in log.open:  # not so if the log was truncated
        log.append(Entry(None, None, None, -1, transaction, marker=True))


def _shown(transaction: Transaction) -> str:
    wrote = " ".join(sorted(f"{log.topic}[{log.number}]" for log in transaction.logs))
    offsets = " ".join(
        f"{topic}[{part}]->{offset}"
        for result in transaction.offsets.values()
        for (topic, part), (offset, *_) in sorted(result.items())
    )
    return f"wrote {wrote or 'nothing'}, offsets {offsets or 'none'}"
