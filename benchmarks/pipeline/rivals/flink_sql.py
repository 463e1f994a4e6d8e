"""Flink SQL over an input topic of the benchmarks.

    python flink_sql.py BOOTSTRAP TOPIC JARS JOB [OPTION=VALUE ...] [--results TOPIC]

JARS are the Kafka connector and what else the job needs, with semicolons between. The options are Flink's, on
top of those of the job. A job reads to the end that the topic has at its start, in streaming mode. Results go
into a black hole. So Flink is spared writing them to Kafka, which evenflow pays for.

With --results a job does not end. Its rows go to that topic, at least once: there are no checkpoints.

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
    'scan.bounded.mode' = '{end}', 'value.format' = 'json'
)"""
_RESULTS = """
CREATE TABLE results (
    window_start TIMESTAMP_LTZ(3), window_end TIMESTAMP_LTZ(3), k STRING, {columns}
) WITH ('connector' = 'blackhole')"""
_LIVE_RESULTS = """
CREATE TABLE results (
    window_start BIGINT, window_end BIGINT, k STRING, {columns}
) WITH (
    'connector' = 'kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{bootstrap}',
    'key.format' = 'raw', 'key.fields' = 'k', 'value.format' = 'json'
)"""
_QUERY = """
INSERT INTO results SELECT {start}, {end}, `key`, {aggregates}
FROM {windows} GROUP BY window_start, window_end, `key`"""

_MS = "1000 * UNIX_TIMESTAMP(DATE_FORMAT({time}, 'yyyy-MM-dd HH:mm:ss'))"
"""A time of whole seconds as ms since 1970, as evenflow's rows have it."""


def main() -> None:
    """Run the job once and print its seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    for word in ("bootstrap", "topic", "jars"):
        parser.add_argument(word)
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("options", nargs="*")
    parser.add_argument("--results")
    words = parser.parse_args()
    job = JOBS[words.job]
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    jars = ";".join(f"file://{jar}" for jar in words.jars.split(";"))
    options = {
        "pipeline.jars": jars,
        "table.exec.source.idle-timeout": "2 s",
        "table.local-time-zone": "UTC",
        **job.options,
    }
    for name, value in (options | dict(option.split("=", 1) for option in words.options)).items():
        tables.get_config().set(name, value)
    for function in job.functions:
        tables.execute_sql(function)
    live = words.results is not None
    end = "unbounded" if live else "latest-offset"
    tables.execute_sql(_TUPLES.format(topic=words.topic, bootstrap=words.bootstrap, end=end))
    results = _LIVE_RESULTS if live else _RESULTS
    place = {"topic": words.results, "bootstrap": words.bootstrap}
    tables.execute_sql(results.format(columns=job.columns, **place))
    began = time.monotonic()
    times = [_MS.format(time=edge) if live else edge for edge in ("window_start", "window_end")]
    query = _QUERY.format(start=times[0], end=times[1], aggregates=job.aggregates, windows=job.windows)
    tables.execute_sql(query).wait()
    print(json.dumps({"seconds": round(time.monotonic() - began, 2)}))


if __name__ == "__main__":
    main()
