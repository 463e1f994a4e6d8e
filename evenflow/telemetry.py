"""Telemetry: what the parts of a pipeline say of themselves. The contract of `<query>.telemetry`.

One JSON record each, for people and controllers, never for results: written without transactions, and a lost one costs
nothing but itself. Four kinds:

* `partitioner`: an instance, at each commit and at least every few seconds;
* `batch`: a Spark stage, at the end of each micro-batch that had rows;
* `heartbeat`: a Spark stage that has finished none since: idle, or in a long micro-batch;
* `decision`: a controller, for each observation that it has judged.

None is "not known", never 0. Times are ms: `time` and `started` by the writer's clock (for people: clocks differ), the
others event times. `parse` takes any bytes (pipeline rule 16) and refuses other versions. A reader compares
`fingerprint` with its own query's.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from evenflow.strict_json import read_object, shown

TELEMETRY_VERSION = 1
MOST_BYTES = 1_000_000
_DEEPEST = 12
_LONGEST = 2_000

Count = Annotated[int, Field(ge=0, le=2**62)]
EventTime = Annotated[int, Field(ge=-(2**62), le=2**62)]
Amount = Annotated[float, Field(ge=0, le=1e18)]
Name = Annotated[str, Field(min_length=1, max_length=250, pattern=r"^[\x20-\x7e]+$")]
Share = Annotated[float, Field(ge=0, le=1)]
Stage = Literal["fused", "combine", "reduce"]
Part = Literal["combine", "reduce"]


def parts_of(stage: Stage) -> tuple[Part, ...]:
    """What a Spark stage runs."""
    return ("combine", "reduce") if stage == "fused" else (stage,)


# JSON has no tuples: strictly, a list would be none.
Latencies = Annotated[list[Annotated[tuple[Count, Count], Field(strict=False)]], Field(max_length=256)]


class Record(BaseModel):
    """What all kinds have in common. Fields of a newer evenflow that this one does not know are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, strict=True)

    # Not Literal[1]: that takes true for 1.
    v: Annotated[int, Field(ge=TELEMETRY_VERSION, le=TELEMETRY_VERSION)] = TELEMETRY_VERSION
    query: Name
    fingerprint: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    time: Count

    def encode(self) -> bytes:
        """The record's value."""
        return self.model_dump_json().encode()


class HotKey(BaseModel):
    """One of the hottest keys of a period, by a sample.

    key: for people: escaped, and cut where it is long. length: its bytes. share: of all tuples. holders: how many workers
    it was seen at. workers, parts: the first of them, by their part of the key's tuples.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, strict=True)

    key: Annotated[str, Field(max_length=100)]
    length: Count
    share: Share
    holders: Count
    workers: Annotated[list[Count], Field(max_length=64)] = []
    parts: Annotated[list[Share], Field(max_length=64)] = []


class PartitionerRecord(Record):
    """One instance of the partitioner service.

    started: of this process. owned: input partitions. epoch, workers: the plan in force (0: none) and its p. tuples:
    routed since `started`. read, rejected, filtered: records likewise (older instances do not say read and filtered). The
    last whole period of `period_ms` had `rate` tuples/s routed and about `keys` distinct keys (HyperLogLog). Of it the data
    plane was busy for a share of `busy` (parse, route, frame). lag: records of owned partitions that are not read.
    event_time: largest seen. mark: least of the owned partitions that are awake. loads: tuples by worker since the last
    change of p. plans_ignored: records of the plan topic that were no plan of the query.

    window_imbalance: of the newest window that the marks have passed, as this instance routed it. None where p changed in
    it. window_end: its end.

    Of the last whole period: imbalance of the workers in use, as a share of its tuples (none where p changed in it), and the
    hottest keys. head_keys: keys that the partitioner may split now. slowest: the awake input partition whose mark is least.
    """

    kind: Literal["partitioner"] = "partitioner"
    instance: Name
    started: Count
    owned: Count
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


class PartWork(BaseModel):
    """What the tasks of one part (combine or reduce) of a micro-batch did.

    busy_ms: of all tasks together; longest_ms: of the longest. rows: tuples combined, or partial rows reduced. keys: about
    how many distinct (HyperLogLog). repeated: partial rows that had been merged before. replication: of this micro-batch's
    keys (1: none is split), about. latencies: (ms from the input topic to the end of the micro-batch, rows), upper bounds;
    result_latencies: (ms from the newest tuple of an emitted window, result rows), likewise.
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

    @property
    def spread(self) -> float | None:
        """Longest over mean task, 1 is even. None without any work, or where no number says it."""
        spread = self.longest_ms * self.tasks / self.busy_ms if self.busy_ms > 0 else math.inf
        return spread if math.isfinite(spread) else None


class BatchRecord(Record):
    """A finished micro-batch of a Spark stage.

    load: W, processing time over batch interval. rows: frames (or blobs) read. backlog: those that lay behind it when it
    was planned. parts: by part. slots: tasks that can run at once. executors: in use, None without a cluster manager.
    epoch: plan that the application follows (0: none). reducers: r, by that plan or else the settings. mark: least mark
    merged. tuples, rows_out, windows_closed, unfit: of this micro-batch. open_panes: from the first to the last open one
    with a tuple. state_bytes: memory of the state stores.
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
    durations_ms: dict[str, Count] = {}
    offsets: list[Any] = []


class HeartbeatRecord(Record):
    """A Spark stage that lives. running_ms: for how long its micro-batch has been running, None when it waits for input.

    batch: the last finished one, None before the first.
    """

    kind: Literal["heartbeat"] = "heartbeat"
    stage: Stage
    batch: Count | None = None
    running_ms: Count | None = None
    batch_interval_ms: Count
    slots: Count | None = None
    executors: Count | None = None
    epoch: Count = 0

    def load_by_now(self, before: float | None) -> float | None:
        """W while its micro-batch runs. before: that of the last one. For longer than an interval, at least what it has."""
        running = (self.running_ms or 0) / max(1, self.batch_interval_ms)
        return before if running <= 1 else max(before or 0.0, running)


def present_load(word: BatchRecord | HeartbeatRecord, last: BatchRecord | None) -> float | None:
    """W of a stage by its newest word, last: its last finished micro-batch. 0 where it waits for input."""
    if isinstance(word, BatchRecord):
        return word.load
    return 0.0 if word.running_ms is None else word.load_by_now(None if last is None else last.load)


class DecisionRecord(Record):
    """What a controller made of an observation. p, r: in force before; wanted_p, wanted_r: what the policy asks for.

    epoch: of the plan that was published because of it, None for none (nothing changes, it is held back, or a dry run).
    cause: the reason in one word (elasticity.CAUSES). observation: as the policy saw it, plain JSON.
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
    """The record in these bytes. ValueError says why it is none that this evenflow reads."""
    try:
        return _ANY.validate_python(read_object(value, most_bytes=MOST_BYTES, depth=_DEEPEST).fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"][1:])
        raise ValueError(
            f"no telemetry: {shown(value)} ({where + ': ' if where else ''}{first['msg']})"
        ) from None
    except ValueError as error:
        raise ValueError(f"no telemetry: {shown(value)} ({error})") from None
