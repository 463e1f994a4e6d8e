"""evenflow beside Flink SQL, Spark's own windows and a plain program: the same topic, broker, cores and hour,
in turns.

Every system runs over a short and a long topic, each time in new processes. The speed is the slope between
the two. evenflow writes its results to Kafka, and the others drop theirs. `compilers_share_of_jvm` says how
much of the slope is work of a JVM's compilers. evenflow works a topic off several times as fast as Flink
does, so its topics are longer. Spark's own windows are so much slower that they have topics of their own,
too. These are made longer until a run lasts a minute, since the slope of short runs is noise. In a smoke run
every system runs once on one short topic. Flink is left out then, because it would have to be downloaded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any

from benchmarks.measuring.cpu import occupancy, total
from benchmarks.measuring.pipelines import WORKERS, kafka_sinks, measured_broker
from benchmarks.measuring.slopes import Length, slope
from benchmarks.measuring.step_lines import tell
from benchmarks.measuring.stream import KEYS
from benchmarks.measuring.stream import SEED as SEED
from benchmarks.pipeline.rivals.flink import flink_python
from benchmarks.pipeline.rivals.ways import ZIPF, Stage, Way

ID = "service-peers"
WHAT = (
    "evenflow (Kafka sinks but Avro) beside Flink 2.3 SQL, Spark's windows and a plain program: slopes, CPU"
    " time, ratios"
)

_ROWS_SINK = "kafka"
_GOALS = {_ROWS_SINK: 4.0}
"""How many times as fast as Flink evenflow shall be, by sink."""
_GOAL_FRAMES = 5.0
"""The same for every other sink."""
_GOAL_CPU = 5.0
"""How many times evenflow's CPU time Flink shall need."""
_LENGTHS = (8_000_000, 24_000_000)
"""Tuples of the short and of the long topic of Flink and of the plain program."""
_LENGTHS_OF_EVENFLOW = (24_000_000, 72_000_000)
"""The same of evenflow, whose slope over 8 and 24 million tuples was ten seconds long."""
_SLOW_FIRST = 1_000_000
"""Tuples of the first topic of Spark's own windows."""
_LASTING = 60.0
"""Seconds that the short run of Spark's own windows lasts at least."""
_LONGER = 3
"""Length of a long topic over that of the short one."""
_SMOKE = 5_000


def run(*, smoke: bool) -> dict[str, object]:
    """Slopes of all systems, and the ratios of evenflow to the others."""
    sinks = kafka_sinks()
    python = None if smoke else flink_python()
    with measured_broker() as (broker, meter):
        stage = Stage(broker.settings(), meter)
        ours: dict[str, Way] = {
            name_of(sink): partial(stage.evenflow, results={"sink": sink}) for sink in sinks
        }
        others: dict[str, Way] = {"plain_program": stage.plain_program}
        if python is not None:
            others["flink"] = partial(stage.flink, python=python)
        if smoke:
            figures = _once(stage, ours | others | {"spark_windows": stage.spark_windows})
        else:
            lengths = dict.fromkeys(ours, _LENGTHS_OF_EVENFLOW) | dict.fromkeys(others, _LENGTHS)
            figures = slopes(ours | others, lengths, stage.fill)
            figures["spark_windows"] = _slope_of(*lasting(stage.spark_windows, stage.fill))
    return {"keys": KEYS, "zipf": ZIPF, "window": "60s", "slide": "1s", "workers": WORKERS, **figures} | (
        {} if smoke else {"ratios": ratios(figures, sinks)}
    )


def name_of(sink: str) -> str:
    """The name of evenflow with this sink in the figures."""
    return f"evenflow_{sink}"


def _once(stage: Stage, ways: dict[str, Way]) -> dict[str, Any]:
    stage.fill(_SMOKE)
    return {name: _length_figures(way(_SMOKE)) for name, way in ways.items()}


def _length_figures(length: Length) -> dict[str, object]:
    return {
        "tuples": length.tuples,
        "seconds": round(length.seconds, 2),
        "result_records": length.rows,
        "cpu_seconds": round(total(length.used), 1),
        **occupancy(length.used, length.seconds),
    }


def slopes(
    ways: dict[str, Way], lengths: dict[str, tuple[int, int]], fill: Callable[[int], None]
) -> dict[str, Any]:
    """Figures of each way between its two lengths. All run over their short one first.

    fill: writes a topic of so many tuples.
    """
    # The topics are filled before anything is measured, so that no way pays for it.
    for tuples in sorted(set(chain.from_iterable(lengths.values()))):
        fill(tuples)
    runs: dict[str, list[Length]] = {name: [] for name in ways}
    for turn in (0, 1):
        for name, way in ways.items():
            runs[name].append(way(lengths[name][turn]))
            tell(f"{name} over {lengths[name][turn]:,} tuples", _length_figures(runs[name][-1]))
    return {name: _slope_of(short, long) for name, (short, long) in runs.items()}


def _slope_of(short: Length, long: Length) -> dict[str, object]:
    return {"seconds_of_the_short_one": round(short.seconds, 2), **slope(short, long)}


def lasting(
    way: Way, fill: Callable[[int], None], *, first: int = _SLOW_FIRST, seconds: float = _LASTING
) -> tuple[Length, Length]:
    """A run over a topic so long that it lasts this many seconds, and one over a longer topic.

    fill: writes a topic of so many tuples. first: tuples of the first topic. Each next one is twice as long.
    """
    tuples = first
    while True:
        fill(tuples)
        short = way(tuples)
        tell(f"a slow one over {tuples:,} tuples", _length_figures(short))
        if short.seconds >= seconds:
            break
        tuples *= 2
    fill(_LONGER * tuples)
    return short, way(_LONGER * tuples)


def ratios(slopes: dict[str, Any], sinks: list[str]) -> dict[str, Any]:
    """Speed of evenflow over the others', CPU time of the others over evenflow's, and the goals.

    Above 1 evenflow is faster, or needs less CPU time.
    """
    result: dict[str, Any] = {}
    for sink in sinks:
        ours = slopes[name_of(sink)]
        for peer in ("flink", "spark_windows", "plain_program"):
            theirs = slopes[peer]
            speed = ours["tuples_per_second"] / theirs["tuples_per_second"]
            cpu = _cpu(theirs) / _cpu(ours)
            figures: dict[str, Any] = {"speed": round(speed, 2), "cpu": round(cpu, 2)}
            if peer == "flink":
                goal = _GOALS.get(sink, _GOAL_FRAMES)
                figures |= {"goal_speed": goal, "goal_met": speed >= goal}
                figures |= {"goal_cpu": _GOAL_CPU, "goal_cpu_met": cpu >= _GOAL_CPU}
            result[f"{name_of(sink)}_to_{peer}"] = figures
    return result


def _cpu(figures: dict[str, Any]) -> float:
    return float(figures["cpu_seconds_per_million_tuples"]["all"])
