"""Flink SQL over an input topic of the benchmarks, with a sum of which each tuple costs time: windows of 1 s.

    python flink_costly.py BOOTSTRAP TOPIC JARS PHASES WORKERS COST_US

JARS are the Kafka connector and the function `CostlySum`, with a semicolon between. PHASES is `ONE_PHASE`
(each tuple goes to the task of its key, which aggregates) or `TWO_PHASE` (each task that reads adds up what
it read, and the sums go to the tasks of their keys). WORKERS is the number of tasks of each step. The job
reads to the end that the topic has at its start, in streaming mode. Results go into a black hole.
"""

from __future__ import annotations

import argparse
import json
import time

from pyflink.table import EnvironmentSettings, TableEnvironment

_TUPLES = """
CREATE TABLE tuples (
    `key` STRING, amount BIGINT, `time` BIGINT, ts AS TO_TIMESTAMP_LTZ(`time`, 3), WATERMARK FOR ts AS ts
) WITH (
    'connector' = 'kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{bootstrap}',
    'properties.group.id' = 'flink-costly', 'scan.startup.mode' = 'earliest-offset',
    'scan.bounded.mode' = 'latest-offset', 'value.format' = 'json'
)"""
_RESULTS = """
CREATE TABLE results (
    window_start TIMESTAMP_LTZ(3), window_end TIMESTAMP_LTZ(3), k STRING, total BIGINT
) WITH ('connector' = 'blackhole')"""
_QUERY = """
INSERT INTO results SELECT window_start, window_end, `key`, costly_sum(amount)
FROM TUMBLE(TABLE tuples, DESCRIPTOR(ts), INTERVAL '1' SECOND)
GROUP BY window_start, window_end, `key`"""


def main() -> None:
    """Run the job once and print its seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    for word in ("bootstrap", "topic", "jars", "phases", "workers", "cost_us"):
        parser.add_argument(word)
    options = parser.parse_args()
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    settings = {
        "pipeline.jars": ";".join(f"file://{jar}" for jar in options.jars.split(";")),
        "pipeline.global-job-parameters": f"cost_us:{options.cost_us}",
        "parallelism.default": options.workers,
        "table.exec.source.idle-timeout": "2 s",
        "table.optimizer.agg-phase-strategy": options.phases,
    }
    for name, value in settings.items():
        tables.get_config().set(name, value)
    tables.execute_sql("CREATE TEMPORARY FUNCTION costly_sum AS 'CostlySum'")
    tables.execute_sql(_TUPLES.format(topic=options.topic, bootstrap=options.bootstrap))
    tables.execute_sql(_RESULTS)
    began = time.monotonic()
    tables.execute_sql(_QUERY).wait()
    print(json.dumps({"seconds": round(time.monotonic() - began, 2)}))


if __name__ == "__main__":
    main()
