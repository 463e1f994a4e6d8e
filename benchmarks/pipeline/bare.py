"""A bare loop that reads the input topic with the client alone. It is the yardstick of a machine and an
hour.
"""

from __future__ import annotations

import time

from benchmarks.measuring.cpu import CpuMeter, budget
from benchmarks.measuring.step_lines import step
from evenflow.settings import Settings
from topics.admin import describe
from topics.reader import read_range


def bare_read(settings: Settings, meter: CpuMeter, *, most: int) -> dict[str, object]:
    """Reads and counts at most `most` records of the input topic. Records per second, and CPU seconds per
    million.
    """
    topic = settings.topic("input")
    state = describe(settings.kafka, [topic])[topic]
    end = {p: min(last, state.begin[p] + most // len(state.end)) for p, last in state.end.items()}
    with step("bare read of the input topic"):
        began, clock = meter.now(), time.perf_counter()
        records = sum(map(len, read_range(settings.kafka, topic, end=end)))
        seconds = time.perf_counter() - clock
        used = meter.between(began, meter.now())
    return {"records": records, "tuples_per_second": round(records / seconds), **budget(used, tuples=records)}
