"""What is shown of a pipeline at a moment. The values are plain and bounded, and become JSON as they are.

None means "not known". Keys are texts that telemetry has made short. Code that shows a key must escape it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Word = Literal["good", "warn", "bad", "unknown"]


@dataclass(frozen=True, kw_only=True)
class HealthVerdict:
    """The answer to a question."""

    word: Word
    """The answer in one word."""
    text: str
    """The reason for it."""


@dataclass(frozen=True, kw_only=True)
class ExchangeGlance:
    """What an instance knows of the exchange."""

    elected: bool
    """Whether the instance makes the tables."""
    round: int | None
    """Number of the newest table that it heard. None before the first."""
    members: int
    """How many instances that table is made of."""
    instances: int
    """How many instances there can be."""
    age_s: float | None
    """Seconds since that table was heard. None before the first."""
    unanswered: int
    """Messages that the instance sent since it heard its newest table."""
    rate_in: float | None
    """Bytes/s that it read from the sync topic in the last minute. None if it has not said."""
    rate_out: float | None
    """Bytes/s that it wrote to there in the last minute. None if it has not said."""


@dataclass(frozen=True, kw_only=True)
class BatchesGlance:
    """Micro-batches of an instance."""

    interval_s: float
    """How long a batch is, in seconds."""
    clock: str
    """Whether these are seconds of event time ("event") or of processing time ("processing")."""
    count: int
    """How many batches had tuples."""
    cut_short: int
    """How many of the batches with tuples were cut before they were whole."""
    held: int
    """Tuples that wait for the end of their batch."""
    tuples: int | None
    """Tuples of the last batch. None before the first."""
    split: int | None
    """Keys of the last batch in several data blocks."""
    took_s: float | None
    """Seconds from the cut of the last batch to its last frame."""
    late: float | None
    """How long after the end of its interval that was, as a share of the interval. None if the interval is
    one of event time."""


@dataclass(frozen=True, kw_only=True)
class InstanceGlance:
    """A partitioner instance."""

    name: str
    """Name that the instance has in `partitioner.instance`."""
    rate: float | None
    """Tuples/s that it routes. None if it has not said."""
    keys: float | None
    """About how many distinct keys the last period had."""
    busy: float | None
    """Share of its time in which it works, from 0 to 1."""
    lag: int | None
    """Records that it has not read. None if that is not known."""
    imbalance: float | None
    """(max load - mean load) / tuples of the last period."""
    epoch: int
    """Epoch of the plan by which it routes, 0 for none."""
    owned: int
    """How many input partitions it reads."""
    slowest: int | None
    """The input partition with the least mark."""
    silent: float
    """Seconds since it was heard."""
    exchange: ExchangeGlance | None = None
    """State of the exchange. None if the instance exchanges nothing with others."""
    batches: BatchesGlance | None = None
    """State of its micro-batches. None if the instance routes tuple by tuple."""
    standing: list[str] = field(default_factory=list)
    """What stands still, in words."""
    warnings: list[str] = field(default_factory=list)
    """What a person should look at though all moves, in words."""


@dataclass(frozen=True, kw_only=True)
class WorkGlance:
    """Work of the combiner or the reducer in the last micro-batch."""

    rows: int
    """Tuples combined, or partial rows reduced."""
    keys: float | None
    """About how many distinct keys these have."""
    tasks: int
    """Spark tasks that did the work."""
    busy_s: float
    """Seconds of all tasks together."""
    spread: float | None
    """Time of the longest task over the mean time of a task. 1 is even."""


@dataclass(frozen=True, kw_only=True)
class StageGlance:
    """A Spark stage."""

    name: str
    """"fused", "combine" or "reduce"."""
    load: float | None
    """W, the processing time as a share of the batch interval. None before the first micro-batch."""
    batch: int | None
    """Number of the last finished micro-batch. None before the first."""
    duration_s: float | None
    """Seconds that the last finished micro-batch took."""
    interval_s: float
    """Batch interval in seconds."""
    backlog: int | None
    """Frames or blobs that waited at the end of the last finished micro-batch."""
    running: float | None
    """Seconds that the present micro-batch has been running. None if none is."""
    first: bool
    """Whether no micro-batch of this process has ended yet."""
    slots: int | None
    """How many tasks can run at once. None if Spark has not said."""
    executors: int | None
    """How many executors Spark has. None if it has not said."""
    epoch: int
    """Epoch of the plan that the application follows, 0 for none."""
    works: dict[str, WorkGlance]
    """Part ("combine" or "reduce") -> its work in the last finished micro-batch."""
    silent: float
    """Seconds since the stage was heard."""
    ended: str | None = None
    """Why its application has ended by itself. None as far as it has not said so."""


@dataclass(frozen=True, kw_only=True)
class ResultsGlance:
    """Results of the last micro-batch that closed windows, and the windows that are open."""

    rows: int
    """How many result rows that micro-batch emitted."""
    windows: int
    """How many windows it closed."""
    newest: int | None
    """End (event time in ms) of the newest of these windows. None before the first."""
    open: int | None
    """Windows that are open. None if that is not known."""
    latency_p50_s: float | None
    """Seconds from the input topic to the end of the micro-batch that half of the tuples took at most."""
    latency_p99_s: float | None
    """Seconds from the input topic to the end of the micro-batch that 99 % of the tuples took at most."""
    emitted_p99_s: float | None
    """Seconds from the newest tuple of a window to its results, for 99 % of the result rows."""
    panes: int | None
    """Panes that are open. None if that is not known."""
    replication: float | None
    """About how many workers hold a key. 1: no key is split."""


@dataclass(frozen=True, kw_only=True)
class DecisionGlance:
    """A decision of the controller."""

    at: int
    """When the controller decided, in ms since 1970 by its clock."""
    policy: str
    """Name of the policy that decided."""
    zone: int | None
    """Zone of W (1 to 3) that the policy saw. None if W was unknown."""
    p: int
    """Workers in force before the decision."""
    r: int
    """Reduce buckets at once in force before the decision."""
    wanted_p: int
    """Workers that the policy asks for."""
    wanted_r: int
    """Reduce buckets at once that the policy asks for."""
    epoch: int | None
    """Epoch of the plan that was published. None if none was."""
    held: bool
    """Whether the decision is held back."""
    cause: str
    """The reason in one word (`elasticity.CAUSES`)."""
    reason: str
    """The reason for people."""


@dataclass(frozen=True, kw_only=True)
class Glance:
    """Everything that is shown."""

    query: str
    """Name of the query."""
    at: int
    """When it was seen so, in ms since 1970."""
    rate: float | None
    """Tuples/s routed. None if no instance has said."""
    read_rate: float | None
    """Records/s read. None if no two records of an instance can be compared."""
    lag: int | None
    """Records not read yet. None if an instance does not know its own."""
    rejected: int
    """Records rejected since the instances started."""
    rejected_share: float | None
    """Share of the records read lately that were rejected, from 0 to 1."""
    workers: int | None
    """p, the largest that an instance routes to."""
    imbalance: float | None
    """(max load - mean load) / sum of `loads`. None without load."""
    loads: list[float]
    """Tuples/s by worker in the last periods, or the sum of their costs per second if `weighed`."""
    weighed: bool
    """Whether tuples have costs."""
    instances: list[InstanceGlance]
    """The longest silent first."""
    stages: list[StageGlance]
    """The Spark stages, in the order of their names."""
    results: ResultsGlance | None
    """The newest results. None before the first micro-batch of a stage that reduces."""
    hottest: list[dict[str, Any]]
    """The hottest keys of all instances together, as plain JSON, the hottest first."""
    points: list[tuple[int, str, float]]
    """(ms since 1970, stage, W) of the last micro-batches."""
    decisions: list[DecisionGlance]
    """The last ones, the oldest first."""
    verdicts: dict[str, HealthVerdict]
    """Question -> the answer to it."""

    def plain(self) -> dict[str, Any]:
        """The glance as dicts and lists, ready for JSON."""
        return asdict(self)
