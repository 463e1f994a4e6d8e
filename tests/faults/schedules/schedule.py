"""What a run depends on: the shape of the query, the records of its input, and the faults."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

MAY_HAPPEN = (
    "crash before",
    "crash after",
    "crash late",
    "pause before",
    "pause after",
    "request lost",
    "answer lost",
    "delay",
    "rebalance",
    "plan",
    "wall step",
    "task fails",
    "delivery fails",
)
"""Faults that lose nothing that Kafka has acknowledged. After them results must be right, and must come."""
DESTROYS = (
    "truncate routed",
    "trim routed",
    "truncate input",
    "trim input",
    "expire offsets",
    "lose ends",
    "damage state",
    "recreate input",
    "recreate routed",
)
"""Faults that destroy what Kafka has acknowledged. After them results are right, or some part says what is
lost.
"""
DESTROYS_TOO = ("offsets fall back", "truncate partials")
"""More of the kind. They have draws of their own, so that all else stays as it was drawn before there were
any.
"""
BASE = 1_700_000_000_000
"""Event time (ms) of time 0 in a schedule: the wall clock when a run begins."""
FUTURE = 10**12
"""An event time (ms) from here on is far ahead of every clock."""
MOST_KEY, MOST_VALUES, MOST_RESULT = 64, 48, 200
"""Bytes: `query.max_key_bytes`, `max_value_bytes` and `max_result_bytes` of each query."""


@dataclass(frozen=True)
class Fault:
    """A fault at the `number`-th call of a kind, "*" for any kind. seconds: how long it lasts. draw: for
    its own draws.
    """

    kind: str
    call: str
    number: int
    seconds: float = 0.0
    draw: int = 0

    @property
    def destroys(self) -> bool:
        """Whether it loses what was acknowledged."""
        return self.kind in DESTROYS or self.kind in DESTROYS_TOO


@dataclass(frozen=True)
class Written:
    """A record of the input, or a batch of `value` records that cannot be fetched.

    at: virtual time (s) when it is written. kind: tuple, bad, marker or batch. time: event time (ms). text:
    what `collect` reads, if the query has it.
    """

    at: float
    partition: int
    kind: str
    key: str = ""
    time: int = 0
    value: int = 0
    text: str = ""


@dataclass(frozen=True)
class Shape:
    """What varies between queries. Durations are in ms.

    store: whether files lie on a disk or in a store of objects. piece: how often a fetch or a micro-batch
    takes a part of what there is. interval: of micro-batches. counted: whether the query asks for
    the number of tuples. If not, its rows say it all the same. texts: whether the query collects the texts of
    its tuples. alone: an aggregate that the query has instead of all others. verified: whether
    `evenflow verify` is asked in the end. batch, batch_clock: length of a partitioner's micro-batches, 0: it
    routes tuple by tuple, and what ends them. max_skew: None: that of the settings. reduce: how a fused query
    brings partials to their bucket. shared: partitions of the routed topic that the workers share, 0: each
    has one. forwarding: whether the bucket of a key is that of its home.
    """

    inputs: int
    workers: int
    buckets: int
    instances: int
    window: int
    slide: int
    disorder: int
    lateness: int
    idle: int | None
    filtered: bool
    start: str
    partitioner: str
    wiring: str
    sink: str
    block: int
    linger: int
    commit: int
    frame_bytes: int
    ahead: int | None
    store: str = "disk"
    piece: float = 0.3
    interval: int = 1_500
    counted: bool = True
    texts: bool = False
    emit: str = "all"
    alone: str = ""
    verified: bool = False
    batch: int = 0
    batch_clock: str = "event"
    max_skew: int | None = None
    reduce: str = "hash"
    forwarding: str = "off"
    updates: bool = False
    shared: int = 0


@dataclass(frozen=True)
class Schedule:
    """All that a run depends on."""

    seed: int
    shape: Shape
    records: tuple[Written, ...]
    faults: tuple[Fault, ...] = field(default=())

    def without(self, fault: int) -> Schedule:
        """This schedule without one of its faults."""
        return replace(self, faults=(*self.faults[:fault], *self.faults[fault + 1 :]))

    @property
    def destroys(self) -> bool:
        """Whether a fault loses what was acknowledged."""
        return any(fault.destroys for fault in self.faults)
