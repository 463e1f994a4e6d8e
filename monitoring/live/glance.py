"""What is shown of a pipeline at a moment. The values are plain and bounded, and become JSON as they are.

None means "not known". Keys are texts that telemetry has made short. Code that shows a key must escape it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Word = Literal["good", "warn", "bad", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The answer to a question, and its reason in words."""

    word: Word
    text: str


@dataclass(frozen=True, kw_only=True)
class ExchangeGlance:
    """What an instance knows of the exchange.

    elected: whether it makes the tables. round, members, age_s: of the newest table that it heard, members as their number
    of `instances`. unanswered: messages that it told since then.
    """

    elected: bool
    round: int | None
    members: int
    instances: int
    age_s: float | None
    unanswered: int


@dataclass(frozen=True, kw_only=True)
class BatchesGlance:
    """Micro-batches of an instance.

    interval_s, clock: how long a batch is, of event time or of processing time. count: how many there were. cut_short: how
    many of these were cut before they were whole. held: tuples that wait for the end of theirs. tuples, split: tuples of the
    last one, and its keys in several data blocks. took_s: from its cut to its last frame. late: how long after the end of
    its interval that was, as a share of the interval.
    """

    interval_s: float
    clock: str
    count: int
    cut_short: int
    held: int
    tuples: int | None
    split: int | None
    took_s: float | None
    late: float | None


@dataclass(frozen=True, kw_only=True)
class InstanceGlance:
    """A partitioner instance.

    rate: tuples/s. keys: distinct keys in the last period. busy: share of its time. lag: records that it has
    not read. imbalance: of the last period. epoch: of its plan, 0 for none. owned: how many input partitions
    it reads. slowest: the input partition with the least mark. silent: seconds since it was heard. exchange:
    None if it tells others nothing. batches: None if it routes tuple by tuple. standing: what stands still, in words.
    warnings: what a person should look at though all moves, in words.
    """

    name: str
    rate: float | None
    keys: float | None
    busy: float | None
    lag: int | None
    imbalance: float | None
    epoch: int
    owned: int
    slowest: int | None
    silent: float
    exchange: ExchangeGlance | None = None
    batches: BatchesGlance | None = None
    standing: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class WorkGlance:
    """Work of the combiner or the reducer in the last micro-batch.

    rows: tuples combined, or partial rows reduced. busy_s: seconds of all tasks together. spread: longest
    over mean task.
    """

    rows: int
    keys: float | None
    tasks: int
    busy_s: float
    spread: float | None


@dataclass(frozen=True, kw_only=True)
class StageGlance:
    """A Spark stage.

    load: W. batch, duration_s, backlog: of the last finished micro-batch. running: for how many seconds the
    present micro-batch has been running. first: whether none of its process has ended yet. works: by part. silent:
    seconds since the stage was heard. ended: why its application has ended by itself, None as far as it has not said so.
    """

    name: str
    load: float | None
    batch: int | None
    duration_s: float | None
    interval_s: float
    backlog: int | None
    running: float | None
    first: bool
    slots: int | None
    executors: int | None
    epoch: int
    works: dict[str, WorkGlance]
    silent: float
    ended: str | None = None


@dataclass(frozen=True, kw_only=True)
class ResultsGlance:
    """Results of the last micro-batch that closed windows, and the windows that are open.

    rows, windows: how many were emitted. newest: end (ms) of the newest window. open, panes: how many are
    open. latency_p50_s, latency_p99_s: seconds from the input topic to the end of the micro-batch, for 50 %
    and 99 % of the tuples. emitted_p99_s: seconds from the newest tuple of a window to its results, for 99 %
    of the result rows.
    """

    rows: int
    windows: int
    newest: int | None
    open: int | None
    latency_p50_s: float | None
    latency_p99_s: float | None
    emitted_p99_s: float | None
    panes: int | None
    replication: float | None


@dataclass(frozen=True, kw_only=True)
class DecisionGlance:
    """A decision of the controller.

    at: ms since 1970 by the controller's clock. p, r: in force before the decision. epoch: of the plan that
    it published, None for none.
    """

    at: int
    policy: str
    zone: int | None
    p: int
    r: int
    wanted_p: int
    wanted_r: int
    epoch: int | None
    held: bool
    cause: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Glance:
    """Everything that is shown.

    at: ms since 1970. rate: tuples/s routed. read_rate: records/s read. lag: records not read yet. rejected:
    records, in all. workers: p. loads: tuples/s by worker in the last periods, or
    the sum of their costs per second if `weighed`. points: (ms since 1970, stage,
    W) of the last micro-batches. verdicts: by question.
    """

    query: str
    at: int
    rate: float | None
    read_rate: float | None
    lag: int | None
    rejected: int
    rejected_share: float | None
    workers: int | None
    imbalance: float | None
    loads: list[float]
    weighed: bool
    instances: list[InstanceGlance]
    stages: list[StageGlance]
    results: ResultsGlance | None
    hottest: list[dict[str, Any]]
    points: list[tuple[int, str, float]]
    decisions: list[DecisionGlance]
    verdicts: dict[str, Verdict]

    def plain(self) -> dict[str, Any]:
        """The glance as dicts and lists, ready for JSON."""
        return asdict(self)
