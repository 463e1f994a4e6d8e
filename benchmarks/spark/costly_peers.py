"""evenflow beside Flink and Spark where each tuple costs work: the same topic, broker, cores and hour, in
turns.

Each system has 8 workers, and each tuple costs its worker 400 us, so perfect balance carries 20,000 tuples a
second. Two cores cannot work for eight. So the cost is waited, in every system (`spark.combine_wait`,
`CostlySum`, `costly_sum`). evenflow and Spark take a second of the stream a micro-batch, and once the whole
topic at once, as their settings come. The speed is the slope between a short and a long topic, each in new
processes. In a smoke run every system but Flink runs once on a topic of a few tuples: Flink would have to be
downloaded.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.measuring.balance import judged_balance
from benchmarks.measuring.cpu import CpuMeter
from benchmarks.measuring.pipelines import WORKERS, measured_broker
from benchmarks.measuring.slopes import Length, slope
from benchmarks.measuring.step_lines import tell
from benchmarks.measuring.stream import KEYS
from benchmarks.measuring.stream import SEED as SEED
from benchmarks.pipeline.rivals.flink import flink_python
from benchmarks.pipeline.rivals.ways import Stage, Way

ID = "service-costly-peers"
WHAT = (
    "a tuple costs 400 us: evenflow beside Flink's keyBy and two-phase, Spark's groupBy, and salting (goal:"
    " 0.9 of perfect balance where hashing is more than three times slower)"
)

COST_US = 400
"""What a tuple costs a worker."""
PERFECT = WORKERS * 1_000_000 / COST_US
"""Tuples per second at perfect balance."""
SPARK = {
    "wiring": "fused",
    "master": f"local[{WORKERS}]",
    "combine_tasks": WORKERS,
    "combine_wait": COST_US,
}
"""evenflow's settings of Spark."""
SKEWS = (1.0, 1.4, 2.0)
SALTS = 8
TUPLES_A_BATCH = 50_000
"""Tuples of a micro-batch of evenflow and of Spark: a second of the stream."""
_BLOCK = 5_000
AT_ONCE = "backlog at once"
"""As the settings of evenflow and of Spark come, a micro-batch takes the whole topic."""
_LENGTHS = (100_000, 600_000)
"""Tuples of the short and of the long topic, that is 2 and 12 s of event time."""
_SMOKE = 2_000
_MIB = 2**20


def run(*, smoke: bool) -> dict[str, object]:
    """A row for each skew and system."""
    skews = SKEWS[-1:] if smoke else SKEWS
    lengths = (_SMOKE,) if smoke else _LENGTHS
    rows: list[dict[str, Any]] = []
    with measured_broker() as (broker, meter):
        for zipf in skews:
            stage = Stage(broker.settings(), meter, zipf=zipf, partitions=WORKERS)
            for tuples in lengths:
                stage.fill(tuples)
            for system, way in ways(stage, with_flink=not smoke).items():
                row = {"zipf": zipf, "system": system, **_figures(way, meter, lengths)}
                tell(system, row)
                rows.append(row)
    return {
        "cost_us": COST_US,
        "keys": KEYS,
        "window": "1s",
        "workers": WORKERS,
        "rows": judged_balance(rows, by="system", ours="evenflow, evenflow", hashing="evenflow, hashing"),
    }


def ways(stage: Stage, *, with_flink: bool) -> dict[str, Way]:
    """How each system runs over a topic of this stage, by its name in the figures."""
    work = {"workers": WORKERS, "cost_us": COST_US}
    # Frames as small as those of a live stream, so that their number bounds the tuples of a micro-batch.
    bounded = SPARK | {"max_frames_per_batch": WORKERS * TUPLES_A_BATCH // _BLOCK}
    ours = partial(stage.evenflow, query={"window": "1s"})
    systems: dict[str, Way] = {
        f"evenflow, {name}": partial(ours, partitioner={"name": name, "block_tuples": _BLOCK}, spark=bounded)
        for name in ("evenflow", "hashing")
    }
    systems[f"evenflow, evenflow, {AT_ONCE}"] = partial(ours, partitioner={"name": "evenflow"}, spark=SPARK)
    if with_flink:
        python = flink_python()
        systems["flink, keyBy"] = partial(stage.flink_costly, python=python, phases="ONE_PHASE", **work)
        systems["flink, two-phase"] = partial(stage.flink_costly, python=python, phases="TWO_PHASE", **work)
    for salts, name in ((1, "spark, groupBy"), (SALTS, f"spark, {SALTS} salts")):
        systems[name] = partial(stage.spark_costly, salts=salts, most=TUPLES_A_BATCH, **work)
    systems[f"spark, {SALTS} salts, {AT_ONCE}"] = partial(stage.spark_costly, salts=SALTS, most=None, **work)
    return systems


def _figures(way: Way, meter: CpuMeter, lengths: tuple[int, ...]) -> dict[str, Any]:
    began = meter.now()
    runs = [way(tuples) for tuples in lengths]
    most = meter.most_held(began, meter.now())
    held = sum(size for label, size in most.items() if label not in ("broker", "bench"))
    return {"most_mib": round(held / _MIB), **against_perfect(runs)}


def against_perfect(runs: list[Length]) -> dict[str, Any]:
    """The slope between the two runs, with its speed over that of perfect balance. The seconds alone if there
    is one run.
    """
    seconds = {"seconds_of_each": [round(length.seconds, 2) for length in runs]}
    if len(runs) == 1:
        return seconds
    figures = slope(*runs)
    return {
        **seconds,
        "tuples_per_second": figures["tuples_per_second"],
        "of_perfect": round(float(str(figures["tuples_per_second"])) / PERFECT, 3),
        "cpu_seconds_per_million_tuples": figures["cpu_seconds_per_million_tuples"],
    }
