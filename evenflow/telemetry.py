"""Telemetry: what the parts of a pipeline say of themselves. The contract of `<query>.telemetry`.

Telemetry is for people and controllers, and no result depends on it. So records are written without
transactions, and a lost record does no harm. Each is one JSON record of one of four kinds:

* `partitioner`: from an instance, at each commit and at least every few seconds;
* `batch`: from a Spark stage, at the end of each micro-batch that had rows;
* `heartbeat`: from a Spark stage that has finished no micro-batch for a while: it is idle, or in a long one.
  The last one of an application that ends by itself says why;
* `decision`: from a controller, for each observation that it has judged.

None means "not known", never 0. All times are in ms. `time` and `started` are by the writer's clock, which
may differ from other clocks. The other times are event times. `parse` takes any bytes (rule "any bytes") and
refuses other versions. A reader compares `fingerprint` with that of its own query.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from evenflow.text.strict_json import read_object, shown

TELEMETRY_VERSION = 1
MOST_BYTES = 1_000_000
_DEEPEST = 12
"""Deepest nesting of a record: the observation of a decision is free JSON."""
_MOST_REASONS = 16
"""Most reasons for which batches are counted as cut short."""
_LONGEST = 2_000
"""Most characters of a decision's reason."""
LONGEST_WORDS = 300
"""Most characters of why an application has ended."""

Count = Annotated[int, Field(ge=0, le=2**62)]
EventTime = Annotated[int, Field(ge=-(2**62), le=2**62)]
Amount = Annotated[float, Field(ge=0, le=1e18)]
Name = Annotated[str, Field(min_length=1, max_length=250, pattern=r"^[\x20-\x7e]+$")]
Share = Annotated[float, Field(ge=0, le=1)]
Stage = Literal["fused", "combine", "reduce"]
Part = Literal["combine", "reduce"]


def parts_of(stage: Stage) -> tuple[Part, ...]:
    """The parts of the pipeline that a Spark stage runs."""
    return ("combine", "reduce") if stage == "fused" else (stage,)


def inputs_of(records: Iterable[PartitionerRecord], began_with: int) -> int:
    """How many input partitions the query has, by what instances say.
    began_with: how many this process has seen.
    """
    return max([began_with, *(record.inputs for record in records)])


# JSON has no tuples. Pydantic's strict mode would refuse a list where a tuple is asked for.
WorkerTimes = Annotated[
    list[Annotated[tuple[Count, Count, Amount], Field(strict=False)]], Field(max_length=4_096)
]
Latencies = Annotated[list[Annotated[tuple[Count, Count], Field(strict=False)]], Field(max_length=256)]


class Record(BaseModel):
    """The fields that all kinds have.
    A field that a newer evenflow writes, and this one does not know, is ignored.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, strict=True)

    # Not Literal[1], which would accept true for 1.
    v: Annotated[int, Field(ge=TELEMETRY_VERSION, le=TELEMETRY_VERSION)] = TELEMETRY_VERSION
    """Version of this format."""
    query: Name
    """Name of the query that the writer serves."""
    fingerprint: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    """Fingerprint of that query, which differs if another query has had this name."""
    time: Count
    """When the record was made, ms since 1970 by its writer's clock."""

    def encode(self) -> bytes:
        """The value of the Kafka record."""
        return self.model_dump_json().encode()


class StuckAt(BaseModel):
    """An input partition that is not read on."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, strict=True)

    partition: Count
    """The input partition."""
    offset: Count
    """The batch at this offset cannot be fetched."""
    why: Annotated[str, Field(max_length=300)]
    """What Kafka's client says."""


class Standstill(BaseModel):
    """Something that has not moved for a minute although it should."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, strict=True)

    what: Annotated[str, Field(max_length=60)]
    """Name of what stands still."""
    why: Annotated[str, Field(max_length=_LONGEST)]
    """A sentence for people."""


class HotKey(BaseModel):
    """One of the hottest keys of a period, by a sample."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, strict=True)

    key: Annotated[str, Field(max_length=100)]
    """The key for people: escaped, and cut if it is long."""
    length: Count
    """How many bytes the key has."""
    share: Share
    """The key's share of all tuples, whatever they cost."""
    holders: Count
    """At how many workers the key was seen."""
    workers: Annotated[list[Count], Field(max_length=64)] = []
    """The first of these workers, that with most of the key's tuples first."""
    parts: Annotated[list[Share], Field(max_length=64)] = []
    """The share of the key's tuples that each of `workers` got."""


class ExchangeState(BaseModel):
    """What an instance knows of the exchange that it is in."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, strict=True)

    instances: Count
    """How many instances there can be."""
    elected: bool
    """Whether this one makes the tables."""
    round: Count | None = None
    """Round of the newest table that the instance heard, None before the first."""
    members: Count = 0
    """How many instances' messages that table was made of, 0 before the first."""
    age_ms: Count | None = None
    """How long ago that table was heard, None before the first."""
    unanswered: Count = 0
    """Messages that the instance told since then."""
    bytes_in: Count = 0
    """Bytes of records that the instance read from the sync topic since `started`."""
    bytes_out: Count = 0
    """Bytes of records that the instance wrote to the sync topic since `started`."""
    rate_in: Amount | None = None
    """Bytes/s that it read from there in the last minute, None in its first second."""
    rate_out: Amount | None = None
    """Bytes/s that it wrote to there in the last minute, None in its first second."""
    lost: Count = 0
    """Records since `started` that were not delivered."""
    ignored: Count = 0
    """Records since `started` that were read and not used."""


class BatchState(BaseModel):
    """A micro-batch after its planning.

    bsi, bci, ksr and mpi are those of 001 eq. 2.2-2.5. With `reduce_` they are those of the reduce buckets
    that hashing gives, whose size is counted in clusters.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, strict=True)

    tuples: Count
    """Tuples that the batch had."""
    keys: Count
    """Distinct keys of the batch."""
    split: Count
    """Keys in several data blocks."""
    bsi: Amount
    """Imbalance of sizes of the data blocks: the fullest less the mean, in tuples."""
    bci: Amount
    """Imbalance of cardinalities of the data blocks: the same in distinct keys."""
    ksr: Amount
    """Key split ratio of the data blocks: fragments / keys. 1 if no key is split."""
    mpi: Amount
    """Micro-batch partitioning index of the data blocks: the mean of these three."""
    reduce_bsi: Amount
    """`bsi` of the reduce buckets, in clusters."""
    reduce_bci: Amount
    """`bci` of the reduce buckets."""
    reduce_ksr: Amount
    """`ksr` of the reduce buckets."""
    reduce_mpi: Amount
    """`mpi` of the reduce buckets."""
    took_ms: Amount | None = None
    """Time from the batch's cut until its last frame was handed to Kafka's client."""
    late: Amount | None = None
    """How long after the end of its interval that was, as a share of the interval. None if the interval is
    one of event time."""


class BatchesState(BaseModel):
    """What an instance says of its micro-batches."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, strict=True)

    interval_ms: Count
    """Length of a batch interval."""
    clock: Literal["event", "processing"]
    """Whether intervals are of event time or of the clock's."""
    count: Count
    """How many batches had tuples, since `started`."""
    cut_short: Annotated[
        dict[Annotated[str, Field(pattern=r"^[a-z]{1,20}$")], Count], Field(max_length=_MOST_REASONS)
    ] = {}
    """How many of these were cut before their interval was over, by the reason."""
    held: Count = 0
    """Tuples that were read and not routed yet."""
    held_bytes: Count = 0
    """Memory of what was read and not routed yet."""
    release_ms: Amount | None = None
    """How long before the end of its interval the next batch is cut."""
    by_fallback: Count | None = None
    """How many batches another rule planned in place of the partitioner's own (`Partitioner.by_fallback`),
    None if it has no other rule."""
    last: BatchState | None = None
    """The last batch, None before the first."""


class CostsState(BaseModel):
    """What an instance says of the costs of tuples, since `started`."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, strict=True)

    below: Count
    """How many tuples had less than 1, or no number, and count as 1."""
    above: Count
    """How many tuples had more than can be counted, and count as the most."""


class PartitionerRecord(Record):
    """One instance of the partitioner service."""

    kind: Literal["partitioner"] = "partitioner"
    """Tells this record from the other kinds in the topic."""
    instance: Name
    """Name of the instance, by which its records are told apart."""
    started: Count
    """When this process started, ms since 1970."""
    owned: Count
    """Number of input partitions that the instance reads."""
    inputs: Count
    """How many input partitions the query has taken in, whoever owns them."""
    epoch: Count
    """Epoch of the plan in force, 0 for none."""
    workers: Count
    """The p of the plan in force."""
    tuples: Count
    """How many tuples were routed since `started`."""
    rejected: Count
    """Records that were rejected since `started`."""
    read: Count
    """Records that were read since `started`."""
    filtered: Count
    """Records that `query.where` dropped since `started`."""
    period_ms: Count
    """Length of the last whole period, of which `rate`, `keys`, `busy`, `imbalance` and `hottest` are."""
    rate: Amount | None = None
    """Routed tuples/s."""
    keys: Amount | None = None
    """About how many distinct keys (HyperLogLog)."""
    busy: Amount | None = None
    """Share of the period in which the data plane parsed, routed or framed."""
    lag: Count | None = None
    """Records of the owned partitions that are not read yet."""
    event_time: EventTime | None = None
    """Largest event time seen, ms."""
    mark: EventTime | None = None
    """Least mark (ms) of the owned partitions that are awake."""
    loads: Annotated[list[Count], Field(max_length=4_096)] = []
    """Sum of the costs of tuples by worker since the last change of p.
    This is their number if each costs 1."""
    plans_ignored: Count = 0
    """Records of the plan topic that were no plan of the query."""
    imbalance: Share | None = None
    """Imbalance of the workers in use, as a share of the period's load. None if p changed in the period."""
    window_imbalance: Share | None = None
    """Imbalance of the newest window that the marks have passed, as this instance routed it. None if p
    changed in the window."""
    window_end: EventTime | None = None
    """End of that window, ms of event time."""
    hottest: Annotated[list[HotKey], Field(max_length=32)] = []
    """The hottest keys of the period."""
    head_keys: Count | None = None
    """Keys that the partitioner may split now."""
    slowest: Count | None = None
    """The awake input partition that has the least mark."""
    stuck: Annotated[list[StuckAt], Field(max_length=64)] = []
    """Owned partitions whose next record cannot be fetched."""
    standing: Annotated[list[Standstill], Field(max_length=16)] = []
    """What else stands still, as `/healthy/` says it."""
    warnings: Annotated[list[Annotated[str, Field(max_length=_LONGEST)]], Field(max_length=16)] = []
    """What a person should look at though all moves, likewise."""
    pages: Annotated[str, Field(max_length=260, pattern=r"^[A-Za-z0-9_.:%\[\]-]+:[0-9]{1,5}$")] | None = None
    """`host:port` of the instance's pages."""
    exchange: ExchangeState | None = None
    """What the instance knows of the exchange, None if it is in none."""
    batches: BatchesState | None = None
    """The instance's micro-batches, None if it routes tuple by tuple."""
    costs: CostsState | None = None
    """What the costs of tuples were, None if each tuple costs 1."""


class PartWork(BaseModel):
    """What the tasks of one part (combine or reduce) did in a micro-batch. All latencies are upper bounds."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, strict=True)

    tasks: Count
    """How many tasks there were."""
    busy_ms: Amount
    """Time of all tasks together."""
    longest_ms: Amount
    """Time of the longest task."""
    rows: Count
    """Tuples combined, or partial rows reduced."""
    keys: Amount | None = None
    """About how many distinct keys the rows have (HyperLogLog)."""
    repeated: Count = 0
    """Partial rows that had been merged before."""
    replication: Amount | None = None
    """About how many routed partitions a key of this micro-batch was at (1: no key is split). Workers that
    share a partition count once."""
    latencies: Latencies = []
    """Pairs (ms from the input topic to the end of the micro-batch, number of rows)."""
    result_latencies: Latencies = []
    """Pairs (ms from the newest tuple of an emitted window to the end of the micro-batch, number
    of result rows)."""
    routed: WorkerTimes = []
    """Triples (worker, how many tuples of it were combined, ms that this took), if
    `partitioner.speeds` or an experiment (`spark.combine_wait`) asks."""

    @property
    def spread(self) -> float | None:
        """Time of the longest task over the mean time of a task. 1 is even.
        None without work, or if it is not finite.
        """
        spread = self.longest_ms * self.tasks / self.busy_ms if self.busy_ms > 0 else math.inf
        return spread if math.isfinite(spread) else None


class BatchRecord(Record):
    """A finished micro-batch of a Spark stage.

    `next_window_end` and `durations_ms` are for people who read the topic: no service reads these.
    """

    kind: Literal["batch"] = "batch"
    """Tells this record from the other kinds in the topic."""
    stage: Stage
    """Which application it is: of both parts ("fused"), or of one."""
    batch: Count
    """Number that Spark gave the micro-batch."""
    rows: Count
    """Frames (or blobs) read."""
    duration_ms: Count
    """Processing time of the micro-batch."""
    batch_interval_ms: Count
    """The setting of this name."""
    load: Amount | None = None
    """W, processing time over batch interval."""
    backlog: Count | None = None
    """Frames (or blobs) that were not read yet when the micro-batch was planned, without its own."""
    parts: dict[Literal["combine", "reduce"], PartWork] = {}
    """What the tasks of each part did."""
    slots: Count | None = None
    """Tasks that can run at once."""
    executors: Count | None = None
    """How many executors are in use, None without a cluster manager."""
    frames_per_batch: Count | None = None
    """Most frames (or blobs) that a micro-batch reads, as set or chosen."""
    combine_tasks: Count | None = None
    """Most tasks of the combiner in a micro-batch, as set or chosen. None if the stage does not combine."""
    buckets: Count | None = None
    """Buckets that reduce, as set or chosen. None if the stage does not reduce."""
    epoch: Count = 0
    """Epoch of the plan that the application follows, 0 for none."""
    reducers: Count | None = None
    """r, by that plan or else by the settings."""
    mark: EventTime | None = None
    """Least mark that was merged, ms."""
    tuples: Count = 0
    """Tuples combined in this micro-batch."""
    rows_out: Count = 0
    """Result rows emitted in this micro-batch."""
    windows_closed: Count = 0
    """Windows emitted in this micro-batch."""
    unfit: Count = 0
    """Result values of this micro-batch that are null because they do not fit their type."""
    last_window_end: EventTime | None = None
    """End of the last window that was emitted, ms of event time."""
    open_windows: Count | None = None
    """How many windows with tuples are open."""
    open_panes: Count | None = None
    """How many panes there are from the first to the last open pane with a tuple."""
    next_window_end: EventTime | None = None
    """End of the open window that closes next, ms of event time."""
    state_bytes: Count | None = None
    """Memory of the state stores."""
    finished: Count
    """How many micro-batches with rows the stage has finished since its driver began, with this one."""
    warm_ms: Count | None = None
    """How long ago the first of them ended."""
    durations_ms: dict[str, Count] = {}
    """How long each step of Spark's micro-batch took, by Spark's own names."""
    offsets: list[Any] = []
    """Where each source of the micro-batch ended, as Spark says it."""


class HeartbeatRecord(Record):
    """A Spark stage says that it lives, though it has finished no micro-batch for a while."""

    kind: Literal["heartbeat"] = "heartbeat"
    """Tells this record from the other kinds in the topic."""
    stage: Stage
    """As in `BatchRecord`."""
    batch: Count | None = None
    """Number of the last finished micro-batch, None before the first."""
    running_ms: Count | None = None
    """For how long the present micro-batch has been running, None if the stage waits for input."""
    batch_interval_ms: Count
    """As in `BatchRecord`."""
    slots: Count | None = None
    """As in `BatchRecord`."""
    executors: Count | None = None
    """As in `BatchRecord`."""
    frames_per_batch: Count | None = None
    """As in `BatchRecord`."""
    combine_tasks: Count | None = None
    """As in `BatchRecord`."""
    buckets: Count | None = None
    """As in `BatchRecord`."""
    epoch: Count = 0
    """As in `BatchRecord`."""
    finished: Count
    """How many micro-batches with rows the stage has finished since its driver began."""
    warm_ms: Count | None = None
    """How long ago the first of them ended, None before."""
    ended: Annotated[str, Field(max_length=LONGEST_WORDS)] | None = None
    """Why the application has ended by itself, in words. This is then the last word of its process. None
    while it runs."""

    def load_by_now(self, before: float | None) -> float | None:
        """W while a micro-batch runs. before: W of the last finished micro-batch.

        A micro-batch that has run for longer than a batch interval has at least the W that it has reached by
        now.
        """
        running = (self.running_ms or 0) / max(1, self.batch_interval_ms)
        return before if running <= 1 else max(before or 0.0, running)


def present_load(word: BatchRecord | HeartbeatRecord, last: BatchRecord | None) -> float | None:
    """W of a stage by its newest record `word`. 0 if the stage waits for input.
    last: its last finished micro-batch.
    """
    if isinstance(word, BatchRecord):
        return word.load
    return 0.0 if word.running_ms is None else word.load_by_now(None if last is None else last.load)


class DecisionRecord(Record):
    """What a controller made of an observation."""

    kind: Literal["decision"] = "decision"
    """Tells this record from the other kinds in the topic."""
    policy: Name
    """Name of the policy that decided."""
    step: Count
    """`Observation.step`: micro-batches since the controller began."""
    p: Count
    """Routed partitions in force before the decision."""
    r: Count
    """Reduce buckets in force before the decision."""
    wanted_p: Count
    """Routed partitions that the policy asks for."""
    wanted_r: Count
    """Reduce buckets that the policy asks for."""
    zone: Annotated[int, Field(ge=1, le=3)] | None = None
    """1 under-used, 2 stable, 3 overload (001, ch. 3.3). None if the policy knows no zones."""
    epoch: Count | None = None
    """Epoch of the plan that was published because of the decision. None if none was: nothing changes, the
    decision is held back, or it is a dry run."""
    effective_from: EventTime | None = None
    """Event time (ms) from which on the plan of the decision holds, None without a plan."""
    held: bool = False
    """Whether the decision is held back."""
    reason: Annotated[str, Field(max_length=_LONGEST)] = ""
    """Why, for people."""
    cause: Annotated[str, Field(max_length=40, pattern=r"^[a-z-]*$")] = ""
    """Why, in one word (elasticity.CAUSES)."""
    observation: dict[str, Any] = {}
    """What the policy saw, as plain JSON."""


Telemetry = PartitionerRecord | BatchRecord | HeartbeatRecord | DecisionRecord
Kind = TypeVar("Kind", bound=Record)
_ANY: TypeAdapter[Telemetry] = TypeAdapter(Annotated[Telemetry, Field(discriminator="kind")])


def parse(value: bytes | None) -> Telemetry:
    """The record in these bytes. Raises ValueError, which says why, if this evenflow cannot read it."""
    try:
        fields = read_object(value, most_bytes=MOST_BYTES, depth=_DEEPEST).fields
        if "v" not in fields:  # the models would take their own version instead
            raise ValueError("it has no version")
        return _ANY.validate_python(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        # The first entry of `loc` is the kind, which pydantic's discriminator puts there.
        where = ".".join(str(part) for part in first["loc"][1:])
        raise ValueError(
            f"no telemetry: {shown(value)} ({where + ': ' if where else ''}{first['msg']})"
        ) from None
    except ValueError as error:
        raise ValueError(f"no telemetry: {shown(value)} ({error})") from None
