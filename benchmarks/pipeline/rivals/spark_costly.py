"""Spark over an input topic of the benchmarks, with a sum of which each tuple costs time: windows of 1 s.

    python spark_costly.py BOOTSTRAP TOPIC JARS SALTS WORKERS COST_US [--most RECORDS] [--results TOPIC]

JARS are those of the Kafka connector, with commas between. A micro-batch has at most so many records, or all
that are there.

Without --results the topic is read to its end, and rows are dropped. The function does not merge, so Spark
sends all tuples of a window and key to one task (`applyInArrow`). With more than one salt each tuple gets a
salt by chance, the function runs by window, key and salt, and a second `groupBy` adds up its sums: salting as
people write it by hand. No state is kept between micro-batches.

With --results the program does not end. Tuples go to the worker of their key, or of key and salt
(`repartition`), where the function takes them (`mapInArrow`). Spark's own streaming windows add up what it
returns. A window's rows go to that topic as soon as the watermark has passed its end. The watermark is the
latest time of an earlier micro-batch. A micro-batch begins when the one before has ended.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

_STATE = "spark.sql.streaming.stateStore"
_CONF = {
    # What evenflow sets for itself: memory, garbage collector, and the faster files of a local checkpoint.
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager"
    ),
    f"{_STATE}.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    f"{_STATE}.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    # Spark would else take small partitions together, and then a task waits for several.
    "spark.sql.adaptive.enabled": "false",
}
_AT_ONCE_US = 20_000
_FORM = "key string, amount long, time long"


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


def costly_rows(cost_us: int) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    """The function of a stream of tuples. It waits as that of a group does."""
    add_up = costly_sum(cost_us)

    def work(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for batch in batches:
            add_up(pa.table({"start": batch["time"], "key": batch["key"], "amount": batch["amount"]}))
            yield batch

    return work


def window_rows(tuples: DataFrame, *, salts: int, workers: int, cost_us: int) -> DataFrame:
    """Key and JSON of the rows of windows that are over."""
    salt = [F.floor(F.rand(seed=1) * salts)] if salts > 1 else []
    windows = (
        tuples.repartition(workers, "key", *salt)
        .mapInArrow(costly_rows(cost_us), _FORM)
        .withColumn("ts", F.timestamp_millis("time"))
        .withWatermark("ts", "0 seconds")
        .groupBy(F.window("ts", "1 second"), "key")
        .agg(F.sum("amount").alias("total"))
    )
    edges = (F.unix_millis(f"window.{edge}").alias(f"window_{edge}") for edge in ("start", "end"))
    return windows.select("key", F.to_json(F.struct(*edges, "key", "total")).alias("value"))


def stream_of(session: SparkSession, bootstrap: str, topic: str, *, most: int | None) -> DataFrame:
    """The tuples of the topic as they come. most: records of a micro-batch."""
    records = (
        session.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .options(**({} if most is None else {"maxOffsetsPerTrigger": most}))
        .load()
    )
    parsed = F.from_json(F.col("value").cast("string"), _FORM)
    # The mark of the end of the stream is a record without a key.
    return records.select(parsed.alias("tuple")).select("tuple.*").where("key is not null")


def to_the_end(tuples: DataFrame, checkpoint: str, **work: Any) -> None:
    """Take all tuples that are there, drop the rows, and print the seconds."""

    def drop(batch: DataFrame, _: int) -> None:
        totals(batch, **work).write.format("noop").mode("append").save()

    starts = tuples.withColumn("start", F.expr("time - time % 1000"))
    began = time.monotonic()
    query = (
        starts.writeStream.foreachBatch(drop)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    print(json.dumps({"seconds": round(time.monotonic() - began, 2)}))


def live(tuples: DataFrame, checkpoint: str, bootstrap: str, results: str, **work: Any) -> None:
    """Write the rows of windows to the topic `results` until the process is ended."""
    query = (
        window_rows(tuples, **work)
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", results)
        .option("checkpointLocation", checkpoint)
        .start()
    )
    query.awaitTermination()


def main() -> None:
    """Run the query."""
    parser = argparse.ArgumentParser(description=__doc__)
    for word in ("bootstrap", "topic", "jars"):
        parser.add_argument(word)
    for word in ("salts", "workers", "cost_us"):
        parser.add_argument(word, type=int)
    parser.add_argument("--most", type=int)
    parser.add_argument("--results")
    options = parser.parse_args()
    conf = {
        "spark.master": f"local[{options.workers}]",
        "spark.sql.shuffle.partitions": str(options.workers),
        "spark.jars": options.jars,
    }
    session = SparkSession.builder.config(map=_CONF | conf).getOrCreate()
    work = {"salts": options.salts, "cost_us": options.cost_us}
    tuples = stream_of(session, options.bootstrap, options.topic, most=options.most)
    with tempfile.TemporaryDirectory() as checkpoint:
        if options.results is None:
            to_the_end(tuples, checkpoint, **work)
        else:
            live(tuples, checkpoint, options.bootstrap, options.results, workers=options.workers, **work)
    session.stop()


if __name__ == "__main__":
    main()
