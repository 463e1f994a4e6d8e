"""A pipeline on paper: its sizes and settings, and how often a second each thing happens
in it. Pure arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

RANGE_END = 0.005
"""Seconds that Spark's source waits at the end
of a partition's range (`fetch.max.wait.ms`, spark_consumers/sources.py).
"""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Sizes and settings of one pipeline.

    An instance has one core, because its data plane is one thread. The driver and the controller have one
    core each.
    """

    rate: float = 1e7
    """Tuples a second."""
    inputs: int = 100
    """Partitions of the input topic."""
    routed: int = 1_000
    """Partitions of the routed topic."""
    shared_by: float = 1.0
    """Workers that share a routed partition, on average."""
    instances: int = 100
    """Instances of the partitioner service."""
    buckets: int = 1_000
    """Reduce buckets, which are tasks of the reducer."""
    tasks: int = 1_000
    """Tasks of the combiner in a micro-batch."""
    slide: float = 1.0
    """Slide of the window, s. Marks are told and windows close once a slide."""
    batch: float = 1.0
    """Batch interval, s."""
    commit: float = 0.5
    """The setting commit_interval, s."""
    block: int = 50_000
    """The setting block_tuples."""
    linger: float = 0.05
    """The setting linger, s."""
    group: int = 10
    """Micro-batches of a group of the controller."""
    snapshot: float = 30.0
    """Time between two snapshots of an instance, s."""
    replicas: int = 3
    """Replicas of each partition, on as many brokers."""
    brokers: int = 12
    """Brokers of the Kafka cluster."""
    broker_cores: int = 16
    """Cores of each broker."""
    executor_cores: int = 1_000
    """Cores of all executors together."""

    def part(self, parts: int) -> Shape:
        """One of `parts` pipelines that share the keys, the input and the machines.

        The brokers are not divided: each pipeline uses all of them.
        """
        names = ("inputs", "routed", "instances", "buckets", "tasks", "executor_cores")
        shares = {name: max(1, getattr(self, name) // parts) for name in names}
        return replace(self, rate=self.rate / parts, **shares)

    @property
    def workers(self) -> float:
        """Workers among which the tuples are divided."""
        return self.routed * self.shared_by

    @property
    def block_tuples(self) -> float:
        """Tuples in a block: as many as an instance gets in a linger, at most `block`."""
        return min(self.block, max(1.0, self.rate / self.instances * self.linger))

    @property
    def blocks(self) -> float:
        """Blocks a second of all instances."""
        return self.rate / self.block_tuples

    @property
    def frames_a_block(self) -> float:
        """Expected number of routed partitions that get a frame of a block."""
        return touched(self.routed, self.block_tuples)

    @property
    def frames(self) -> float:
        """Frames with tuples a second."""
        return self.blocks * self.frames_a_block

    @property
    def punctuation(self) -> float:
        """Frames a second that only tell.

        Each instance tells once a slide. Partitions that have no tuple in that block get a frame without
        tuples.
        """
        return self.instances / self.slide * (self.routed - self.frames_a_block)

    @property
    def all_frames(self) -> float:
        """Frames a second, with tuples or not."""
        return self.frames + self.punctuation

    @property
    def transactions(self) -> float:
        """Transactions a second of all instances."""
        return self.instances / self.commit

    @property
    def partitions_a_transaction(self) -> float:
        """Expected number of routed partitions that a transaction writes to.

        A transaction that tells writes to all of them.
        """
        with_tuples = touched(self.routed, self.rate / self.instances * self.commit)
        tells = min(1.0, self.commit / self.slide)
        return with_tuples + tells * (self.routed - with_tuples)

    @property
    def markers(self) -> float:
        """Transaction markers a second: one in each partition that a transaction writes to,
        and one with its offsets.
        """
        return self.transactions * (self.partitions_a_transaction + 1)

    @property
    def bucket_lanes(self) -> int:
        """Bytes of the lanes that one bucket keeps: merged offsets, marks, and how far its watched
        partitions are read.
        """
        # The routed partitions are divided among the buckets, rounded up.
        watched = -(-self.routed // self.buckets)
        return 8 * (self.routed + self.routed * self.inputs + watched * self.inputs)

    @property
    def delay(self) -> float:
        """Most seconds that a tuple waits until a micro-batch has it: in a block, in a transaction, and
        for the interval.
        """
        return self.linger + self.commit + self.batch


def touched(partitions: int, tuples: float) -> float:
    """Expected number of partitions that get at least one of `tuples` tuples.
    All partitions are equally likely.
    """
    # The formula below takes 0 to the power of `tuples`, which may be a fraction below 1 here.
    if partitions == 1:
        return min(1.0, tuples)
    return partitions * (1.0 - (1.0 - 1.0 / partitions) ** tuples)


@dataclass(frozen=True, kw_only=True)
class StreamLoad:
    """The keys of a stream with a given law, and their routing, as `law` and `measurements` have them."""

    law: str
    """Name of the law (`ZipfLaw.name`)."""
    slide_keys: float
    """Distinct keys in a slide."""
    window_keys: float
    """Distinct keys in a window."""
    ksr: float
    """(key, worker) pairs of a slide over its keys."""
    imbalance: float
    """Fullest worker over the mean, less 1."""
    hot: int
    """Keys with a worker's fair share or more."""
    top: float = 0.0
    """Share of the most frequent key."""
    record: int = 60
    """Bytes of a record of the input."""
    row: int = 32
    """Bytes of a routed row."""
