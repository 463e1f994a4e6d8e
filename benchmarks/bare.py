"""A bare loop as the yardstick of a machine and an hour: the input topic read with the client alone."""

from __future__ import annotations

import time

from benchmarks.cpu import CpuMeter, budget
from benchmarks.telling import step
from evenflow.settings import Settings
from topics.admin import describe
from topics.reader import read_range


def bare_read(settings: Settings, meter: CpuMeter, *, most: int) -> dict[str, object]:
    """Records per second, and CPU seconds per million, of reading (at most) so many records and counting them."""
    topic = settings.topic("input")
    state = describe(settings.kafka, [topic])[topic]
    end = {p: min(last, state.begin[p] + most // len(state.end)) for p, last in state.end.items()}
    with step("bare read of the input topic"):
        began, clock = meter.now(), time.perf_counter()
        records = sum(map(len, read_range(settings.kafka, topic, end=end)))
        seconds = time.perf_counter() - clock
        used = meter.between(began, meter.now())
    return {"records": records, "tuples_per_second": round(records / seconds), **budget(used, tuples=records)}
