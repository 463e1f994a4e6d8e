"""The scripts of `examples/` run as they are, the one with Kafka on a real broker."""

import subprocess
import sys
from pathlib import Path

import pytest

from evenflow.partitioners import create
from evenflow.settings import KafkaSettings
from tests.patience import PATIENCE
from topics.admin import ensure_topics
from topics.clients import flush, producer
from topics.reader import read_range
from topics.state import TopicSpec

pytestmark = pytest.mark.pipeline
EXAMPLES = Path(__file__).parents[3] / "examples"
RECORDS, WORKERS = 12_000, 4


def run(script: str, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / script), *words],
        capture_output=True,
        text=True,
        timeout=120 * PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_has_its_test() -> None:
    here, in_the_first_hour = {"route_list.py", "route_topic.py"}, {"orders.py"}
    with_spark = {"spark_join.py"}  # test_own_spark.py
    assert {path.name for path in EXAMPLES.glob("*.py")} == here | in_the_first_hour | with_spark


def test_the_example_without_kafka_shows_what_splitting_is_worth() -> None:
    hashing, evenflow = run("route_list.py").splitlines()
    assert hashing.startswith("hashing ")
    assert hashing.endswith("a key is on 1.000 workers")
    loads = [int(part) for part in evenflow.partition("[")[2].partition("]")[0].split(", ")]
    assert sum(loads) == 100_000
    assert max(loads) < 1.01 * 25_000


def test_the_consumer_loop_puts_every_record_into_the_partition_of_its_worker(
    kafka_settings: KafkaSettings, query_name: str
) -> None:
    source, target = f"{query_name}.orders", f"{query_name}.by-worker"
    ensure_topics(kafka_settings, [TopicSpec(source, 1, {}), TopicSpec(target, WORKERS, {})])
    client = producer(kafka_settings)
    keys = [b"big" if number % 2 else b"c%d" % (number * number % 500) for number in range(RECORDS)]
    for number, key in enumerate(keys):
        client.produce(source, b"%d" % number, key=key, timestamp=1_700_000_000_000 + number)
    flush(client, kafka_settings)

    told = run(
        "route_topic.py", "--broker", kafka_settings.bootstrap_servers, "--source", source,
        "--target", target, "--records", str(RECORDS),
    )  # fmt: skip

    expected = create("evenflow", workers=WORKERS).assign_keys(
        keys, range(1_700_000_000_000, 1_700_000_000_000 + RECORDS)
    )
    result = {
        int(record.value()): (record.key(), record.partition())
        for block in read_range(kafka_settings, target)
        for record in block
    }
    assert [result[number] for number in range(RECORDS)] == list(zip(keys, expected.tolist(), strict=True))
    loads = [expected.tolist().count(worker) for worker in range(WORKERS)]
    assert told == f"tuples of each worker: {loads}\n"
