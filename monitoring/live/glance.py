"""What is shown of a pipeline at a moment: plain values, all bounded, that become JSON as they are. None is "not known".

Keys are text that telemetry has made short. Whoever shows them escapes them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Word = Literal["good", "warn", "bad", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """An answer, and what it rests on."""

    word: Word
    text: str


@dataclass(frozen=True, kw_only=True)
class InstanceGlance:
    """A partitioner instance. silent: seconds since it was heard."""

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


@dataclass(frozen=True, kw_only=True)
class WorkGlance:
    """Combiner or reducer in the last micro-batch. spread: longest over mean task."""

    rows: int
    keys: float | None
    tasks: int
    busy_s: float
    spread: float | None


@dataclass(frozen=True, kw_only=True)
class StageGlance:
    """A Spark stage. running: seconds of the present micro-batch where that is known."""

    name: str
    load: float | None
    batch: int | None
    duration_s: float | None
    interval_s: float
    backlog: int | None
    running: float | None
    slots: int | None
    executors: int | None
    epoch: int
    works: dict[str, WorkGlance]
    silent: float


@dataclass(frozen=True, kw_only=True)
class ResultsGlance:
    """Of the last micro-batch that closed windows, and what waits. newest: end (ms) of the newest window.

    emitted_p99_s: seconds from the newest tuple of a window to its results, for 99 % of the result rows.
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
    """at: ms since 1970 by the controller's clock."""

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
    """All of it. at: ms since 1970. rate: tuples/s that are routed. read_rate: records/s that are read. loads:
    tuples/s by worker in the last periods. points: (ms, stage, W)."""

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
    instances: list[InstanceGlance]
    stages: list[StageGlance]
    results: ResultsGlance | None
    hottest: list[dict[str, Any]]
    points: list[tuple[int, str, float]]
    decisions: list[DecisionGlance]
    verdicts: dict[str, Verdict]

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)
