"""A pipeline on paper: its numbers, and how often a second each thing in it happens. Pure arithmetic."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Sizes and settings of one pipeline. Lengths of time are seconds, sizes bytes.

    tasks: of the combiner in a micro-batch. block, linger, commit, group, snapshot: as in the settings. The others say
    what it runs on: an instance has one core (its data plane is one thread), driver and controller have one each.
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

    def part(self, groups: int) -> Shape:
        """One of so many pipelines that share the keys, the input and the machines. Brokers are shared as they are."""
        names = ("inputs", "routed", "instances", "buckets", "tasks", "executor_cores")
        shares = {name: max(1, getattr(self, name) // groups) for name in names}
        return replace(self, rate=self.rate / groups, **shares)

    @property
    def block_tuples(self) -> float:
        """Tuples in a block: as many as come in a linger, at most `block`."""
        return min(self.block, max(1.0, self.rate / self.instances * self.linger))

    @property
    def blocks(self) -> float:
        """Blocks a second, of all instances."""
        return self.rate / self.block_tuples

    @property
    def frames_a_block(self) -> float:
        """Workers that get a frame of a block."""
        return touched(self.routed, self.block_tuples)

    @property
    def frames(self) -> float:
        """Frames with tuples a second."""
        return self.blocks * self.frames_a_block

    @property
    def punctuation(self) -> float:
        """Frames a second that only tell: once a slide and instance, to each worker that has no tuple in that block."""
        return self.instances / self.slide * (self.routed - self.frames_a_block)

    @property
    def all_frames(self) -> float:
        """Frames a second, with tuples or not."""
        return self.frames + self.punctuation

    @property
    def transactions(self) -> float:
        """Transactions a second, of all instances."""
        return self.instances / self.commit

    @property
    def partitions_a_transaction(self) -> float:
        """Routed partitions that a transaction writes to: all of them when the workers are told in it."""
        with_tuples = touched(self.routed, self.rate / self.instances * self.commit)
        tells = min(1.0, self.commit / self.slide)
        return with_tuples + tells * (self.routed - with_tuples)

    @property
    def markers(self) -> float:
        """Transaction markers a second: one in each partition written to and one with the offsets."""
        return self.transactions * (self.partitions_a_transaction + 1)

    @property
    def bucket_lanes(self) -> int:
        """Bytes of the lanes that one bucket keeps: merged offsets, marks, and how far the watched ones are read."""
        watched = -(-self.routed // self.buckets)
        return 8 * (self.routed + self.routed * self.inputs + watched * self.inputs)

    @property
    def delay(self) -> float:
        """Seconds that a tuple waits at most before a micro-batch has it: in a block, a transaction, an interval."""
        return self.linger + self.commit + self.batch


def touched(partitions: int, tuples: float) -> float:
    """How many of so many equally loaded partitions get at least one of so many tuples, as expected."""
    if partitions == 1:
        return min(1.0, tuples)
    return partitions * (1.0 - (1.0 - 1.0 / partitions) ** tuples)


@dataclass(frozen=True, kw_only=True)
class Load:
    """What the keys do: of a law, as `benchmarks.scale.load` finds it.

    slide_keys, window_keys: distinct keys in a slide and in a window. ksr: (key, worker) pairs of a slide over its keys.
    hot: keys with a fair share of a worker or more. top: share of the first key. record, row: bytes of a record of the
    input and of a routed row. law: its name. imbalance: fullest worker over the mean, less 1.
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
