"""evenflow beside Flink SQL, Spark's own windows and a plain program: the same topic, broker, cores and hour,
in turns.

Every system runs over a short and a long topic, each time in new processes. The speed is the slope between
the two. evenflow writes its results to Kafka, and the others drop theirs. Spark's own windows are so much
slower that their topics are shorter. In a smoke run every system runs once on one short topic. Flink is left
out then, because it would have to be downloaded.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.measuring.cpu import occupancy, total
from benchmarks.measuring.pipelines import WORKERS, measured_broker
from benchmarks.measuring.slopes import LENGTHS, Length, slope
from benchmarks.measuring.step_lines import tell
from benchmarks.measuring.stream import KEYS
from benchmarks.measuring.stream import SEED as SEED
from benchmarks.pipeline.rivals.flink import flink_python
from benchmarks.pipeline.rivals.ways import ZIPF, Stage, Way
from spark_consumers.sinks import SINKS

ID = "service-peers"
WHAT = (
    "evenflow (every Kafka sink) beside Flink 2.3 SQL, Spark's own windows and a plain program: slopes, CPU"
    " time, ratios"
)

_ROWS_SINK = "kafka"
_GOALS = {_ROWS_SINK: 3.0}
_GOAL_FRAMES = 4.0
_SLOW_LENGTHS = (100_000, 300_000)
_SMOKE = 5_000


def run(*, smoke: bool) -> dict[str, object]:
    """Slopes of all systems, and the ratios of evenflow to the others."""
    sinks = [name for name, sink in SINKS.items() if "results" in sink.topics]
    python = None if smoke else flink_python()
    with measured_broker() as (broker, meter):
        stage = Stage(broker.settings(), meter)
        ways: dict[str, Way] = {name_of(sink): partial(stage.evenflow, sink=sink) for sink in sinks}
        ways["plain_program"] = stage.plain_program
        if python is not None:
            ways["flink"] = partial(stage.flink, python=python)
        if smoke:
            figures = _once(stage, ways | {"spark_windows": stage.spark_windows})
        else:
            figures = _slopes(stage, ways, LENGTHS)
            # Spark's own windows are so much slower that they get shorter streams.
            figures |= _slopes(stage, {"spark_windows": stage.spark_windows}, _SLOW_LENGTHS)
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


def _slopes(stage: Stage, ways: dict[str, Way], lengths: tuple[int, int]) -> dict[str, Any]:
    # The topics are filled before anything is measured, so that no way pays for it.
    for tuples in lengths:
        stage.fill(tuples)
    runs: dict[str, list[Length]] = {name: [] for name in ways}
    for tuples in lengths:
        for name, way in ways.items():
            runs[name].append(way(tuples))
            tell(f"{name} over {tuples:,} tuples", _length_figures(runs[name][-1]))
    return {
        name: {"seconds_of_the_short_one": round(short.seconds, 2), **slope(short, long)}
        for name, (short, long) in runs.items()
    }


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
            figures: dict[str, Any] = {"speed": round(speed, 2), "cpu": round(_cpu(theirs) / _cpu(ours), 2)}
            if peer == "flink":
                goal = _GOALS.get(sink, _GOAL_FRAMES)
                figures |= {"goal_speed": goal, "goal_met": speed >= goal}
            result[f"{name_of(sink)}_to_{peer}"] = figures
    return result


def _cpu(figures: dict[str, Any]) -> float:
    return float(figures["cpu_seconds_per_million_tuples"]["all"])
