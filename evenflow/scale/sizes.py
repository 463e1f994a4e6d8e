"""The smallest pipeline that meets a demand: instances, brokers, executors, settings, memory.

Every place is planned for a share of its cores, so that there is room to catch up. The delay is divided into
linger, commit interval and batch interval such that what stands around the work costs least.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from evenflow.scale.costs import Term, Units, broker_partitions, broker_traffic, by_place, cores_of, terms
from evenflow.scale.demand import Demand
from evenflow.scale.law import ZipfLaw
from evenflow.scale.measurements import Measurements
from evenflow.scale.shape import RANGE_END, Shape, StreamLoad
from evenflow.settings.sections.sharing import chosen_partitions

INSTANCE_SHARE = 0.6
"""Share of an instance's core that is planned for. The rest is room to catch up."""
BROKER_SHARE = 0.5
"""Share of the brokers' cores, and of their network cards, that is planned for.
The others can take a dead one's part.
"""
BATCH_SHARE = 0.75
"""Share of its interval that a whole micro-batch may take."""
MOST_INSTANCES, MOST_BUCKETS, MOST_BLOCK = 256, 1_024, 1_000_000
"""The ends of the settings `partitioner.instances`, `spark.buckets` and `partitioner.block_tuples`."""
LEAST_BLOCK = 50_000
"""`block_tuples` as it comes: blocks are not made smaller than that."""
MOST_BROKER_PARTITIONS = 4_000
"""Replicas of partitions on a broker (KIP-578)."""
BUCKET_BYTES = 256e6
"""Most bytes of state in a bucket, which one task takes in."""
CONTROLLER_SHARE = 0.5
TRANSACTION_SHARE = 0.25
"""Share of the commit interval that an instance may wait for a commit. Nothing is read meanwhile."""

_COMBINING = {"tuples", "frames", "punctuation", "ranges", "blobs", "lanes told"}
"""Topics of the executors' bill that belong to combining. The others belong to reducing."""
_GIB = 2**30
_PROCESS = 400e6
"""Bytes of a partitioner, or of a Python worker, without what depends on the stream (docs/deploy.md)."""
_LINGERS, _COMMITS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3), (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
"""Shares of the delay that are tried as linger and as commit interval. The rest is the batch interval."""
_LEAST_LINGER, _LEAST_COMMIT = 0.01, 0.05
_TOGETHER = (1, 2, 4, 8, 16)
"""Workers that share a routed partition, as they are tried. There are no fewer partitions than evenflow
itself would choose, because a partition is combined on one core.
"""


@dataclass(frozen=True)
class Memory:
    """Bytes that are planned for one process of each kind, and for state."""

    instance: float
    """An instance of the partitioner."""
    executor_heap: float
    """Java heap of an executor."""
    executor_overhead: float
    """What an executor needs beside its heap: Python workers, RocksDB, state."""
    driver_heap: float
    """Java heap of the driver."""
    state: float
    """State of all buckets together."""
    bucket: float
    """State of one bucket."""
    page_cache: float
    """Page cache of one broker, for what is written and not yet read."""


@dataclass(frozen=True)
class Sizes:
    """A pipeline that was planned for a demand."""

    demand: Demand
    """What was asked."""
    shape: Shape
    """The pipeline's sizes and settings."""
    load: StreamLoad
    """The stream's keys and their routing, as far as the bill needs them."""
    units: Units
    """What one thing of each kind costs, with the work that a tuple costs beside count and sum."""
    executors: int
    """How many executors of Spark."""
    partitions_per_slot: int
    """The setting that makes the executors follow."""
    batch_seconds: float
    """How long a micro-batch takes."""
    memory: Memory
    """What each process needs."""
    misfits: tuple[str, ...]
    """Why the demand cannot be met, in words. Empty if it can."""
    measurements: Measurements
    """Where the unit costs and the routing are from."""

    @property
    def bill(self) -> list[Term]:
        """Cores of each topic at each place."""
        return terms(self.shape, self.load, self.units)

    def busy(self, shape: Shape | None = None, load: StreamLoad | None = None) -> dict[str, float]:
        """The share that each place is busy: cores of each place, a broker's card, a transaction and a
        micro-batch of their intervals. shape, load: others than the planned ones.
        """
        shape, load = shape or self.shape, load or self.load
        needed, cores = by_place(terms(shape, load, self.units)), cores_of(shape)
        shares: dict[str, float] = {place: needed[place] / cores[place] for place in needed}
        shares["network"] = max(broker_traffic(shape, load, self.units)) / self.demand.network
        shares["transaction"] = _transaction_share(shape, self.measurements)
        shares["micro-batch"] = batch_seconds(shape, load, self.units) / shape.batch
        return shares

    @property
    def frames_per_batch(self) -> float:
        """Offsets of the routed topic that come in a micro-batch: those of frames and of markers."""
        return (self.shape.all_frames + self.shape.markers) * self.shape.batch


def sizes(demand: Demand, measurements: Measurements) -> Sizes:
    """The pipeline for this demand that costs the fewest cores beside the work itself.

    If none meets the demand, the one that comes nearest, with what does not fit in `misfits`.
    """
    units = replace(measurements.units, tuple_combined=measurements.units.tuple_combined + demand.work)
    load = load_of(demand, measurements, rate=demand.rate)
    planned = [_planned(demand, shape, load, units, measurements) for shape in _divided(demand, load, units)]
    return min(
        planned,
        key=lambda candidate: (
            len(candidate.misfits),
            max(candidate.busy().values()) if candidate.misfits else 0.0,
            sum(term.cores for term in candidate.bill if not term.work),
        ),
    )


def load_of(demand: Demand, measurements: Measurements, *, rate: float) -> StreamLoad:
    """The keys of the demand's stream at this rate (tuples a second), as the default partitioner routes
    them.
    """
    ksr, imbalance = measurements.routing_at(demand.zipf)
    law = ZipfLaw(f"Zipf {demand.zipf:g}", demand.zipf, demand.keys)
    load = law.load(
        rate=rate,
        slide=demand.slide,
        window=demand.window,
        workers=demand.workers,
        ksr=ksr,
        imbalance=imbalance,
    )
    return replace(load, record=demand.record, row=round(measurements.state["row_bytes"]))


def batch_parts(shape: Shape, load: StreamLoad, units: Units) -> dict[str, float]:
    """Seconds of a micro-batch by topic: the driver's part, then combining, then reducing."""
    bill = terms(shape, load, units)
    driver = {term.topic: term.cores * shape.batch for term in bill if term.place == "driver"}
    return driver | _combine_parts(shape, load, bill) | _reduce_parts(shape, bill)


def batch_seconds(shape: Shape, load: StreamLoad, units: Units) -> float:
    """Seconds that a micro-batch takes."""
    return sum(batch_parts(shape, load, units).values())


def _combine_parts(shape: Shape, load: StreamLoad, bill: list[Term]) -> dict[str, float]:
    # As many tasks as workers: each has one. Fewer: a task has several, of which at most one is the fullest.
    fullest = 1 + load.imbalance * shape.tasks / shape.workers
    parts = {
        term.topic: fullest * term.cores * shape.batch / shape.tasks
        for term in bill
        if term.place == "executors" and term.topic in _COMBINING
    }
    return parts | {"ends of ranges": shape.routed / shape.tasks * RANGE_END}


def _reduce_parts(shape: Shape, bill: list[Term]) -> dict[str, float]:
    return {
        term.topic: term.cores * shape.batch / shape.buckets
        for term in bill
        if term.place == "executors" and term.topic not in _COMBINING
    }


def state_bytes(shape: Shape, load: StreamLoad, window: float) -> float:
    """Bytes of the open panes of all buckets, a row for each key of each pane: an upper bound."""
    return window / shape.slide * load.slide_keys * load.row + shape.buckets * shape.bucket_lanes


def _transaction_share(shape: Shape, measurements: Measurements) -> float:
    """How much of a commit interval the instance waits for the commit."""
    return measurements.transaction_seconds(shape.partitions_a_transaction) / shape.commit


def _divided(demand: Demand, load: StreamLoad, units: Units) -> Iterator[Shape]:
    """Shapes that divide the delay differently, and the workers among fewer or more routed partitions, each
    with as many instances as it needs.
    """
    divisions: set[tuple[float, float]] = set()
    shared = {
        max(chosen_partitions(demand.workers), -(-demand.workers // together)) for together in _TOGETHER
    }
    for share in _LINGERS:
        for other in _COMMITS:
            linger = _rounded_down(max(_LEAST_LINGER, share * demand.delay))
            commit = _rounded_down(max(_LEAST_COMMIT, other * demand.delay))
            batch = math.floor(100 * (demand.delay - linger - commit) + 1e-6) / 100
            # Short delays round several shares to the same division.
            if batch > 0 and (linger, commit) not in divisions:
                divisions.add((linger, commit))
                for routed in sorted(shared):
                    shape = _with_instances(demand, load, units, linger, commit, batch, routed)
                    yield _with_tasks(demand, shape, load, units)


def _with_instances(
    demand: Demand, load: StreamLoad, units: Units, linger: float, commit: float, batch: float, routed: int
) -> Shape:
    instances = 1
    while True:
        tuples = demand.rate / instances * linger
        shape = Shape(
            rate=demand.rate,
            inputs=min(MOST_INSTANCES, max(4, 2 * instances)),
            routed=routed,
            shared_by=demand.workers / routed,
            instances=instances,
            buckets=2,
            tasks=1,
            slide=demand.slide,
            batch=batch,
            commit=commit,
            # A fifth more, so that a busy instance does not cut its blocks earlier than `linger` does.
            block=min(MOST_BLOCK, max(LEAST_BLOCK, _rounded_up(1.2 * tuples))),
            linger=linger,
            replicas=demand.replicas,
            brokers=1,
            broker_cores=demand.broker_cores,
            executor_cores=1,
        )
        # More instances have more transactions and smaller frames, so their cost is computed anew for each
        # number.
        needed = math.ceil(by_place(terms(shape, load, units))["instances"] / INSTANCE_SHARE)
        if needed <= instances or instances == MOST_INSTANCES:
            return shape
        instances = min(MOST_INSTANCES, needed)


def _with_tasks(demand: Demand, shape: Shape, load: StreamLoad, units: Units) -> Shape:
    """The shape with as few tasks and buckets as keep a micro-batch within its share of the interval.

    The step that takes longer gets more of them. If that does not suffice, the shape whose micro-batch is the
    shortest.
    """
    state = state_bytes(shape, load, demand.window)
    shape = replace(shape, buckets=min(MOST_BUCKETS, max(2, math.ceil(state / BUCKET_BYTES))))
    best, least = shape, math.inf
    while True:
        bill = terms(shape, load, units)
        combining, reducing = _combine_parts(shape, load, bill), _reduce_parts(shape, bill)
        seconds = batch_seconds(shape, load, units)
        if seconds < least:
            best, least = shape, seconds
        if seconds <= BATCH_SHARE * shape.batch:
            return shape
        if shape.tasks < shape.routed and (
            sum(combining.values()) >= sum(reducing.values()) or shape.buckets == MOST_BUCKETS
        ):
            shape = replace(shape, tasks=min(shape.routed, _more(shape.tasks)))
        elif shape.buckets < MOST_BUCKETS:
            shape = replace(shape, buckets=min(MOST_BUCKETS, _more(shape.buckets)))
        else:
            return best
        # Too many tasks cost the driver more than they save. From there on it only gets worse.
        if seconds > 2 * least:
            return best


def _planned(
    demand: Demand, shape: Shape, load: StreamLoad, units: Units, measurements: Measurements
) -> Sizes:
    """The shape with its executors and brokers, its memory, and what does not fit."""
    per_core = max(1, demand.workers // max(shape.tasks, shape.buckets))
    cores = max(min(shape.routed, math.ceil(demand.workers / per_core)), shape.buckets)
    # Every frame is read by an executor, whose card is taken to be that of a broker.
    bytes_read = shape.rate * load.row + shape.all_frames * units.frame_bytes
    executors = max(
        math.ceil(cores / demand.executor_cores), math.ceil(bytes_read / (BROKER_SHARE * demand.network))
    )
    shape = replace(shape, executor_cores=executors * demand.executor_cores)
    shape = replace(shape, brokers=_brokers(demand, shape, load, units))
    seconds = batch_seconds(shape, load, units)
    return Sizes(
        demand=demand,
        shape=shape,
        load=load,
        units=units,
        executors=executors,
        partitions_per_slot=per_core,
        batch_seconds=seconds,
        memory=_memory(demand, shape, load, measurements, executors, units),
        misfits=tuple(_misfits(demand, shape, load, units, measurements)),
        measurements=measurements,
    )


def _brokers(demand: Demand, shape: Shape, load: StreamLoad, units: Units) -> int:
    # The totals of the cluster: what one broker would bear. Each is divided by what a broker can take.
    single_broker = replace(shape, brokers=1)
    cores = by_place(terms(single_broker, load, units))["brokers"]
    return max(
        demand.replicas,
        math.ceil(cores / (BROKER_SHARE * demand.broker_cores)),
        math.ceil(max(broker_traffic(single_broker, load, units)) / (BROKER_SHARE * demand.network)),
        math.ceil(broker_partitions(single_broker) / MOST_BROKER_PARTITIONS),
    )


def _memory(
    demand: Demand, shape: Shape, load: StreamLoad, measurements: Measurements, executors: int, units: Units
) -> Memory:
    state = state_bytes(shape, load, demand.window)
    learned = measurements.state["state_bytes"] * shape.workers / 1_000
    # A block is there as records, as columns, sorted by worker and as frames.
    block = 4 * min(shape.block, shape.block_tuples) * (load.record + load.row)
    at_once = min(demand.executor_cores, math.ceil(shape.buckets / executors))
    return Memory(
        instance=_room(_PROCESS + learned + block),
        executor_heap=_room(1e9 + 1e8 * demand.executor_cores),
        # A Python worker for each task at once, RocksDB and Java beside its heap, and state twice: as read
        # and as written.
        executor_overhead=_room(_PROCESS * (1 + demand.executor_cores) + 2 * at_once * state / shape.buckets),
        driver_heap=2.0 * _GIB if shape.tasks + shape.buckets <= 500 else 4.0 * _GIB,
        state=state,
        bucket=state / shape.buckets,
        page_cache=broker_traffic(shape, load, units)[0] * (shape.delay + shape.batch),
    )


def _misfits(
    demand: Demand, shape: Shape, load: StreamLoad, units: Units, measurements: Measurements
) -> Iterator[str]:
    seconds = batch_seconds(shape, load, units)
    needed = by_place(terms(shape, load, units))
    share = needed["instances"] / shape.instances
    if share > INSTANCE_SHARE + 1e-9:
        yield (
            f"{shape.instances} instances, the most there can be, would be {share:.0%} busy: "
            "divide the keys among several queries (docs/scale.md)"
        )
    if seconds > BATCH_SHARE * shape.batch:
        yield (
            f"a micro-batch takes {seconds:.2g} s, more than {BATCH_SHARE:.0%} of its interval of"
            f" {shape.batch:g} s: allow a longer delay, or ask for more workers if they are what is busy"
        )
    waits = _transaction_share(shape, measurements)
    if waits > TRANSACTION_SHARE:
        yield (
            f"a transaction over {shape.partitions_a_transaction:,.0f} partitions takes {waits:.0%} of its"
            f" interval of {shape.commit:g} s, and nothing is read meanwhile: allow a longer delay,"
            " or ask for fewer workers"
        )
    bucket = state_bytes(shape, load, demand.window) / shape.buckets
    if bucket > BUCKET_BYTES:
        yield (
            f"{shape.buckets:,} buckets, the most there can be, hold {bucket / 1e6:,.0f} MB each: "
            "a longer slide or a shorter window, or several queries"
        )
    if needed["controller"] > CONTROLLER_SHARE:
        yield "the controller needs more than its core: allow a longer delay"


def _more(number: int) -> int:
    """A fifth more, rounded up."""
    return number + math.ceil(number / 5)


def _rounded_down(seconds: float) -> float:
    """The time with two digits that count, at most `seconds`, in whole milliseconds."""
    digit = 10.0 ** (math.floor(math.log10(seconds)) - 1)
    return max(0.001, round(math.floor(seconds / digit + 1e-9) * digit, 3))


def _rounded_up(number: float) -> int:
    """The whole number with two digits that count, at least `number`."""
    digit = 10 ** max(0, math.floor(math.log10(max(1.0, number))) - 1)
    return math.ceil(number / digit - 1e-9) * digit


def _room(size: float) -> float:
    """Bytes of a limit for this size: a quarter more, in whole 256 MiB."""
    step = _GIB / 4
    return math.ceil(1.25 * size / step) * step
