"""Unit cost of a task of a micro-batch: what Spark's JVM takes to plan, hand out and end a task that does
nothing.
"""

from __future__ import annotations

import os
from statistics import median

from pyspark.sql import SparkSession

from benchmarks.measuring.cpu import CpuMeter

_FEW, _MANY = 50, 1_050


def task_cost(*, smoke: bool) -> dict[str, float]:
    """`task`: CPU seconds of the JVM for a task.

    Driver and executor are one process here, so this is an upper bound of what the driver takes.
    """
    few, many = (2, 12) if smoke else (_FEW, _MANY)
    quiet = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in quiet.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        with CpuMeter() as meter:
            meter.watch(os.getpid(), "client", java="jvm")
            # Not counted: the JVM compiles meanwhile.
            for tasks in (few, many, many):
                _job(spark, tasks)
            seconds = {
                tasks: median(_used(spark, tasks, meter) for _ in range(1 if smoke else 5))
                for tasks in (few, many)
            }
    finally:
        spark.stop()
    return {"task": max(0.0, seconds[many] - seconds[few]) / (many - few)}


def _job(spark: SparkSession, tasks: int) -> None:
    spark.range(0, tasks, 1, tasks).write.format("noop").mode("overwrite").save()


def _used(spark: SparkSession, tasks: int, meter: CpuMeter) -> float:
    began = meter.now()
    _job(spark, tasks)
    return meter.between(began, meter.now()).get("jvm", 0.0)
