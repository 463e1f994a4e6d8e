"""Flink SQL over an input topic of the benchmarks: 60 s windows sliding by 1 s, count and sum.

    python flink_sql.py BOOTSTRAP TOPIC CONNECTOR_JAR

The job reads to the end that the topic has at its start, in streaming mode with parallelism 2. It uses
two-phase aggregation over mini-batches, as Flink's tuning guide advises for skewed keys. Results go into a
black hole. So Flink is spared writing them to Kafka, which evenflow pays for.
"""

from __future__ import annotations

import argparse
import json
import time

from pyflink.table import EnvironmentSettings, TableEnvironment

_OPTIONS = {
    "parallelism.default": "2",
    "table.exec.source.idle-timeout": "2 s",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "1 s",
    "table.exec.mini-batch.size": "50000",
    "table.optimizer.agg-phase-strategy": "TWO_PHASE",
}
_TUPLES = """
CREATE TABLE tuples (
    `key` STRING, amount BIGINT, `time` BIGINT, ts AS TO_TIMESTAMP_LTZ(`time`, 3), WATERMARK FOR ts AS ts
) WITH (
    'connector' = 'kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{bootstrap}',
    'properties.group.id' = 'flink', 'scan.startup.mode' = 'earliest-offset',
    'scan.bounded.mode' = 'latest-offset', 'value.format' = 'json'
)"""
_RESULTS = """
CREATE TABLE results (
    window_start TIMESTAMP_LTZ(3), window_end TIMESTAMP_LTZ(3), k STRING, tuples BIGINT, total BIGINT
) WITH ('connector' = 'blackhole')"""
_QUERY = """
INSERT INTO results SELECT window_start, window_end, `key`, COUNT(*), SUM(amount)
FROM HOP(TABLE tuples, DESCRIPTOR(ts), INTERVAL '1' SECOND, INTERVAL '60' SECOND)
GROUP BY window_start, window_end, `key`"""


def main() -> None:
    """Run the job once and print its seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    for word in ("bootstrap", "topic", "jar"):
        parser.add_argument(word)
    options = parser.parse_args()
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, value in {"pipeline.jars": f"file://{options.jar}", **_OPTIONS}.items():
        tables.get_config().set(name, value)
    tables.execute_sql(_TUPLES.format(topic=options.topic, bootstrap=options.bootstrap))
    tables.execute_sql(_RESULTS)
    began = time.monotonic()
    tables.execute_sql(_QUERY).wait()
    print(json.dumps({"seconds": round(time.monotonic() - began, 2)}))


if __name__ == "__main__":
    main()
