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
import pyarrow.json
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

_AT_ONCE = 50_000
_WINDOW, _SLIDE_MS = 60, 1_000
_FORM = pa.schema([("key", pa.string()), ("amount", pa.int64()), ("time", pa.int64())])
_PARSE = pyarrow.json.ParseOptions(explicit_schema=_FORM, unexpected_field_behavior="ignore")
_READ = pyarrow.json.ReadOptions(block_size=64 * 1024 * 1024)


def opened(bootstrap: str, topic: str) -> tuple[Consumer, set[int]]:
    """A consumer at the beginning of the topic, and the partitions that hold anything."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "plain",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            # By its default the client waits for a second whenever its queue is full, as evenflow's would.
            "fetch.queue.backoff.ms": 10,
        }
    )
    numbers = consumer.list_topics(topic).topics[topic].partitions
    partitions = [TopicPartition(topic, number, OFFSET_BEGINNING) for number in numbers]
    ends = {each.partition: consumer.get_watermark_offsets(each) for each in partitions}
    consumer.assign(partitions)
    return consumer, {number for number, (low, high) in ends.items() if high > low}


def batches(consumer: Consumer, partitions: set[int]) -> Iterator[list[tuple[int, bytes]]]:
    """(partition, value) of the records of these partitions, up to their ends. A record without a value is an
    end mark.
    """
    left = set(partitions)
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
    """Aggregate the whole topic. The number of rows of all windows."""
    consumer, partitions = opened(bootstrap, topic)
    return sum(rows for _, rows in windows(batches(consumer, partitions), len(partitions)))


def windows(records: Iterator[list[tuple[int, bytes]]], partitions: int) -> Iterator[tuple[int, int]]:
    """(last second, rows) of each window once it is complete. partitions: how many the records come from."""
    database = duckdb.connect()
    database.execute("CREATE TABLE seconds (second BIGINT, key VARCHAR, n BIGINT, total BIGINT)")
    newest: dict[int, int] = {}
    closed: int | None = None
    for batch in records:
        table = _parsed(batch)
        database.register("records", table)
        database.execute(
            f"INSERT INTO seconds SELECT time // {_SLIDE_MS}, key, count(*), sum(amount) FROM records"
            " GROUP BY ALL"
        )
        for partition, last in _last_times(batch, table).items():
            newest[partition] = max(last, newest.get(partition, 0))
        if len(newest) < partitions:
            continue  # of the others nothing has come yet, and it may be of any second
        closed = _number(database, "min(second)") if closed is None else closed
        passed = min(newest.values()) // _SLIDE_MS
        for second in range(closed, passed):
            yield second, _window(database, second)
        closed = max(closed, passed)
        database.execute("DELETE FROM seconds WHERE second <= ?", [closed - _WINDOW])
    if closed is not None:
        for second in range(closed, _number(database, "max(second)") + _WINDOW):
            yield second, _window(database, second)


def _number(database: duckdb.DuckDBPyConnection, what: str) -> int:
    """A number of the table of seconds."""
    row = database.execute(f"SELECT {what} FROM seconds").fetchone()
    assert row is not None
    return int(row[0])


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
