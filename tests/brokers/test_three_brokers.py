"""What three brokers with three replicas promise, and what evenflow makes of it: nothing is lost, and the
loss of one broker stops no service.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import ElectionType, KafkaError, TopicPartition
from confluent_kafka.admin import NewTopic

from tests.brokers.cluster import NODES, Cluster
from tests.patience import PATIENCE, wait_for
from tests.pipeline.end_to_end import Pipeline, Stream, assert_exact, batches_done, committed, make_settings
from topics import clients, reader

pytestmark = [pytest.mark.pipeline, pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("brokers")) as started:
        yield started


@pytest.fixture(autouse=True)
def _whole(cluster: Cluster) -> Iterator[None]:
    yield
    cluster.start(node for node in NODES if not cluster.brokers[node].alive)
    wait_for(cluster.in_sync, lambda: "replicas lag behind")


def test_each_broker_is_lost_in_turn_under_load_and_no_service_stops(
    cluster: Cluster, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(cluster.settings(), query_name, tmp_path)
    stream = Stream(settings)
    led = set[int]()
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.start("partition", "--until-ended")
        pipeline.start("aggregate", "--until-ended")
        stream.write(300)
        pipeline.wait_until(lambda: batches_done(settings, "fused") > 0)
        for node in NODES:
            led |= set(cluster.leaders(settings.topic("routed")))
            cluster.kill(node)
            before = batches_done(settings, "fused")
            stream.write(300)
            pipeline.wait_until(lambda: committed(settings) == len(stream.records))
            pipeline.wait_until(lambda: batches_done(settings, "fused") > before)  # noqa: B023
            cluster.start([node])
            pipeline.wait_until(cluster.in_sync)
        stream.write(300)
        # The leaders go back to where they had been while records are under way.
        parts = [TopicPartition(settings.topic("routed"), n) for n in range(settings.routed_partitions)]
        clients.admin(settings.kafka).elect_leaders(ElectionType.PREFERRED, parts).result()
        stream.write(300)
        stream.end()
        pipeline.finish()
    assert led == set(NODES)
    assert_exact(stream)


def test_two_brokers_are_lost_at_once_and_nothing_that_was_stored_is_missing(
    cluster: Cluster, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(cluster.settings(), query_name, tmp_path)
    stream = Stream(settings)
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.start("partition")
        pipeline.start("aggregate")
        stream.write(600)
        pipeline.wait_until(lambda: batches_done(settings, "fused") > 0)
        aside = f"{query_name}-aside"
        clients.admin(settings.kafka).create_topics([NewTopic(aside, 1, 3)])[aside].result()
        cluster.kill(1, 2)
        told: list[KafkaError | None] = []
        alone = clients.producer(settings.kafka, message_timeout_ms=4_000)
        alone.produce(aside, b"stored by one", partition=0, on_delivery=lambda error, _: told.append(error))
        alone.flush(20 * PATIENCE)
        assert told[0] is not None, "one broker alone has acknowledged a record"
        cluster.start([1, 2])
        wait_for(cluster.in_sync, lambda: "replicas lag behind")
        # A service may have given up meanwhile. What ends is started again, as Kubernetes would do.
        for name in ("partition", "aggregate"):
            pipeline.running.pop(name).terminate(60.0)
            pipeline.start(name, "--until-ended")
        stream.write(300)
        stream.end()
        pipeline.finish()
    assert_exact(stream)


def test_a_broker_whose_disk_takes_nothing_any_more_ends_and_the_others_go_on(
    cluster: Cluster, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(cluster.settings(), query_name, tmp_path)
    stream = Stream(settings)
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.start("partition", "--until-ended")
        pipeline.start("aggregate", "--until-ended")
        stream.write(300)
        pipeline.wait_until(lambda: batches_done(settings, "fused") > 0)
        node = cluster.leaders(settings.topic("routed"))[0]
        cluster.fill_disk(node)
        before = batches_done(settings, "fused")
        stream.write(300)
        pipeline.wait_until(lambda: not cluster.brokers[node].alive)
        pipeline.wait_until(lambda: committed(settings) == len(stream.records))
        pipeline.wait_until(lambda: batches_done(settings, "fused") > before)
        cluster.start([node])
        pipeline.wait_until(cluster.in_sync)
        stream.write(300)
        stream.end()
        pipeline.finish()
    assert_exact(stream)


def test_a_broker_that_lacks_records_does_not_become_the_leader(cluster: Cluster, query_name: str) -> None:
    kafka = cluster.settings()
    client = clients.admin(kafka)
    made = NewTopic(query_name, 1, replica_assignment=[[1, 2]], config={"min.insync.replicas": "1"})
    client.create_topics([made])[query_name].result()
    wait_for(lambda: query_name in client.list_topics(timeout=20).topics)
    cluster.kill(2)
    writer = clients.producer(kafka)
    for number in range(50):
        writer.produce(query_name, str(number).encode(), partition=0)
    clients.flush(writer, kafka)
    wait_for(lambda: cluster.in_sync_replicas(query_name) == [[1]])
    cluster.kill(1)
    cluster.start([2])
    # Broker 2 is there again, and so is a majority of the controllers.
    wait_for(lambda: cluster.leaders(query_name) == [-1])
    election = client.elect_leaders(ElectionType.PREFERRED, [TopicPartition(query_name, 0)]).result()
    assert all(error is not None for error in election.values())
    assert cluster.leaders(query_name) == [-1]
    cluster.start([1])
    wait_for(lambda: cluster.leaders(query_name) != [-1])
    kept = [m.value() for block in reader.read_range(kafka, query_name) for m in block]
    assert kept == [str(number).encode() for number in range(50)]
