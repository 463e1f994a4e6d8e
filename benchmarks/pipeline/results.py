"""What a result row costs: the same tuples in a short and in a long window, so that only result rows differ.

Every key has one tuple, in the first slide. A few tuples of one key move event time on. Windows of w slides
are then emitted w times with all keys, so rows are many and tuples few. The slope between the two windows is
CPU time per row. It includes emitting the row, shaping it, the way to the producer, and the broker.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measuring.cpu import CpuMeter, budget, occupancy
from benchmarks.measuring.pipelines import kafka_sinks, measured_broker, run_to_end, running_query
from benchmarks.measuring.slopes import Length
from benchmarks.measuring.step_lines import step
from benchmarks.measuring.stream import SEED as SEED
from evenflow.settings import KafkaSettings, Settings
from evenflow.sources.source import SourceOptions, bounded
from producers.replay import replay
from topics.admin import delete_topics, ensure_topics, pipeline_topics

ID = "service-results"
WHAT = "CPU time of a result row by process, for every Kafka sink: a slope between a short and a long window"

_KEYS = 50_000
_SHORT = 10
"""Slides of the short window."""
_LONG = {"kafka": 310}
_LONG_OTHERS = 600
"""Slides of the long window. Rows must be many to stand out against the start of the processes, the cheaper
the more. With 60 slides of JSON rows the start decided whether a row took 0.8 or 1.4 us.
"""
_GOALS = {"kafka": 5.0}
_GOAL_OTHERS = 0.5
_PARTITIONS = 4
_START = 1_700_000_040_000
_SLIDE_MS = 1_000


def run(*, smoke: bool) -> dict[str, object]:
    """CPU seconds per million rows by sink."""
    sinks = kafka_sinks()
    keys = 500 if smoke else _KEYS
    costs: dict[str, Any] = {"keys": keys}
    with measured_broker() as (broker, meter):
        for sink in sinks:
            windows = (_SHORT,) if smoke else (_SHORT, _LONG.get(sink, _LONG_OTHERS))
            lengths = [_length(broker.settings(), meter, sink, slides, keys) for slides in windows]
            costs[sink] = _judged(sink, row_cost(*lengths)) if len(lengths) == 2 else _once(lengths[0])
    return costs


def _once(length: Length) -> dict[str, object]:
    return {"result_rows": length.rows, "seconds": round(length.seconds, 2)}


def row_cost(short: Length, long: Length) -> dict[str, Any]:
    """Rows and CPU time that the long window has more than the short one."""
    assert short.rows is not None
    assert long.rows is not None
    used = {label: max(0.0, value - short.used.get(label, 0.0)) for label, value in long.used.items()}
    rows = long.rows - short.rows
    costs = budget(used, tuples=rows)
    return {
        "result_rows": rows,
        "seconds": round(long.seconds - short.seconds, 2),
        **occupancy(used, long.seconds - short.seconds),
        "cpu_seconds_per_million_rows": costs["cpu_seconds_per_million_tuples"],
    }


def _judged(sink: str, cost: dict[str, Any]) -> dict[str, Any]:
    goal = _GOALS.get(sink, _GOAL_OTHERS)
    return cost | {"goal": goal, "goal_met": cost["cpu_seconds_per_million_rows"]["all"] <= goal}


def _length(kafka: KafkaSettings, meter: CpuMeter, sink: str, slides: int, keys: int) -> Length:
    name = f"rows-{sink}-{slides}"
    parts: dict[str, dict[str, Any]] = {
        "query": {"window": f"{slides}s"},
        "input": {"topic": f"{name}.input", "partitions": _PARTITIONS},
        "results": {"sink": sink},
    }
    with running_query(kafka, meter, name, **parts) as running:
        with step(f"writing {keys:,} keys"):
            _write(running.settings, keys, slides)
        seconds, used = run_to_end(running, f"{sink}: {slides} windows of {keys:,} rows")
        topics = [running.settings.topic(role) for role in ("input", "routed", "results")]
        delete_topics(kafka, topics)
    return Length(keys, seconds, used, rows=keys * slides)


def _write(settings: Settings, keys: int, slides: int) -> None:
    """Write one tuple per key in the first slide, then one tuple per slide and partition, and the end of
    the stream.
    """
    # Each input partition needs a tuple in every slide, or its mark would not move on.
    ticks = np.repeat(np.arange(1, slides + 1), _PARTITIONS)
    table = pa.table(
        {
            "key": [f"k{number:06d}" for number in range(keys)] + ["k000000"] * len(ticks),
            "time": _START + _SLIDE_MS * np.concatenate([np.zeros(keys, np.int64), ticks]),
            "amount": np.arange(keys + len(ticks)) * 1_234_567,
        }
    )
    ensure_topics(settings.kafka, pipeline_topics(settings).values())
    replay(settings, bounded("rows", table, SourceOptions(key="key", time="time")), end=True)
