"""Unit costs of a broker and of its client: transactions, the partitions that they write to, and frames.

The costs are CPU time of the broker's process and of this process, the client. One broker without replicas
runs on the machine of the bench.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.measuring.cpu import CpuMeter
from benchmarks.measuring.pipelines import measured_broker
from benchmarks.measuring.step_lines import step
from benchmarks.scale.timing import fitted
from topics import clients
from workbench.local.broker import EmbeddedBroker

_ROUTED, _INPUT = "scale.routed", "scale.input"
_FRAME = bytes(2_000)


@dataclass(frozen=True)
class Transactions:
    """Transactions of one shape. Every frame is a record batch of its own."""

    partitions: int
    """Partitions to which each transaction writes."""
    rounds: int
    """Frames that a transaction writes to each partition."""
    count: int
    """How many transactions there are."""


FULL = (
    Transactions(10, 1, 200),
    Transactions(1_000, 1, 15),
    Transactions(1_000, 4, 8),
    Transactions(10, 40, 20),
)
SMOKE = (Transactions(2, 1, 3), Transactions(16, 1, 3), Transactions(16, 3, 3), Transactions(2, 6, 3))


@dataclass(frozen=True)
class Spent:
    """What one transaction takes."""

    seconds: float
    """Wall time."""
    broker: float
    """CPU seconds of the broker."""
    client: float
    """CPU seconds of the client."""


def broker_costs(*, smoke: bool, turns: int = 3) -> tuple[dict[str, float], list[dict[str, float]]]:
    """Unit costs of broker and client, and the rows that they are fitted to.

    Of the broker: transaction_broker, marker, frame_appended. Of the client: transaction_client, enlisted,
    frame_produced.
    """
    shapes = SMOKE if smoke else FULL
    with measured_broker("client") as (broker, meter):
        work = _Client(broker, partitions=max(shape.partitions for shape in shapes))
        with step("warming the broker up"):
            for shape in shapes:
                work.run(shape)
        samples: dict[Transactions, list[Spent]] = {shape: [] for shape in shapes}
        for turn in range(1 if smoke else turns):
            for shape in shapes:
                with step(f"{shape}, turn {turn + 1}"):
                    samples[shape].append(work.spent(shape, meter))
        work.close()
    middle = {
        shape: Spent(
            *(median(getattr(sample, name) for sample in spent) for name in ("seconds", "broker", "client"))
        )
        for shape, spent in samples.items()
    }
    # How often each unit occurs in a transaction. One marker more than partitions: that of the offsets.
    counts = [(1, shape.partitions + 1, shape.partitions * shape.rounds) for shape in middle]
    # The fit divides by the times, and a smoke run may measure no CPU time at all.
    ours = fitted(counts, [max(1e-9, spent.broker) for spent in middle.values()])
    theirs = fitted(counts, [max(1e-9, spent.client) for spent in middle.values()])
    names = (
        ("transaction_broker", "marker", "frame_appended"),
        ("transaction_client", "enlisted", "frame_produced"),
    )
    units = dict(zip(names[0], ours, strict=True)) | dict(zip(names[1], theirs, strict=True))
    return units, [
        {
            "partitions": shape.partitions,
            "frames_a_partition": shape.rounds,
            "seconds": spent.seconds,
            "broker_cpu": spent.broker,
            "client_cpu": spent.client,
        }
        for shape, spent in middle.items()
    ]


class _Client:
    """A transactional producer like the partitioner's, which commits the offsets of one input partition."""

    def __init__(self, broker: EmbeddedBroker, *, partitions: int) -> None:
        kafka = broker.settings()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        for future in admin.create_topics(
            [NewTopic(_ROUTED, partitions, 1), NewTopic(_INPUT, 1, 1)]
        ).values():
            future.result(60)
        self._offset = 0
        self._group: Consumer = clients.consumer(kafka, group="scale")
        self._producer: Producer = clients.producer(
            kafka,
            **{
                "transactional.id": "scale",
                "transaction.timeout.ms": 60_000,
                "linger.ms": 5,
                "batch.size": 4_000_000,
                "message.timeout.ms": 60_000,
            },
        )
        self._producer.init_transactions(60)

    def run(self, shape: Transactions) -> None:
        """Run all transactions of the shape, one after the other."""
        for _ in range(shape.count):
            self._producer.begin_transaction()
            for _ in range(shape.rounds):
                for partition in range(shape.partitions):
                    self._producer.produce(_ROUTED, value=_FRAME, partition=partition)
                # So that the next round's frames do not join this round's in one batch.
                self._producer.flush(60)
            self._offset += 1
            # Offsets with metadata, as the partitioner commits its state with them.
            offsets = [TopicPartition(_INPUT, 0, self._offset, "x" * 300)]
            self._producer.send_offsets_to_transaction(offsets, self._group.consumer_group_metadata(), 60)
            self._producer.commit_transaction(60)

    def spent(self, shape: Transactions, meter: CpuMeter) -> Spent:
        """What one transaction of the shape takes, as a mean over all of them."""
        began, first = time.monotonic(), meter.now()
        self.run(shape)
        seconds, used = time.monotonic() - began, meter.between(first, meter.now())
        return Spent(*(value / shape.count for value in (seconds, used["broker"], used["client"])))

    def close(self) -> None:
        self._group.close()
