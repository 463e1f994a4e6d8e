"""Unit costs, and the bill of a pipeline: counts of `Shape` times unit costs. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple

from evenflow.scale.shape import Shape, StreamLoad

Place = Literal["instances", "brokers", "executors", "driver", "controller", "table reducer"]
BUDGET = 0.1
"""Share of a place's cores that one term other than the work itself may take."""


@dataclass(frozen=True, kw_only=True)
class Units:
    """CPU seconds of one thing of each kind, or bytes if the name ends so.
    docs/scale.md says how each is measured.

    The values are measured by `evenflow bench scale`, or by other benchmarks
    (`benchmarks/scale/documented_costs.py`).
    """

    tuple_partitioned: float
    """A tuple through the partitioner's process, parsing and client included."""
    tuple_brokered: float
    """A tuple in and out of a broker, one replica."""
    tuple_combined: float
    """A tuple in the combiner's core."""
    partial_merged: float
    """A partial in the reducer's core."""
    row_emitted: float
    """A JSON result row, all processes."""
    header_packed: float
    """The header of a block."""
    frame_packed: float
    """A frame under a header that is packed already."""
    frame_produced: float
    """A frame in the partitioner's Kafka client."""
    frame_appended: float
    """A frame that is a record batch of its own, at the broker."""
    frame_scanned: float
    """A record in Spark's Kafka source."""
    frame_decoded: float
    """A frame in the combiner whose header is remembered."""
    header_decoded: float
    """A header that the combiner does not remember."""
    transaction_client: float
    """A transaction, partitioner's client."""
    transaction_broker: float
    """A transaction, broker."""
    marker: float
    """A partition in a transaction, broker: registration, marker, index."""
    enlisted: float
    """A partition in a transaction, partitioner's client."""
    range: float
    """A routed partition in a micro-batch of the combiner, with a frame that tells."""
    blob: float
    """A blob of one segment, packed, read and merged."""
    segment: float
    """A segment in a blob, packed, read and merged."""
    mark: float
    """A mark of one input partition in a blob."""
    lane: float
    """A lane told in a blob."""
    bucket: float
    """A bucket in a micro-batch without tuples."""
    lane_state: float
    """A lane that a bucket keeps, for each micro-batch."""
    task: float
    """A task of Spark that does nothing, JVM."""
    micro_batch: float
    """A micro-batch of Spark by itself, JVM."""
    telemetry_written: float
    """A partitioner's telemetry record with the loads of 1,000 workers."""
    telemetry_read: float
    """A partitioner's telemetry record read, without the loads."""
    load_read: float
    """A worker's load in a telemetry record, read."""
    judged: float
    """An observation judged and exported by the controller."""
    plan_read: float
    """A plan read by one reader."""
    value_sent: float
    """A value in a message of `dalton-cooperative`, written."""
    value_read: float
    """A value in such a message, read."""
    value_merged: float
    """A value in such a message, merged into the common table."""
    snapshot: float
    """A snapshot of an instance's learned state at 1,000 workers."""
    peer_read: float
    """The progress of one input partition as another instance reads it."""
    frame_bytes: float
    """Bytes of a frame without its rows."""
    snapshot_bytes: float
    """Bytes of a snapshot."""

    def rounded(self) -> dict[str, float]:
        """The unit costs for a table, with three significant digits."""
        return {entry.name: float(f"{getattr(self, entry.name):.3g}") for entry in fields(self)}


class Term(NamedTuple):
    """One topic at one place."""

    topic: str
    """What is done there, in words: "tuples", "frames", "transactions"."""
    place: Place
    """Whose cores do it."""
    count: float  # type: ignore[assignment]  # hides tuple.count, which is not used here
    """How often a second."""
    cores: float
    """How many cores it takes."""
    work: bool = False
    """Whether it is the work itself, which would be there on a single machine, too."""


def terms(shape: Shape, load: StreamLoad, units: Units, *, cooperative: bool = False) -> list[Term]:
    """The bill. cooperative: the partitioners exchange tables (`dalton-cooperative`) once a slide."""
    bill = [*_work(shape, load, units), *_frames(shape, units), *_transactions(shape, units)]
    bill += [*_blobs(shape, units), *_lanes(shape, units), *_control(shape, units), *_state(shape, units)]
    return bill + (_sync(shape, load, units) if cooperative else [])


def _work(shape: Shape, load: StreamLoad, units: Units) -> list[Term]:
    partials = partials_a_second(shape, load)
    rows = load.window_keys / shape.slide
    return [
        Term("tuples", "instances", shape.rate, shape.rate * units.tuple_partitioned, True),
        Term("tuples", "brokers", shape.rate, shape.rate * units.tuple_brokered * shape.replicas, True),
        Term("tuples", "executors", shape.rate, shape.rate * units.tuple_combined, True),
        Term("partials", "executors", partials, partials * units.partial_merged, True),
        Term("result rows", "executors", rows, rows * units.row_emitted, True),
    ]


def partials_a_second(shape: Shape, load: StreamLoad) -> float:
    """Partials a second. Each (key, worker) pair of a pane gives one partial in each micro-batch that the
    pane lies in.
    """
    return load.slide_keys * load.ksr / min(shape.slide, shape.batch)


def _frames(shape: Shape, units: Units) -> list[Term]:
    return [
        Term("headers", "instances", shape.blocks, shape.blocks * units.header_packed),
        *_passed("frames", shape.frames, shape, units),
        *_passed("punctuation", shape.punctuation, shape, units),
    ]


def _passed(topic: str, count: float, shape: Shape, units: Units) -> list[Term]:
    """The way of `count` frames a second from the partitioner through the broker into the combiner.

    Every frame is charged for decoding its header: at this size the combiner remembers fewer headers than
    there are blocks.
    """
    read = units.frame_scanned + units.frame_decoded + units.header_decoded
    return [
        Term(topic, "instances", count, count * (units.frame_packed + units.frame_produced)),
        Term(topic, "brokers", count, count * units.frame_appended * shape.replicas),
        Term(topic, "executors", count, count * read),
    ]


def _transactions(shape: Shape, units: Units) -> list[Term]:
    client = shape.transactions * units.transaction_client + shape.markers * units.enlisted
    broker = shape.transactions * units.transaction_broker + shape.markers * units.marker * shape.replicas
    return [
        Term("transactions", "instances", shape.transactions, client),
        Term("transactions", "brokers", shape.markers, broker),
    ]


def _blobs(shape: Shape, units: Units) -> list[Term]:
    """Each task has a blob for each bucket.
    A bucket's blobs hold segments and lines of marks of all routed partitions.
    """
    blobs = shape.tasks * shape.buckets / shape.batch
    segments = shape.buckets * shape.routed / shape.batch
    marks = segments * shape.inputs
    tasks = (shape.tasks + shape.buckets) / shape.batch
    # A micro-batch reads one range of offsets of each routed partition.
    ranges = shape.routed / shape.batch
    return [
        Term("ranges", "executors", ranges, ranges * units.range),
        Term("blobs", "executors", blobs, blobs * units.blob),
        Term("segments", "executors", segments, segments * units.segment),
        Term("marks in blobs", "executors", marks, marks * units.mark),
        Term("tasks", "driver", tasks, tasks * units.task),
        Term("micro-batches", "driver", 1 / shape.batch, units.micro_batch / shape.batch),
    ]


def _lanes(shape: Shape, units: Units) -> list[Term]:
    lanes_told = shape.routed * shape.inputs / shape.batch
    lanes_kept = shape.buckets * lanes_told
    buckets = shape.buckets / shape.batch
    return [
        Term("lanes told", "executors", lanes_told, lanes_told * units.lane),
        Term("lanes kept", "executors", lanes_kept, lanes_kept * units.lane_state + buckets * units.bucket),
    ]


def _control(shape: Shape, units: Units) -> list[Term]:
    # A record of telemetry for each transaction of an instance, and two for each micro-batch.
    records = shape.transactions + 2 / shape.batch
    reading = records * units.telemetry_read + shape.transactions * shape.workers * units.load_read
    plans = 1 / (shape.group * shape.batch)
    # Every instance reads a plan, and so do two readers more.
    readers = plans * (shape.instances + 2)
    return [
        Term("telemetry", "instances", shape.transactions, shape.transactions * units.telemetry_written),
        Term("telemetry", "controller", records, reading),
        Term("decisions", "controller", 1 / shape.batch, units.judged / shape.batch),
        Term("plans", "instances", readers, readers * units.plan_read),
    ]


def _state(shape: Shape, units: Units) -> list[Term]:
    snapshots = shape.instances / shape.snapshot
    peers = float(shape.instances * shape.inputs) if shape.instances > 1 else 0.0
    return [
        Term("snapshots", "instances", snapshots, snapshots * units.snapshot),
        Term("peers' progress", "instances", peers, peers * units.peer_read),
    ]


def _sync(shape: Shape, load: StreamLoad, units: Units) -> list[Term]:
    """Each instance sends its rows of the hot keys, and gets the common rows."""
    values = sync_values(shape, load)
    return [
        Term("sync", "instances", values, values * (units.value_sent + units.value_read)),
        Term("sync", "table reducer", values, values * (units.value_read + units.value_merged)),
    ]


def sync_values(shape: Shape, load: StreamLoad) -> float:
    """Values (8 bytes each) a second that cooperating partitioners send. They receive as many."""
    return shape.instances * load.hot * shape.workers / shape.slide


def sync_message_bytes(shape: Shape, load: StreamLoad) -> float:
    """Bytes of one message of a cooperating partitioner.

    The message has a row of values for each hot key, and key and frequency of as many keys as there are
    workers.
    """
    return 8.0 * load.hot * (shape.workers + 1) + 16.0 * shape.workers


def cores_of(shape: Shape) -> dict[Place, float]:
    """Cores that each place has."""
    return {
        "instances": float(shape.instances),
        "brokers": float(shape.brokers * shape.broker_cores),
        "executors": float(shape.executor_cores),
        "driver": 1.0,
        "controller": 1.0,
        "table reducer": 1.0,
    }


def shares(bill: Iterable[Term], cores: Mapping[Place, float]) -> dict[tuple[str, Place], float]:
    """The share of its place's cores that each topic takes."""
    return {(term.topic, term.place): term.cores / cores[term.place] for term in bill}


def by_place(bill: Iterable[Term]) -> dict[Place, float]:
    """Cores that each place needs."""
    cores: dict[Place, float] = {}
    for term in bill:
        cores[term.place] = cores.get(term.place, 0.0) + term.cores
    return cores


def broker_traffic(shape: Shape, load: StreamLoad, units: Units) -> tuple[float, float]:
    """Bytes a second into and out of one broker, replicas included. Results and partials are not counted."""
    frames = shape.rate * load.row + shape.all_frames * units.frame_bytes
    snapshots = shape.instances / shape.snapshot * units.snapshot_bytes
    written = shape.rate * load.record + frames + snapshots
    read = shape.rate * load.record + frames
    return shape.replicas * written / shape.brokers, (read + (shape.replicas - 1) * written) / shape.brokers


def broker_partitions(shape: Shape) -> float:
    """Replicas of partitions on a broker: input, rejected, routed, results, and four of one partition
    each.
    """
    return (2 * shape.inputs + shape.routed + shape.buckets + 4) * shape.replicas / shape.brokers


def over_budget(bill: Iterable[Term], cores: Mapping[Place, float]) -> list[str]:
    """Topics that take more than the budget of their place, as `topic at place`.

    A place whose cores do not suffice stands as `all at place`.
    """
    bill = list(bill)
    needed = by_place(bill)
    full_places = [f"all at {place}" for place, most in cores.items() if needed.get(place, 0.0) > most]
    overhead = shares((term for term in bill if not term.work), cores)
    return full_places + [
        f"{topic} at {place}" for (topic, place), share in overhead.items() if share > BUDGET
    ]


class Side(NamedTuple):
    """A way to move a term: some fields of `Shape` all take one value of a range."""

    fields: tuple[str, ...]
    """The fields that take the value."""
    low: float
    """Least value."""
    high: float
    """Greatest value."""
    whole: bool = True
    """Whether the value is a whole number, of which less is better.
    Otherwise it is a time, of which more is better."""
    fixed: tuple[tuple[str, float], ...] = ()
    """Fields that are set besides, with their values."""

    def variant(self, shape: Shape, value: float) -> Shape:
        """The shape in which `fields` have this value."""
        # `Any`: fields of `Shape` are whole numbers or decimals.
        tried: dict[str, Any] = dict.fromkeys(self.fields, round(value) if self.whole else value)
        return replace(shape, **dict[str, Any](self.fixed), **tried)


def furthest(
    shape: Shape,
    load: StreamLoad,
    units: Units,
    topic: str,
    place: Place,
    side: Side,
    *,
    budget: float = BUDGET,
) -> float | None:
    """The value of `side` at which the term is just within its budget: the largest number,
    or the shortest time.

    The end of the range if the term is within its budget everywhere. None if it is nowhere.
    """

    def fits(value: float) -> bool:
        tried = side.variant(shape, value)
        bill = terms(tried, load, units, cooperative=place == "table reducer")
        return shares(bill, cores_of(tried))[(topic, place)] <= budget

    # A larger number costs more, a longer time less: the good end is the low one or the high one.
    good, bad = (side.low, side.high) if fits(side.low) else (side.high, side.low)
    if not fits(good):
        return None
    if fits(bad):
        return bad
    # Bisection. 60 halvings leave no more than the last bits of a double.
    for _ in range(60):
        middle = (good + bad) / 2
        good, bad = (middle, bad) if fits(middle) else (good, middle)
    return float(int(good)) if side.whole else good
