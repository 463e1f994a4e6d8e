"""What travels between machines with buckets as they are, and with buckets of homes (forwarding).

Two machines with a core each work off a routed topic of nine batches, three batches a trigger. There are as
many buckets as workers. Spark says how many bytes its tasks read from a shuffle on their own machine and on
the other one. The triggers of a turn are those of a query that starts anew, so the first one decides where
the buckets stay. It takes three batches, as the first record of each partition has no tuples.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from benchmarks.measuring.cpu import CpuMeter
from benchmarks.measuring.pipelines import measured_broker
from benchmarks.measuring.spread import spread
from benchmarks.measuring.step_lines import step
from benchmarks.measuring.stream import EVENT_RATE
from benchmarks.measuring.stream import SEED as SEED
from benchmarks.spark.machines import machines
from benchmarks.spark.stages import FOLDER, WORKERS
from benchmarks.spark.triggers import Turn, routed_batches, taking, worked_off
from evenflow.settings import KafkaSettings, Settings
from spark_consumers.session import end_session, make_session

ID = "spark-travel"
WHAT = "megabytes of partials that travel between two machines, with forwarding and without, by partitioner"

_MACHINES = 2
_TAKEN = 3
"""Batches a trigger."""
_WAYS = ("off", "on")
_ENTRANTS: Mapping[str, Mapping[str, Any]] = {
    "hashing": {},
    "evenflow": {},
    "evenflow, tail = hash": {"options": {"tail": "hash"}},
    "dalton": {},
    "d-choices": {},
}


class Travel(NamedTuple):
    """Bytes of shuffles that tasks have read."""

    home: int
    """Written on the machine of the task that read them."""
    away: int
    """Written on another machine."""

    def since(self, earlier: Travel) -> Travel:
        """What was read since then."""
        return Travel(self.home - earlier.home, self.away - earlier.away)


def travelled(spark: SparkSession) -> Travel:
    """All that the session has read so far."""
    context: Any = spark.sparkContext
    java = context._gateway
    quantiles = java.new_array(java.jvm.double, 0)
    stages = context._jsc.sc().statusStore().stageList(None, False, False, quantiles, None)
    each = [stages.apply(number) for number in range(stages.size())]
    return Travel(
        sum(stage.shuffleLocalBytesRead() for stage in each),
        sum(stage.shuffleRemoteBytesRead() for stage in each),
    )


def worked_off_with_travel(
    spark: SparkSession, settings: Settings, folder: str, meter: CpuMeter
) -> tuple[Turn, Travel]:
    """Work off the routed topic once, and say what travelled meanwhile."""
    before = travelled(spark)
    turn = worked_off(spark, settings, folder, meter)
    return turn, travelled(spark).since(before)


def session_on(settings: Settings, count: int) -> SparkSession:
    """A session with an executor on each of so many machines."""
    spark = make_session(settings)
    context: Any = spark.sparkContext
    deadline = time.monotonic() + 60
    while context._jsc.sc().getExecutorMemoryStatus().size() <= count:  # the driver is among them
        if time.monotonic() > deadline:
            end_session(spark)
            raise AssertionError(f"{count} machines had no executors within a minute")
        time.sleep(0.1)
    return spark


def _routed(
    kafka: KafkaSettings, name: str, folder: Path, *, batches: int, master: str, forwarding: str
) -> Settings:
    entrant = name.partition(",")[0]
    how = {"forwarding": forwarding, **_ENTRANTS[name]}
    query = f"bench-travel-{name.replace(', tail = ', '-')}-{forwarding}"
    return routed_batches(
        kafka,
        query,
        entrant,
        folder / query,
        batches=batches,
        how=how,
        master=master,
        executor_memory="1g",
        buckets=WORKERS,
    )


def run(*, smoke: bool) -> dict[str, Any]:
    """A row for each entrant and way: bytes a tuple that were read at home and away. Both ways must write as
    many rows.
    """
    batches, repetitions = (6, 1) if smoke else (9, 3)
    names = ["hashing"] if smoke else list(_ENTRANTS)
    rows: list[dict[str, Any]] = []
    with (
        measured_broker("driver") as (broker, meter),
        TemporaryDirectory(prefix=FOLDER) as folder,
        machines(_MACHINES, Path(folder)) as master,
    ):
        for forwarding in _WAYS:
            queries = {
                name: _routed(
                    broker.settings(),
                    name,
                    Path(folder),
                    batches=batches,
                    master=master,
                    forwarding=forwarding,
                )
                for name in names
            }
            spark = session_on(next(iter(queries.values())), _MACHINES)
            try:
                for name, settings in queries.items():
                    with step(f"{name}, forwarding {forwarding}"):
                        rows.append(
                            {"partitioner": name, "forwarding": forwarding}
                            | _measured(spark, settings, folder, meter, batches, repetitions)
                        )
            finally:
                end_session(spark)
    for name in names:
        counts = {count for row in rows if row["partitioner"] == name for count in row["rows"]}
        if len(counts) > 1:
            raise AssertionError(f"{name}: turns wrote {sorted(counts)} rows")
    return {"batch_tuples": EVENT_RATE, "batches": batches, "machines": _MACHINES, "rows": rows}


def _measured(
    spark: SparkSession, settings: Settings, folder: str, meter: CpuMeter, batches: int, repetitions: int
) -> dict[str, Any]:
    turns = [
        worked_off_with_travel(spark, taking(settings, _TAKEN / batches), folder, meter)
        for _ in range(repetitions + 1)
    ][1:]  # the first one loads code
    tuples = batches * EVENT_RATE
    return {
        "home_bytes": spread([travel.home / tuples for _, travel in turns]),
        "away_bytes": spread([travel.away / tuples for _, travel in turns]),
        "away_share": spread([travel.away / sum(travel) for _, travel in turns]),
        "cpu_s": spread([turn.cpu for turn, _ in turns]),
        "rows": sorted({turn.rows for turn, _ in turns}),
    }
