"""What a seed draws: the shape of the query, the records of its input, the faults, and sometimes a focus."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.faults.schedules.focus import FOCUSES, MORE_FOCUSES, Focus
from tests.faults.schedules.schedule import (
    DESTROYS,
    DESTROYS_TOO,
    FUTURE,
    MAY_HAPPEN,
    MOST_KEY,
    MOST_VALUES,
    Fault,
    Schedule,
    Shape,
    Written,
)

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
_PLACED = {"task fails": ("run task", 30), "delivery fails": ("offsets", 14)}
_FOCUSED_SHARE = 0.4
_GROWTH_SHARE = 0.1
_MORE_SHARE = 0.04
"""Of all seeds have a focus of `MORE_FOCUSES`, and of the others have a fault of `DESTROYS_TOO`."""
_EXCHANGE_SHARE = 0.08
"""Of the runs that do not route in micro-batches have instances that tell each other."""
_FORWARDING_SHARE = 0.15
"""Of all runs have the bucket of a key go by its home."""
_AVRO_SHARE = 0.15
"""Of the runs that write JSON rows otherwise."""
_FILTERED = 0
"""A value that the query's condition drops."""


def drawn(seed: int, *, focus: str | None = None) -> Schedule:
    """The schedule of this seed. focus: one of `FOCUSES`. None: the seed draws one, or none."""
    draw = Random(seed)
    if focus is None and draw.random() < _FOCUSED_SHARE:
        focus = draw.choice([name for name in FOCUSES if name not in MORE_FOCUSES])
        more = Random(f"focus {seed}")
        if more.random() < _MORE_SHARE / _FOCUSED_SHARE:
            focus = more.choice(MORE_FOCUSES)
    return _anywhere(seed, draw) if focus is None else _focused(seed, draw, FOCUSES[focus])


def _anywhere(seed: int, draw: Random) -> Schedule:
    shape = _shape(draw)
    result = (*_faults(draw, draw.random() < _DESTRUCTIVE_SHARE), *_growth(draw), *_destroyed_too(seed))
    quiet = any(fault.kind == "expire offsets" for fault in result) and draw.random() < 0.6
    if quiet:
        shape = replace(shape, start="latest" if draw.random() < 0.7 else "earliest", filtered=True)
    focus = Focus(quiet=quiet, texts=0.05, batches=0.05, emits=0.1, cut=0.2, limits=0.1)
    return _with_more(Schedule(seed, shape, tuple(_records(draw, shape, focus)), result), focus)


def _focused(seed: int, draw: Random, focus: Focus) -> Schedule:
    chosen = {name: draw.choice(choices) for name, choices in focus.shape.items()}
    shape = replace(_shape(draw), **chosen)
    result = tuple(fault for aim in focus.aims for fault in aim.drawn(draw))
    records = tuple(_records(draw, shape, focus))
    result = result if _grows(result) else (*result, *_growth(draw))
    return _with_more(Schedule(seed, shape, records, result), focus)


def _with_more(schedule: Schedule, focus: Focus) -> Schedule:
    """The schedule with texts, with batches that cannot be fetched, and with more of the kind, if it gets
    them.

    These have draws of their own, so that all else stays as it was drawn before there were any.
    """
    draw = Random(f"more {schedule.seed}")
    if draw.random() < focus.texts:
        records = tuple(_with_text(draw, record) for record in schedule.records)
        schedule = replace(schedule, shape=replace(schedule.shape, texts=True), records=records)
    if draw.random() < focus.batches:
        tuples = [record for record in schedule.records if record.kind == "tuple"]
        batches = [
            replace(record, kind="batch", value=draw.randint(1, 3))
            for record in draw.choices(tuples, k=draw.choice((1, 1, 2)))
        ]
        records = tuple(sorted((*schedule.records, *batches), key=lambda record: record.at))
        schedule = replace(schedule, records=records)
    shape = schedule.shape
    if shape.sink == "parquet" and any(fault.kind == "truncate input" for fault in schedule.faults):
        shape = replace(shape, sink="kafka")  # `verify` reads no model of files
        schedule = replace(schedule, shape=shape)
    if draw.random() < focus.emits:
        sink = draw.choice(("kafka", "frames", "frames")) if shape.sink == "kafka" else shape.sink
        emit = draw.choice(("all", "all", "changes", "changes", "top(1, s)", "top(2, s)"))
        schedule = replace(schedule, shape=replace(shape, emit=emit, sink=sink))
        if emit == "all":
            later = replace(schedule.shape, updates=True, lateness=draw.choice((2_000, 5_000)))
            schedule = replace(schedule, shape=later)
    if draw.random() < focus.cut:
        schedule = replace(schedule, shape=_in_batches(draw, schedule.shape))
    # Whoever routes in micro-batches tells the reduce tasks which keys are split. Without that every key may
    # be.
    if schedule.shape.wiring == "fused" and draw.random() < (0.5 if schedule.shape.batch else 0.1):
        schedule = replace(schedule, shape=replace(schedule.shape, reduce="prompt"))
    shape = schedule.shape
    if (
        shape.sink == "kafka"
        and not shape.verified
        and Random(f"avro {schedule.seed}").random() < _AVRO_SHARE
    ):
        schedule = replace(schedule, shape=replace(shape, sink="avro"))
    schedule = _with_exchange(schedule)
    if Random(f"forwarding {schedule.seed}").random() < _FORWARDING_SHARE:
        schedule = replace(schedule, shape=replace(schedule.shape, forwarding="on"))
    draw = Random(f"limits {schedule.seed}")
    if draw.random() < focus.limits:
        at, seconds = draw.randint(60, 500), draw.uniform(0.0, 4.0)
        changed = Fault("change limits", "*", at, seconds, draw.randrange(1 << 30))
        schedule = replace(schedule, faults=(*schedule.faults, changed))
    return schedule


def _with_exchange(schedule: Schedule) -> Schedule:
    """The schedule with partitioners that tell each other, if it gets them. Not if a focus chose its
    partitioner.
    """
    draw, shape = Random(f"exchange {schedule.seed}"), schedule.shape
    if shape.batch or draw.random() >= _EXCHANGE_SHARE:
        return schedule
    told = replace(shape, partitioner=draw.choice(("evenflow", "dalton-cooperative")))
    return replace(schedule, shape=told)


def _in_batches(draw: Random, shape: Shape) -> Shape:
    """A shape whose partitioners route in micro-batches."""
    return replace(
        shape,
        partitioner=draw.choice(("prompt", "partly", "time-based", "dalton-batch", "shuffle")),
        batch=draw.choice((500, 1_000, 2_000, 2_000)),
        batch_clock=draw.choice(("event", "event", "processing")),
    )


def _with_text(draw: Random, record: Written) -> Written:
    if record.kind != "tuple":
        return record
    length = draw.choice((0, 3, 12, 12, MOST_VALUES, MOST_VALUES + 1))
    text = "".join(draw.choice("xyz") for _ in range(length))
    key = record.key * (MOST_KEY + draw.randint(0, 1)) if draw.random() < 0.1 else record.key
    return replace(record, text=text, key=key)


def _growth(draw: Random) -> tuple[Fault, ...]:
    """Partitions that are added to the input of some runs."""
    if draw.random() >= _GROWTH_SHARE:
        return ()
    at, soon = draw.randint(1, 300), draw.uniform(0.0, 6.0)
    return (Fault("add partitions", "*", at, soon, draw.randrange(1 << 30)),)


def _grows(faults: tuple[Fault, ...]) -> bool:
    return any(fault.kind == "add partitions" for fault in faults)


def _shape(draw: Random) -> Shape:
    slide = 2_000
    workers = draw.choice((1, 2, 2, 3))
    apart = Random()
    apart.setstate(draw.getstate())  # so that what is drawn below stays what it was before workers shared
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
        store=draw.choice(("disk", "objects")),
        counted=draw.random() < 0.7,
        shared=apart.choice((0, 0, 1, 2)),
    )


def _records(draw: Random, shape: Shape, focus: Focus) -> list[Written]:
    """The input in the order in which it is written, with the end of each partition."""
    count, seconds = draw.randint(6, 30), draw.choice(focus.seconds)
    begun = 1_000.0 if shape.start == "latest" else 0.0  # counted from when the query has begun
    keys = ["a", "a", "b", "c", "d"][: draw.randint(2, 5)]
    step = draw.choice((150, 400))
    skew = [draw.choice((0, 0, 0, 9_000)) for _ in range(shape.inputs)]
    silent = draw.randrange(shape.inputs) if shape.inputs > 1 and draw.random() < focus.silent else -1
    jitter = draw.choice((0, 1_500, 4_000))
    future = draw.randrange(count) if draw.random() < focus.future else -1
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
        if shape.filtered and (draw.random() < 0.3 or (focus.quiet and at < seconds / 2)):
            value = _FILTERED
        kind = "bad" if draw.random() < 0.04 and not focus.quiet else "tuple"
        records.append(Written(begun + at, partition, kind, draw.choice(keys), time, value))
        if draw.random() < 0.01:
            records.append(Written(begun + at, partition, "marker"))
    for partition in range(shape.inputs):
        end = begun + seconds + draw.uniform(*focus.ends)
        records.append(Written(end, partition, "marker"))
        if draw.random() < 0.1:
            records.append(Written(end + 0.01, partition, "marker"))
        if draw.random() < 0.1:
            records.append(Written(end + 0.02, partition, "tuple", "a", 2_000 + count * step, 77))
    return sorted(records, key=lambda record: record.at)


def _faults(draw: Random, destructive: bool) -> list[Fault]:
    faults = []
    for _ in range(draw.choice((0, 1, 1, 2, 2, 3, 4, 6))):
        kind = draw.choice(MAY_HAPPEN)
        faults.append(_placed(draw, kind))
    if destructive:
        faults.append(_placed(draw, draw.choice(DESTROYS)))
    return faults


def _destroyed_too(seed: int) -> tuple[Fault, ...]:
    draw = Random(f"destroys {seed}")
    if draw.random() >= _MORE_SHARE:
        return ()
    return (_placed(draw, draw.choice(DESTROYS_TOO)),)


def _placed(draw: Random, kind: str) -> Fault:
    destroys = kind in DESTROYS or kind in DESTROYS_TOO
    call, most = draw.choice(_PLACES) if kind not in ("plan", "rebalance") and not destroys else ("*", 500)
    if kind in _PLACED:
        call, most = _PLACED[kind]
    seconds = {
        "crash late": draw.uniform(0.05, 9.0),
        "pause before": draw.choice((0.5, 4.0, 8.0, 15.0, 40.0)),
        "pause after": draw.choice((0.5, 4.0, 8.0, 15.0, 40.0)),
        "request lost": draw.uniform(0.1, 3.0),
        "answer lost": draw.uniform(0.1, 3.0),
        "delay": draw.uniform(0.1, 4.0),
        "expire offsets": draw.uniform(8.0, 12.0),
        "lose ends": draw.uniform(0.0, 0.3),
        "offsets fall back": 0.2,
        "wall step": draw.uniform(-7_200, 7_200),
    }.get(kind, 0.0)
    return Fault(kind, call, draw.randint(1, most), seconds, draw.randrange(1 << 30))
