"""A plain program over an input topic of the benchmarks: one process, confluent-kafka, pyarrow and DuckDB.

    python plain_program.py BOOTSTRAP TOPIC

It is what somebody writes who needs no second worker: windows of 60 s sliding by 1 s, count and sum by key.
Records are read in bulk and counted by second and key. A second is closed once every partition has passed it.
Then the window that ends with it is added up from its 60 seconds. Rows are dropped. Nothing is kept: after a
crash the program begins anew.
"""

from __future__ import annotations

import argparse
import io
import json
import time
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

_AT_ONCE = 50_000
_WINDOW, _SLIDE_MS = 60, 1_000
_FORM = pa.schema([("key", pa.string()), ("amount", pa.int64()), ("time", pa.int64())])
_PARSE = pyarrow.json.ParseOptions(explicit_schema=_FORM, unexpected_field_behavior="ignore")
_READ = pyarrow.json.ReadOptions(block_size=64 * 1024 * 1024)


def batches(bootstrap: str, topic: str) -> Iterator[list[tuple[int, bytes]]]:
    """(partition, value) of all records that the topic holds now. A record without a value is an end mark."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "plain",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    partitions = [
        TopicPartition(topic, at, OFFSET_BEGINNING)
        for at in consumer.list_topics(topic).topics[topic].partitions
    ]
    left = set()
    for each in partitions:
        low, high = consumer.get_watermark_offsets(each)
        if high > low:
            left.add(each.partition)
    consumer.assign(partitions)
    try:
        while left:
            some = []
            for message in consumer.consume(_AT_ONCE, timeout=1.0):
                if message.error() is not None:
                    raise RuntimeError(str(message.error()))
                value = message.value()
                partition = message.partition() or 0
                if value is None:
                    left.discard(partition)
                else:
                    some.append((partition, value))
            if some:
                yield some
    finally:
        consumer.close()


def run(bootstrap: str, topic: str) -> int:
    """Aggregate the whole topic. The number of rows of all windows that have closed."""
    database = duckdb.connect()
    database.execute("CREATE TABLE seconds (second BIGINT, key VARCHAR, n BIGINT, total BIGINT)")
    newest: dict[int, int] = {}
    closed, rows = -1, 0
    for batch in batches(bootstrap, topic):
        records = _parsed(batch)
        database.register("records", records)
        database.execute(
            f"INSERT INTO seconds SELECT time // {_SLIDE_MS}, key, count(*), sum(amount) FROM records"
            " GROUP BY ALL"
        )
        for partition, last in _last_times(batch, records).items():
            newest[partition] = max(last, newest.get(partition, 0))
        passed = min(newest.values()) // _SLIDE_MS
        if closed < 0:
            closed = int(pc.min(records["time"]).as_py()) // _SLIDE_MS
        for second in range(closed, passed):
            rows += _window(database, second)
        if passed > closed:
            closed = passed
            database.execute("DELETE FROM seconds WHERE second <= ?", [closed - _WINDOW])
    newest_row = database.execute("SELECT max(second) FROM seconds").fetchone()
    newest_second = closed - _WINDOW if newest_row is None or newest_row[0] is None else newest_row[0]
    for second in range(closed, newest_second + _WINDOW):
        rows += _window(database, second)
    return rows


def _parsed(batch: list[tuple[int, bytes]]) -> pa.Table:
    lines = io.BytesIO(b"\n".join([value for _, value in batch]))
    return pyarrow.json.read_json(lines, read_options=_READ, parse_options=_PARSE)


def _last_times(batch: list[tuple[int, bytes]], records: pa.Table) -> dict[int, int]:
    """Time of the last record of each partition."""
    last_rows = {partition: row for row, (partition, _) in enumerate(batch)}
    times = records["time"].combine_chunks()
    return {partition: times[row].as_py() for partition, row in last_rows.items()}


def _window(database: duckdb.DuckDBPyConnection, last: int) -> int:
    """Add up the window that ends with this second. The number of its rows."""
    query = "SELECT key, sum(n), sum(total) FROM seconds WHERE second BETWEEN ? AND ? GROUP BY key"
    columns = database.execute(query, [last - _WINDOW + 1, last]).fetchnumpy()
    return len(columns["key"])


def main() -> None:
    """Run the program once over the whole topic and print its seconds and rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    for word in ("bootstrap", "topic"):
        parser.add_argument(word)
    options = parser.parse_args()
    began = time.monotonic()
    rows = run(options.bootstrap, options.topic)
    print(json.dumps({"seconds": round(time.monotonic() - began, 2), "rows": rows}))


if __name__ == "__main__":
    main()
