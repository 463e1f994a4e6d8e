"""Spark's own streaming windows over an input topic of the benchmarks: 60 s sliding by 1 s, count and sum.

    python spark_windows.py BOOTSTRAP TOPIC JARS

JARS are those of the Kafka connector, with commas between. The query reads the whole topic in micro-batches
of at most 500,000 records, and keeps its state in RocksDB. Rows are dropped (noop sink). So Spark is spared
writing them, which evenflow pays for.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

_STATE = "spark.sql.streaming.stateStore"
_CONF = {
    "spark.master": "local[2]",
    "spark.driver.memory": "6g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
    f"{_STATE}.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    f"{_STATE}.rocksdb.changelogCheckpointing.enabled": "true",
}


def windows(spark: SparkSession, bootstrap: str, topic: str) -> DataFrame:
    """The streaming query, which is not started yet."""
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 500_000)
        .load()
    )
    form = "key string, amount long, time long"
    tuples = records.select(F.from_json(F.col("value").cast("string"), form).alias("tuple")).select("tuple.*")
    return (
        tuples.withColumn("ts", F.timestamp_millis(F.col("time")))
        .withWatermark("ts", "0 seconds")
        .groupBy(F.window("ts", "60 seconds", "1 second"), "key")
        .agg(F.count("*"), F.sum("amount"))
    )


def main() -> None:
    """Run the query once over the whole topic and print its seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    for word in ("bootstrap", "topic", "jars"):
        parser.add_argument(word)
    options = parser.parse_args()
    session = SparkSession.builder.config(map=_CONF | {"spark.jars": options.jars}).getOrCreate()
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = (
            windows(session, options.bootstrap, options.topic).writeStream.outputMode("append").format("noop")
        )
        began = time.monotonic()
        query = (
            writer.option("checkpointLocation", checkpoint)
            .queryName("peer")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        print(json.dumps({"seconds": round(time.monotonic() - began, 2)}))
    session.stop()


if __name__ == "__main__":
    main()
