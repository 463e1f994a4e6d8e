"""Spark's `groupBy` over an input topic of the benchmarks, with a sum of which each tuple costs time: windows
of 1 s.

    python spark_costly.py BOOTSTRAP TOPIC JARS SALTS WORKERS COST_US

JARS are those of the Kafka connector, with commas between. The function does not merge, so Spark sends all
tuples of a window and key to one task (`applyInArrow`). With more than one salt each tuple gets a salt by
chance, the function runs by window, key and salt, and a second `groupBy` adds up its sums: salting as people
write it by hand. A micro-batch has 50,000 records, a second of the stream, as if it came live. Rows are
dropped.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

_CONF = {
    "spark.driver.memory": "4g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    # Spark would else take small partitions together, and then a task waits for several.
    "spark.sql.adaptive.enabled": "false",
}
_AT_ONCE_US = 20_000


def costly_sum(cost_us: int) -> Callable[[pa.Table], pa.Table]:
    """The function of a group. The time that tuples cost is waited, 20 ms at once, since a timer is too
    coarse for single waits of a few hundred microseconds.
    """
    owed_us = 0

    def add_up(group: pa.Table) -> pa.Table:
        nonlocal owed_us
        owed_us += cost_us * group.num_rows
        if owed_us >= _AT_ONCE_US:
            time.sleep(owed_us / 1e6)
            owed_us = 0
        total = pa.array([pc.sum(group["amount"])], pa.int64())
        return pa.table({"start": group["start"][:1], "key": group["key"][:1], "total": total})

    return add_up


def totals(tuples: DataFrame, *, salts: int, cost_us: int) -> DataFrame:
    """Sum by window and key."""
    salted = tuples.withColumn("salt", F.floor(F.rand(seed=1) * salts))
    by_salt = salted.groupBy("start", "key", "salt").applyInArrow(
        costly_sum(cost_us), "start long, key string, total long"
    )
    return by_salt if salts == 1 else by_salt.groupBy("start", "key").agg(F.sum("total"))


def main() -> None:
    """Run the query once over the whole topic and print its seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    for word in ("bootstrap", "topic", "jars"):
        parser.add_argument(word)
    for word in ("salts", "workers", "cost_us"):
        parser.add_argument(word, type=int)
    options = parser.parse_args()
    conf = {
        "spark.master": f"local[{options.workers}]",
        "spark.sql.shuffle.partitions": str(options.workers),
        "spark.jars": options.jars,
    }
    session = SparkSession.builder.config(map=_CONF | conf).getOrCreate()
    records = (
        session.readStream.format("kafka")
        .option("kafka.bootstrap.servers", options.bootstrap)
        .option("subscribe", options.topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 50_000)
        .load()
    )
    form = "key string, amount long, time long"
    tuples = records.select(F.from_json(F.col("value").cast("string"), form).alias("tuple")).select("tuple.*")
    # The mark of the end of the stream is a record without a key.
    starts = tuples.where("key is not null").withColumn("start", F.expr("time - time % 1000"))

    def drop(batch: DataFrame, _: int) -> None:
        totals(batch, salts=options.salts, cost_us=options.cost_us).write.format("noop").mode("append").save()

    with tempfile.TemporaryDirectory() as checkpoint:
        began = time.monotonic()
        query = (
            starts.writeStream.foreachBatch(drop)
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        print(json.dumps({"seconds": round(time.monotonic() - began, 2)}))
    session.stop()


if __name__ == "__main__":
    main()
