"""Orders to go past records that cannot be fetched, as records of `<query>.snapshots`.

An order has the key `skip/<partition>/<offset>`. The owner of the partition answers under the same key with
`/answer` behind it. The topic is compacted, so orders and answers stay and say who skipped what, when and
why. Keys hold a slash, so no partitioner instance has the same key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from evenflow.settings.views import TopicRole
from evenflow.text.strict_json import INT64, NotStrict, read_object
from topics.records import Record

ORDERS: TopicRole = "snapshots"
MOST_SKIPPED = 1 << 31
"""Offsets that one order may skip. A batch has no more, because it counts its records with 32 bits.
Nothing may take time or memory for each of them.
"""
LONGEST_WORDS = 500
"""Characters of a reason, and of an answer."""
_VERSION = 1
_MOST_BYTES = 8_000
_KEY = re.compile(rb"skip/([0-9]{1,9})/([0-9]{1,18})(/answer)?")


@dataclass(frozen=True, kw_only=True)
class SkipOrder:
    """An order to skip offsets of the input topic."""

    partition: int
    """The input partition to which the offsets belong."""
    offset: int
    """The first offset to skip."""
    through: int
    """The last offset to skip."""
    because: str
    """The reason, for the audit log and the report of verify."""
    who: str
    """User and host that gave the order."""
    at: int
    """When the order was given, in ms since 1970."""

    @property
    def key(self) -> bytes:
        """Key of the order's record."""
        return f"skip/{self.partition}/{self.offset}".encode()

    @property
    def count(self) -> int:
        """Number of offsets that are skipped."""
        return self.through - self.offset + 1

    def encode(self) -> bytes:
        """Value of the order's record."""
        return json.dumps({"v": _VERSION, **asdict(self)}).encode()

    @classmethod
    def decode(cls, value: bytes | None) -> SkipOrder:
        """The order in this value. Raises NotStrict."""
        fields = read_object(value, most_bytes=_MOST_BYTES, depth=1)
        fields.only(("v", "partition", "offset", "through", "because", "who", "at"))
        fields.whole("v", _VERSION, _VERSION)
        order = cls(
            partition=fields.whole("partition", 0, 2**31 - 1),
            offset=fields.whole("offset", 0, 10**18 - 1),
            through=fields.whole("through", 0, 10**18 - 1),
            because=fields.text("because", most=LONGEST_WORDS),
            who=fields.text("who", most=LONGEST_WORDS),
            at=fields.whole("at", *INT64),
        )
        if not 0 < order.count <= MOST_SKIPPED:
            raise NotStrict(f"{order.count} offsets are to be skipped, not 1 to {MOST_SKIPPED}")
        return order


@dataclass(frozen=True)
class SkipAnswer:
    """What became of an order."""

    done: bool
    """Whether the order was obeyed."""
    words: str
    """What was done, or why nothing was."""

    def encode(self) -> bytes:
        """Value of the answer's record."""
        return json.dumps({"v": _VERSION, "done": self.done, "words": self.words}).encode()

    @classmethod
    def decode(cls, value: bytes | None) -> SkipAnswer:
        """The answer in this value. Raises NotStrict."""
        fields = read_object(value, most_bytes=_MOST_BYTES, depth=1)
        fields.whole("v", _VERSION, _VERSION)
        return cls(fields.flag("done"), fields.text("words", most=LONGEST_WORDS))


def answer_key(order: SkipOrder) -> bytes:
    """Key of the record that answers this order."""
    return order.key + b"/answer"


def open_orders(records: Iterable[Record]) -> list[SkipOrder]:
    """The orders among these records of `<query>.snapshots` that nobody has answered,
    in the order of the topic.

    What is no order is passed over: anybody may write to that topic, and an order that does not decode is no
    order.
    """
    orders: dict[bytes, SkipOrder] = {}
    for record in records:
        match = _KEY.fullmatch(record.key() or b"")
        if match is None:
            continue
        key = (record.key() or b"").removesuffix(b"/answer")
        # An answer takes the order away, and a later order takes the place of an earlier one.
        orders.pop(key, None)
        if match[3] is None:
            try:
                order = SkipOrder.decode(record.value())
            except NotStrict:
                continue
            if order.key == key:  # the value must be of the offsets that its key names
                orders[key] = order
    return list(orders.values())
