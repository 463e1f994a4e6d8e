"""Three brokers, each a process that is broker and controller, with three replicas of everything."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from confluent_kafka.admin import AdminClient

from evenflow.settings import KafkaSettings
from topics import clients
from workbench.local.broker import EmbeddedBroker, new_cluster
from workbench.local.broker_properties import HOST
from workbench.local.ports import free_ports

NODES = (1, 2, 3)
_REPLICATED = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "unclean.leader.election.enable": "false",
    # How soon a broker that says nothing any more counts as lost. By default after 9 s.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}
_QUICK = {"reconnect.backoff.max.ms": 500, "topic.metadata.refresh.interval.ms": 2_000}


class Cluster:
    """Brokers 1 to 3 as a context manager. folder: for their data, which stays over restarts."""

    def __init__(self, folder: Path) -> None:
        self._stack = ExitStack()
        ports = free_ports(2 * len(NODES))
        clients_, controllers = ports[: len(NODES)], ports[len(NODES) :]
        voters = ",".join(f"{n}@{HOST}:{port}" for n, port in zip(NODES, controllers, strict=True))
        cluster = new_cluster()
        self.brokers = {
            node: EmbeddedBroker(
                data_dir=folder / f"broker-{node}",
                port=port,
                cluster=cluster,
                properties=_REPLICATED
                | {
                    "node.id": str(node),
                    "controller.quorum.voters": voters,
                    "listeners": f"CLIENT://{HOST}:{port},CONTROLLER://{HOST}:{controller}",
                },
                heap="384m",
                start_timeout=120.0,
            )
            for node, port, controller in zip(NODES, clients_, controllers, strict=True)
        }

    def __enter__(self) -> Cluster:
        for broker in self.brokers.values():
            self._stack.callback(broker.stop)
        try:
            self.start(NODES)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._at_once(EmbeddedBroker.stop, NODES)
        self._stack.close()

    def start(self, nodes: Iterable[int]) -> None:
        """Start these brokers, and wait until they answer. Without two of the three, none does."""
        self._at_once(EmbeddedBroker.start, nodes)

    def kill(self, *nodes: int) -> None:
        """SIGKILL these brokers at the same moment."""
        self._at_once(EmbeddedBroker.kill, nodes)

    def fill_disk(self, node: int) -> None:
        """This broker can make no file longer until it starts again, as if its disk were full."""
        pid = self.brokers[node].pid
        assert pid is not None
        _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, most))

    def _at_once(self, action: Callable[[EmbeddedBroker], object], nodes: Iterable[int]) -> None:
        with ThreadPoolExecutor(len(NODES)) as pool:
            list(pool.map(lambda node: action(self.brokers[node]), nodes))

    def settings(self) -> KafkaSettings:
        """Settings that reach all brokers, with three replicas."""
        servers = ",".join(broker.bootstrap_servers for broker in self.brokers.values())
        return self.brokers[1].settings(
            bootstrap_servers=servers, replication_factor=3, extras={"librdkafka": _QUICK}
        )

    def leaders(self, topic: str) -> list[int]:
        """The broker that leads each partition, -1 if none does."""
        parts = self._client().list_topics(topic, timeout=20).topics[topic].partitions
        return [parts[number].leader for number in sorted(parts)]

    def in_sync_replicas(self, topic: str) -> list[list[int]]:
        """The brokers that have everything of each partition."""
        parts = self._client().list_topics(topic, timeout=20).topics[topic].partitions
        return [sorted(parts[number].isrs) for number in sorted(parts)]

    def in_sync(self) -> bool:
        """Whether all replicas of all partitions have everything."""
        topics = self._client().list_topics(timeout=20).topics.values()
        return all(len(p.isrs) == len(p.replicas) for topic in topics for p in topic.partitions.values())

    def _client(self) -> AdminClient:
        return clients.admin(self.settings())
