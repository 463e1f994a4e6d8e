"""Telemetry: what the parts of a pipeline say of themselves. The contract of `<query>.telemetry`.

Telemetry is for people and controllers, and no result depends on it. So records are written without
transactions, and a lost record does no harm. Each is one JSON record of one of four kinds:

* `partitioner`: from an instance, at each commit and at least every few seconds;
* `batch`: from a Spark stage, at the end of each micro-batch that had rows;
* `heartbeat`: from a Spark stage that has finished no micro-batch for a while: it is idle, or in a long one. The last one of
  an application that ends by itself says why;
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
    """How many input partitions the query has, by what instances say. began_with: how many this process has seen."""
    return max([began_with, *(record.inputs or 0 for record in records)])


# JSON has no tuples. Pydantic's strict mode would refuse a list where a tuple is asked for.
WorkerTimes = Annotated[
    list[Annotated[tuple[Count, Count, Amount], Field(strict=False)]], Field(max_length=4_096)
]
Latencies = Annotated[list[Annotated[tuple[Count, Count], Field(strict=False)]], Field(max_length=256)]


class Record(BaseModel):
    """The fields that all kinds have. A field that a newer evenflow writes, and this one does not know, is ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, strict=True)

    # Not Literal[1], which would accept true for 1.
    v: Annotated[int, Field(ge=TELEMETRY_VERSION, le=TELEMETRY_VERSION)] = TELEMETRY_VERSION
    query: Name
    fingerprint: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    time: Count

    def encode(self) -> bytes:
        """The value of the Kafka record."""
        return self.model_dump_json().encode()


class StuckAt(BaseModel):
    """An input partition that is not read on: the batch at this offset cannot be fetched. why: what Kafka's client says."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, strict=True)

    partition: Count
    offset: Count
    why: Annotated[str, Field(max_length=300)]


class Standstill(BaseModel):
    """Something that has not moved for a minute although it should. what: its name. why: a sentence."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, strict=True)

    what: Annotated[str, Field(max_length=60)]
    why: Annotated[str, Field(max_length=_LONGEST)]


class HotKey(BaseModel):
    """One of the hottest keys of a period, by a sample.

    key: the key for people: escaped, and cut if it is long. length: how many bytes the key has. share: the key's share
    of all tuples, whatever they cost. holders: at how many workers the key was seen. workers: the first of these workers,
    that with most of the key's tuples first. parts: the share of the key's tuples that each of `workers` got.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, strict=True)

    key: Annotated[str, Field(max_length=100)]
    length: Count
    share: Share
    holders: Count
    workers: Annotated[list[Count], Field(max_length=64)] = []
    parts: Annotated[list[Share], Field(max_length=64)] = []


class ExchangeState(BaseModel):
    """What an instance knows of the exchange that it is in.

    instances: how many there can be. elected: whether this one makes the tables. round, members, age_ms: of the newest
    table that it heard, None (and 0 members) before the first. unanswered: messages that it told since then. bytes_in,
    bytes_out, lost, ignored: since `started`, the last two as numbers of records.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, strict=True)

    instances: Count
    elected: bool
    round: Count | None = None
    members: Count = 0
    age_ms: Count | None = None
    unanswered: Count = 0
    bytes_in: Count = 0
    bytes_out: Count = 0
    lost: Count = 0
    ignored: Count = 0


class BatchState(BaseModel):
    """A micro-batch after its planning. bsi, bci, ksr, mpi: 001 eq. 2.2-2.5 of its data blocks.

    The same with `reduce_`: of the reduce buckets that hashing gives, whose size is counted in clusters. split: keys in
    several data blocks. took_ms: from its cut until its last frame was handed to Kafka's client. late: how long after the
    end of its interval that was, as a share of the interval. None if its interval is one of event time.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, strict=True)

    tuples: Count
    keys: Count
    split: Count
    bsi: Amount
    bci: Amount
    ksr: Amount
    mpi: Amount
    reduce_bsi: Amount
    reduce_bci: Amount
    reduce_ksr: Amount
    reduce_mpi: Amount
    took_ms: Amount | None = None
    late: Amount | None = None


class BatchesState(BaseModel):
    """What an instance says of its micro-batches.

    count: how many had tuples, since `started`. cut_short: how many of these were cut before their interval was over, by
    the reason. held, held_bytes: tuples, and memory, of what was read and not routed yet. release_ms: how long before the
    end of its interval the next batch is cut. last: the last batch, None before the first. by_fallback: how many batches
    another rule planned in place of the partitioner's own (`Partitioner.by_fallback`), None if it has no other rule.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, strict=True)

    interval_ms: Count
    clock: Literal["event", "processing"]
    count: Count
    cut_short: Annotated[
        dict[Annotated[str, Field(pattern=r"^[a-z]{1,20}$")], Count], Field(max_length=_MOST_REASONS)
    ] = {}
    held: Count = 0
    held_bytes: Count = 0
    release_ms: Amount | None = None
    by_fallback: Count | None = None
    last: BatchState | None = None


class CostsState(BaseModel):
    """What an instance says of the costs of tuples, since `started`.

    below: how many tuples had less than 1, or no number, and count as 1. above: how many had more than can be counted, and
    count as the most.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, strict=True)

    below: Count
    above: Count


class PartitionerRecord(Record):
    """One instance of the partitioner service.

    started: when this process started. owned: number of input partitions that the instance reads. inputs: how many
    the query has taken in, whoever owns them (older instances do not say it). epoch, workers: the plan in force
    (0: none) and its p. tuples: how many were routed since `started`. read,
    rejected, filtered: numbers of records since `started` (older instances do not say read and filtered).
    lag: records of the owned partitions that are not read yet. event_time: largest event time seen. mark:
    least mark of the owned partitions that are awake. slowest: the awake input partition that has this mark.
    loads: sum of the costs of tuples by worker since the last change of p, which is their number if each costs 1. costs:
    None if each tuple costs 1. plans_ignored: records of the plan topic that were no
    plan of the query. head_keys: keys that the partitioner may split now. stuck: owned partitions whose next
    record cannot be fetched. standing: what else stands still, as `/healthy/` says it. warnings: what a person should look
    at though all moves, likewise. pages: `host:port` of the instance's pages. exchange: what it knows of the exchange, None
    if it is in none. batches: its micro-batches, None if it routes tuple by tuple.

    Of the last whole period: period_ms: its length. rate: routed tuples/s. keys: about how many distinct keys
    (HyperLogLog). busy: share of the period in which the data plane parsed, routed or framed. imbalance: that of the
    workers in use, as a share of the period's load, None if p changed in the period. hottest: its hottest keys.

    Of the newest window that the marks have passed, as this instance routed it: window_imbalance: its
    imbalance, None if p changed in the window. window_end: its end.
    """

    kind: Literal["partitioner"] = "partitioner"
    instance: Name
    started: Count
    owned: Count
    inputs: Count | None = None
    epoch: Count
    workers: Count
    tuples: Count
    rejected: Count
    read: Count | None = None
    filtered: Count | None = None
    period_ms: Count
    rate: Amount | None = None
    keys: Amount | None = None
    busy: Amount | None = None
    lag: Count | None = None
    event_time: EventTime | None = None
    mark: EventTime | None = None
    loads: Annotated[list[Count], Field(max_length=4_096)] = []
    plans_ignored: Count = 0
    imbalance: Share | None = None
    window_imbalance: Share | None = None
    window_end: EventTime | None = None
    hottest: Annotated[list[HotKey], Field(max_length=32)] = []
    head_keys: Count | None = None
    slowest: Count | None = None
    stuck: Annotated[list[StuckAt], Field(max_length=64)] = []
    standing: Annotated[list[Standstill], Field(max_length=16)] = []
    warnings: Annotated[list[Annotated[str, Field(max_length=_LONGEST)]], Field(max_length=16)] = []
    pages: Annotated[str, Field(max_length=260, pattern=r"^[A-Za-z0-9_.:%\[\]-]+:[0-9]{1,5}$")] | None = None
    exchange: ExchangeState | None = None
    batches: BatchesState | None = None
    costs: CostsState | None = None


class PartWork(BaseModel):
    """What the tasks of one part (combine or reduce) did in a micro-batch.

    tasks: how many. busy_ms: time of all tasks together. longest_ms: time of the longest task. rows: tuples
    combined, or partial rows reduced. keys: about how many distinct keys these have (HyperLogLog). repeated:
    partial rows that had been merged before. replication: about the replication factor of this micro-batch
    (1: no key is split). latencies: pairs (ms from the input topic to the end of the micro-batch, number of
    rows). result_latencies: pairs (ms from the newest tuple of an emitted window to the end of the
    micro-batch, number of result rows). All latencies are upper bounds. routed: triples (routed partition, how many
    tuples of it were combined, ms that this took), if `partitioner.speeds` or an experiment (`spark.combine_wait`) asks.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, strict=True)

    tasks: Count
    busy_ms: Amount
    longest_ms: Amount
    rows: Count
    keys: Amount | None = None
    repeated: Count = 0
    replication: Amount | None = None
    latencies: Latencies = []
    result_latencies: Latencies = []
    routed: WorkerTimes = []

    @property
    def spread(self) -> float | None:
        """Time of the longest task over the mean time of a task. 1 is even. None without work, or if it is not finite."""
        spread = self.longest_ms * self.tasks / self.busy_ms if self.busy_ms > 0 else math.inf
        return spread if math.isfinite(spread) else None


class BatchRecord(Record):
    """A finished micro-batch of a Spark stage.

    batch: number of the micro-batch. load: W, processing time over batch interval. rows: frames (or blobs)
    read. backlog: frames (or blobs) that were not read yet when the micro-batch was planned, without its own.
    parts: work by part. slots: tasks that can run at once. executors: how many are in use, None without a
    cluster manager. epoch: that of the plan that the application follows (0: none). reducers: r, by that plan
    or else by the settings. mark: least mark merged. tuples, rows_out, windows_closed, unfit: those of this
    micro-batch. open_panes: how many panes there are from the first to the last open pane with a tuple.
    state_bytes: memory of the state stores. finished: how many micro-batches with rows the stage has finished since its
    driver began, with this one. warm_ms: how long ago the first of them ended (older drivers say neither).

    For people who read the topic (no service reads these): next_window_end: end of the open window that closes
    next. durations_ms: how long each step of Spark's micro-batch took, by Spark's own names.
    """

    kind: Literal["batch"] = "batch"
    stage: Stage
    batch: Count
    rows: Count
    duration_ms: Count
    batch_interval_ms: Count
    load: Amount | None = None
    backlog: Count | None = None
    parts: dict[Literal["combine", "reduce"], PartWork] = {}
    slots: Count | None = None
    executors: Count | None = None
    epoch: Count = 0
    reducers: Count | None = None
    mark: EventTime | None = None
    tuples: Count = 0
    rows_out: Count = 0
    windows_closed: Count = 0
    unfit: Count = 0
    last_window_end: EventTime | None = None
    open_windows: Count | None = None
    open_panes: Count | None = None
    next_window_end: EventTime | None = None
    state_bytes: Count | None = None
    finished: Count | None = None
    warm_ms: Count | None = None
    durations_ms: dict[str, Count] = {}
    offsets: list[Any] = []


class HeartbeatRecord(Record):
    """A Spark stage says that it lives, though it has finished no micro-batch for a while.

    batch: number of the last finished micro-batch, None before the first. running_ms: for how long the present
    micro-batch has been running, None if the stage waits for input. ended: why the application has ended by itself, in
    words. This is then the last word of its process. None while it runs. The other fields are those of `BatchRecord`.
    """

    kind: Literal["heartbeat"] = "heartbeat"
    stage: Stage
    batch: Count | None = None
    running_ms: Count | None = None
    batch_interval_ms: Count
    slots: Count | None = None
    executors: Count | None = None
    epoch: Count = 0
    finished: Count | None = None
    warm_ms: Count | None = None
    ended: Annotated[str, Field(max_length=LONGEST_WORDS)] | None = None

    def load_by_now(self, before: float | None) -> float | None:
        """W while a micro-batch runs. before: W of the last finished micro-batch.

        A micro-batch that has run for longer than a batch interval has at least the W that it has reached by now.
        """
        running = (self.running_ms or 0) / max(1, self.batch_interval_ms)
        return before if running <= 1 else max(before or 0.0, running)


def present_load(word: BatchRecord | HeartbeatRecord, last: BatchRecord | None) -> float | None:
    """W of a stage by its newest record `word`. 0 if the stage waits for input. last: its last finished micro-batch."""
    if isinstance(word, BatchRecord):
        return word.load
    return 0.0 if word.running_ms is None else word.load_by_now(None if last is None else last.load)


class DecisionRecord(Record):
    """What a controller made of an observation.

    p, r: those in force before. wanted_p, wanted_r: those that the policy asks for. epoch: that of the plan
    that was published because of the decision. It is None if no plan was published: nothing changes, the
    decision is held back, or it is a dry run. held: whether it is held back. reason: for people. cause: the
    reason in one word (elasticity.CAUSES). observation: what the policy saw, as plain JSON.
    """

    kind: Literal["decision"] = "decision"
    policy: Name
    step: Count
    p: Count
    r: Count
    wanted_p: Count
    wanted_r: Count
    zone: Annotated[int, Field(ge=1, le=3)] | None = None
    epoch: Count | None = None
    effective_from: EventTime | None = None
    held: bool = False
    reason: Annotated[str, Field(max_length=_LONGEST)] = ""
    cause: Annotated[str, Field(max_length=40, pattern=r"^[a-z-]*$")] = ""
    observation: dict[str, Any] = {}


Telemetry = PartitionerRecord | BatchRecord | HeartbeatRecord | DecisionRecord
Kind = TypeVar("Kind", bound=Record)
_ANY: TypeAdapter[Telemetry] = TypeAdapter(Annotated[Telemetry, Field(discriminator="kind")])


def parse(value: bytes | None) -> Telemetry:
    """The record in these bytes. Raises ValueError, which says why, if this evenflow cannot read it."""
    try:
        return _ANY.validate_python(read_object(value, most_bytes=MOST_BYTES, depth=_DEEPEST).fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        # The first entry of `loc` is the kind, which pydantic's discriminator puts there.
        where = ".".join(str(part) for part in first["loc"][1:])
        raise ValueError(
            f"no telemetry: {shown(value)} ({where + ': ' if where else ''}{first['msg']})"
        ) from None
    except ValueError as error:
        raise ValueError(f"no telemetry: {shown(value)} ({error})") from None
