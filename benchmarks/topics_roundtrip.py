"""How fast the clients that evenflow uses write plain records to a topic and read them again."""

from __future__ import annotations

import time
from random import Random

from topics.admin import ensure_topics
from topics.clients import flush, producer
from topics.reader import read_range
from topics.state import TopicSpec
from workbench.local.broker import EmbeddedBroker

SEED = 7
ID = "topics-roundtrip"
WHAT = "produce 60-byte records to 4 partitions of the embedded broker, then read them all with read_range"


def run(*, smoke: bool) -> dict[str, object]:
    """Records per second written, and read. AssertionError if not all of them come out again."""
    records = 20_000 if smoke else 2_000_000
    value = Random(SEED).randbytes(60)
    with EmbeddedBroker() as broker:
        kafka = broker.settings()
        ensure_topics(kafka, [TopicSpec("roundtrip", 4, {})])
        client = producer(kafka, queue_buffering_max_messages=1_000_000)
        started = time.perf_counter()
        for number in range(records):
            while True:
                try:
                    client.produce("roundtrip", value, partition=number % 4)
                    break
                except BufferError:  # librdkafka's queue is full
                    client.poll(0.05)
        flush(client, kafka)
        produced = time.perf_counter()
        read = sum(len(batch) for batch in read_range(kafka, "roundtrip"))
        done = time.perf_counter()
    if read != records:
        raise AssertionError(f"{records} records went in, {read} came out")
    return {
        "records": records,
        "produced_per_second": round(records / (produced - started)),
        "read_per_second": round(records / (done - produced)),
    }
