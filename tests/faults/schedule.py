"""What a seed draws: the shape of the query, the records of its input, and the faults."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

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
)
"""Faults that lose nothing that Kafka has acknowledged. After them results must be right, and must come."""
DESTROYS = ("truncate routed", "trim routed", "trim input", "expire offsets")
"""Faults that destroy what Kafka has acknowledged. After them results are right, or some part says what is lost."""
_PLACES = (
    ("commit", 14),
    ("commit", 14),
    ("offsets", 14),
    ("flush", 25),
    ("init", 6),
    ("consume", 90),
    ("committed", 12),
    ("join", 5),
    ("watermarks", 8),
    ("abort", 2),
    ("list_offsets", 30),
    ("plan batch", 12),
    ("run task", 30),
    ("write rows", 14),
    ("save state", 20),
    ("commit batch", 12),
    ("*", 500),
)
_DESTRUCTIVE_SHARE = 0.15
_GROWTH_SHARE = 0.1
BASE = 1_700_000_000_000
"""Event time (ms) of time 0 in a schedule: the wall clock when a run begins."""
FUTURE = 10**12
"""An event time (ms) from here on is far ahead of every clock."""
_FILTERED = 0
"""A value that the query's condition drops."""


@dataclass(frozen=True)
class Fault:
    """A fault at the `number`-th call of a kind, "*" for any kind. seconds: how long it lasts. draw: for its own draws."""

    kind: str
    call: str
    number: int
    seconds: float = 0.0
    draw: int = 0

    @property
    def destroys(self) -> bool:
        """Whether it loses what was acknowledged."""
        return self.kind in DESTROYS


@dataclass(frozen=True)
class Written:
    """A record of the input. at: virtual time (s) when it is written. kind: tuple, bad or marker. time: event time (ms)."""

    at: float
    partition: int
    kind: str
    key: str = ""
    time: int = 0
    value: int = 0


@dataclass(frozen=True)
class Shape:
    """What varies between queries. Durations are in ms."""

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


def drawn(seed: int, *, faults: bool = True) -> Schedule:
    """The schedule of this seed."""
    draw = Random(seed)
    shape = _shape(draw)
    destructive = faults and draw.random() < _DESTRUCTIVE_SHARE
    found = tuple(_faults(draw, shape, destructive)) if faults else ()
    # With draws of its own, so that other seeds stay as they were.
    grows = Random(f"growth {seed}")
    if faults and grows.random() < _GROWTH_SHARE:
        at, soon = grows.randint(1, 300), grows.uniform(0.0, 6.0)
        found = (*found, Fault("add partitions", "*", at, soon, grows.randrange(1 << 30)))
    quiet = any(fault.kind == "expire offsets" for fault in found) and draw.random() < 0.6
    if quiet:
        shape = replace(shape, start="latest" if draw.random() < 0.7 else "earliest", filtered=True)
    return Schedule(seed, shape, tuple(_records(draw, shape, quiet)), found)


def _shape(draw: Random) -> Shape:
    slide = 2_000
    workers = draw.choice((1, 2, 2, 3))
    return Shape(
        inputs=draw.choice((1, 2, 2, 3)),
        workers=workers,
        buckets=draw.choice((1, 1, 2)),
        instances=draw.choice((1, 2, 2, 3)),
        window=slide * draw.choice((1, 1, 2)),
        slide=slide,
        disorder=draw.choice((0, 0, 1_000, 3_000)),
        lateness=draw.choice((0, 0, 2_000)),
        idle=draw.choice((None, None, 1_500)),
        filtered=draw.random() < 0.15,
        start=draw.choice(("earliest", "earliest", "earliest", "latest")),
        partitioner=draw.choice(("hashing", "shuffle", "shuffle")),
        wiring=draw.choice(("fused", "fused", "split")),
        sink=draw.choice(("kafka", "kafka", "parquet")),
        block=draw.choice((4, 50, 50)),
        linger=draw.choice((200, 400, 600)),
        commit=draw.choice((300, 1_000, 2_000)),
        frame_bytes=draw.choice((1_000, 1_000_000)),
        ahead=draw.choice((3_600_000, 3_600_000, None)),
    )


def _records(draw: Random, shape: Shape, quiet: bool) -> list[Written]:
    """The input in the order in which it is written, with the end of each partition."""
    count, seconds = draw.randint(6, 30), draw.choice((3.0, 6.0, 10.0))
    begun = 1_000.0 if shape.start == "latest" else 0.0  # counted from when the query has begun
    keys = ["a", "a", "b", "c", "d"][: draw.randint(2, 5)]
    step = draw.choice((150, 400))
    skew = [draw.choice((0, 0, 0, 9_000)) for _ in range(shape.inputs)]
    silent = draw.randrange(shape.inputs) if shape.inputs > 1 and draw.random() < 0.25 else -1
    jitter = draw.choice((0, 1_500, 4_000))
    future = draw.randrange(count) if draw.random() < 0.2 else -1
    records = []
    for number in range(count):
        at = seconds * number / count
        partition = draw.randrange(shape.inputs)
        if partition == silent and at < 0.7 * seconds:
            continue
        time = 1_000 + number * step + skew[partition] - draw.randint(0, jitter)
        if number == future:
            time += FUTURE
        value = draw.randint(1, 2**40)
        if shape.filtered and (draw.random() < 0.3 or (quiet and at < seconds / 2)):
            value = _FILTERED
        kind = "bad" if draw.random() < 0.04 and not quiet else "tuple"
        records.append(Written(begun + at, partition, kind, draw.choice(keys), time, value))
        if draw.random() < 0.01:
            records.append(Written(begun + at, partition, "marker"))
    for partition in range(shape.inputs):
        end = begun + seconds + draw.uniform(0, 2.0)
        records.append(Written(end, partition, "marker"))
        if draw.random() < 0.1:
            records.append(Written(end + 0.01, partition, "marker"))
        if draw.random() < 0.1:
            records.append(Written(end + 0.02, partition, "tuple", "a", 2_000 + count * step, 77))
    return sorted(records, key=lambda record: record.at)


def _faults(draw: Random, shape: Shape, destructive: bool) -> list[Fault]:
    faults = []
    for _ in range(draw.choice((0, 1, 1, 2, 2, 3, 4, 6))):
        kind = draw.choice(MAY_HAPPEN)
        faults.append(_placed(draw, kind))
    if destructive:
        faults.append(_placed(draw, draw.choice(DESTROYS)))
    return faults


def _placed(draw: Random, kind: str) -> Fault:
    call, most = (
        draw.choice(_PLACES) if kind not in ("plan", "rebalance") and kind not in DESTROYS else ("*", 500)
    )
    if kind == "task fails":
        call, most = "run task", 30
    seconds = {
        "crash late": draw.uniform(0.05, 9.0),
        "pause before": draw.choice((0.5, 4.0, 8.0, 15.0, 40.0)),
        "pause after": draw.choice((0.5, 4.0, 8.0, 15.0, 40.0)),
        "request lost": draw.uniform(0.1, 3.0),
        "answer lost": draw.uniform(0.1, 3.0),
        "delay": draw.uniform(0.1, 4.0),
        "expire offsets": draw.uniform(8.0, 12.0),
        "wall step": draw.uniform(-7_200, 7_200),
    }.get(kind, 0.0)
    return Fault(kind, call, draw.randint(1, most), seconds, draw.randrange(1 << 30))
