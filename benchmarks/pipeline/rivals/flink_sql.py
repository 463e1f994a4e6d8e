"""Flink SQL over an input topic of the benchmarks.

    python flink_sql.py BOOTSTRAP TOPIC JARS JOB [OPTION=VALUE ...]

JARS are the Kafka connector and what else the job needs, with semicolons between. The options are Flink's, on
top of those of the job. A job reads to the end that the topic has at its start, in streaming mode. Results go
into a black hole. So Flink is spared writing them to Kafka, which evenflow pays for.

windows  60 s windows sliding by 1 s, count and sum, with parallelism 2 and two-phase aggregation over
         mini-batches, as Flink's tuning guide advises for skewed keys
costly   windows of 1 s, a sum of which each tuple costs time (`CostlySum`, which takes `cost_us` from the
         option pipeline.global-job-parameters)
"""

from __future__ import annotations

import argparse
import json
import time
from typing import NamedTuple

from pyflink.table import EnvironmentSettings, TableEnvironment


class Job(NamedTuple):
    """What is computed of the tuples."""

    columns: str
    """Columns of the results, behind the window and the key."""
    aggregates: str
    """Their expressions."""
    windows: str
    """The windows of the table of tuples."""
    options: dict[str, str]
    """Flink's options."""
    functions: tuple[str, ...] = ()
    """Statements that declare functions."""


JOBS = {
    "windows": Job(
        "tuples BIGINT, total BIGINT",
        "COUNT(*), SUM(amount)",
        "HOP(TABLE tuples, DESCRIPTOR(ts), INTERVAL '1' SECOND, INTERVAL '60' SECOND)",
        {
            "parallelism.default": "2",
            "table.exec.mini-batch.enabled": "true",
            "table.exec.mini-batch.allow-latency": "1 s",
            "table.exec.mini-batch.size": "50000",
            "table.optimizer.agg-phase-strategy": "TWO_PHASE",
        },
    ),
    "costly": Job(
        "total BIGINT",
        "costly_sum(amount)",
        "TUMBLE(TABLE tuples, DESCRIPTOR(ts), INTERVAL '1' SECOND)",
        {},
        ("CREATE TEMPORARY FUNCTION costly_sum AS 'CostlySum'",),
    ),
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
    window_start TIMESTAMP_LTZ(3), window_end TIMESTAMP_LTZ(3), k STRING, {columns}
) WITH ('connector' = 'blackhole')"""
_QUERY = """
INSERT INTO results SELECT window_start, window_end, `key`, {aggregates}
FROM {windows} GROUP BY window_start, window_end, `key`"""


def main() -> None:
    """Run the job once and print its seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    for word in ("bootstrap", "topic", "jars"):
        parser.add_argument(word)
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("options", nargs="*")
    words = parser.parse_args()
    job = JOBS[words.job]
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    jars = ";".join(f"file://{jar}" for jar in words.jars.split(";"))
    options = {"pipeline.jars": jars, "table.exec.source.idle-timeout": "2 s", **job.options}
    for name, value in (options | dict(option.split("=", 1) for option in words.options)).items():
        tables.get_config().set(name, value)
    for function in job.functions:
        tables.execute_sql(function)
    tables.execute_sql(_TUPLES.format(topic=words.topic, bootstrap=words.bootstrap))
    tables.execute_sql(_RESULTS.format(columns=job.columns))
    began = time.monotonic()
    tables.execute_sql(_QUERY.format(aggregates=job.aggregates, windows=job.windows)).wait()
    print(json.dumps({"seconds": round(time.monotonic() - began, 2)}))


if __name__ == "__main__":
    main()
