"""A pipeline on paper: its sizes and settings, and how often a second each thing happens in it. Pure arithmetic."""

from __future__ import annotations

from dataclasses import dataclass, replace

RANGE_END = 0.005
"""Seconds that Spark's source waits at the end of a partition's range (`fetch.max.wait.ms`, spark_consumers/sources.py)."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Sizes and settings of one pipeline. Times are seconds, sizes bytes.

    rate: tuples a second. inputs, routed: partitions of the input topic and of the routed topic. tasks: tasks of the
    combiner in a micro-batch. block, linger, commit, group, snapshot: as in the settings (block_tuples, linger,
    commit_interval, and so on). The other fields say what the pipeline runs on. An instance has one core, because its
    data plane is one thread. The driver and the controller have one core each.
    """

    rate: float = 1e7
    inputs: int = 100
    routed: int = 1_000
    instances: int = 100
    buckets: int = 1_000
    tasks: int = 1_000
    slide: float = 1.0
    batch: float = 1.0
    commit: float = 0.5
    block: int = 50_000
    linger: float = 0.05
    group: int = 10
    snapshot: float = 30.0
    replicas: int = 3
    brokers: int = 12
    broker_cores: int = 16
    executor_cores: int = 1_000

    def part(self, parts: int) -> Shape:
        """One of `parts` pipelines that share the keys, the input and the machines.

        The brokers are not divided: each pipeline uses all of them.
        """
        names = ("inputs", "routed", "instances", "buckets", "tasks", "executor_cores")
        shares = {name: max(1, getattr(self, name) // parts) for name in names}
        return replace(self, rate=self.rate / parts, **shares)

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
        """Expected number of workers that get a frame of a block."""
        return touched(self.routed, self.block_tuples)

    @property
    def frames(self) -> float:
        """Frames with tuples a second."""
        return self.blocks * self.frames_a_block

    @property
    def punctuation(self) -> float:
        """Frames a second that only tell.

        Each instance tells once a slide. Workers that have no tuple in that block get a frame without tuples.
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
        """Transaction markers a second: one in each partition that a transaction writes to, and one with its offsets."""
        return self.transactions * (self.partitions_a_transaction + 1)

    @property
    def bucket_lanes(self) -> int:
        """Bytes of the lanes that one bucket keeps: merged offsets, marks, and how far its watched partitions are read."""
        # The routed partitions are divided among the buckets, rounded up.
        watched = -(-self.routed // self.buckets)
        return 8 * (self.routed + self.routed * self.inputs + watched * self.inputs)

    @property
    def delay(self) -> float:
        """Most seconds that a tuple waits until a micro-batch has it: in a block, in a transaction, and for the interval."""
        return self.linger + self.commit + self.batch


def touched(partitions: int, tuples: float) -> float:
    """Expected number of partitions that get at least one of `tuples` tuples. All partitions are equally likely."""
    # The formula below takes 0 to the power of `tuples`, which may be a fraction below 1 here.
    if partitions == 1:
        return min(1.0, tuples)
    return partitions * (1.0 - (1.0 - 1.0 / partitions) ** tuples)


@dataclass(frozen=True, kw_only=True)
class StreamLoad:
    """The keys of a stream with a given law, and their routing, as `law` and `measurements` have them.

    law: name of the law. slide_keys, window_keys: distinct keys in a slide and in a window. ksr: (key, worker) pairs of a
    slide over its keys. imbalance: fullest worker over the mean, less 1. hot: keys with a worker's fair share or more.
    top: share of the most frequent key. record, row: bytes of a record of the input and of a routed row.
    """

    law: str
    slide_keys: float
    window_keys: float
    ksr: float
    imbalance: float
    hot: int
    top: float = 0.0
    record: int = 60
    row: int = 32
