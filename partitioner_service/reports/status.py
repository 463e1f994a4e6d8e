"""What the status page shows about an instance."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evenflow.numeric.arrays import Int64s
from evenflow.partitioners.costs import MAX_COST
from evenflow.settings import Settings
from evenflow.telemetry import PartitionerRecord
from evenflow.windows import END_MARK, NO_MARK
from partitioner_service.kafka.source import Source
from partitioner_service.reports.rejections import RejectionCounts
from partitioner_service.routing.pieces import RoutedTuples
from partitioner_service.routing.router import Router

log = logging.getLogger(__name__)

_RATE_SECONDS = 2.0


class Latest:
    """The newest telemetry and status of an instance.

    The loop's thread writes them, other threads read them at any time. Each is replaced as a whole and never
    changed in place, so no lock is needed.
    """

    def __init__(self, instance: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.telemetry: PartitionerRecord | None = None
        """The newest record. None before the first one."""
        self.shown: dict[str, Any] = {"state": "starting", "instance": instance}
        """The newest status, without its age."""
        self._clock = clock
        self._progressed_at = clock()

    def progressed(self) -> None:
        """Note that the loop has come round."""
        self._progressed_at = self._clock()

    def show(self, status: dict[str, Any]) -> None:
        """Replace the status by this one, which the caller must not change any more."""
        self.shown = status

    def stopped(self) -> None:
        """Keep the last status, with the state `stopped`."""
        self.shown = {**self.shown, "state": "stopped"}

    def status(self) -> dict[str, Any]:
        """The newest status, and the time (s) since the loop last came round."""
        return {**self.shown, "seconds_since_progress": round(self._clock() - self._progressed_at, 3)}


@dataclass
class Work:
    """What was done since the start of this process.

    Records of aborted transactions count each time they are routed.
    """

    rejected: RejectionCounts
    """The records that were rejected, by reason."""
    tuples: int = 0
    """Tuples that were routed."""
    read: int = 0
    """Records that were read."""
    filtered: int = 0
    """Records that were accepted but have no tuple to aggregate."""
    blocks: int = 0
    """Blocks that were written."""
    commits: int = 0
    """Transactions that were committed."""
    busy_seconds: float = 0.0
    """Seconds that went into blocks."""
    counts: Int64s | None = None
    """Tuples by worker, under all plans together. None before the first block."""
    loads: Int64s | None = None
    """Sum of the costs of these tuples by worker. It is `counts` if each tuple costs 1."""
    costs_below: int = 0
    """Tuples whose cost was below 1, or no number."""
    costs_above: int = 0
    """Tuples whose cost was above `MAX_COST`."""
    tuples_per_second: float = 0.0
    """Rate over the last `_RATE_SECONDS` or a little more."""
    _measured: tuple[float, int] | None = None

    def note(self, sent: RoutedTuples) -> None:
        """Add what was sent of a block. Warns of the first costs that are out of range, on either side."""
        self.counts = sent.counts if self.counts is None else self.counts + sent.counts
        self.loads = sent.loads if self.loads is None else self.loads + sent.loads
        if sent.costs is None:
            return
        count, below, above = len(sent.costs.costs), sent.costs.below, sent.costs.above
        if below and not self.costs_below:
            log.warning(
                "partitioner.cost: %s of %s tuples cost less than 1, or have no number as cost. They count as"
                " 1, which changes the balance and no result. Is the column there, and the unit small enough"
                " (size * 1000)? This is said once; evenflow_costs_out_of_range_total counts them",
                f"{below:,}",
                f"{count:,}",
            )
        if above and not self.costs_above:
            log.warning(
                "partitioner.cost: %s of %s tuples cost more than %s. They count as that, which changes the"
                " balance and no result. Choose a larger unit (size / 1000). This is said once;"
                " evenflow_costs_out_of_range_total counts them",
                f"{above:,}",
                f"{count:,}",
                f"{MAX_COST:,}",
            )
        self.costs_below += below
        self.costs_above += above

    def measure(self, now: float) -> None:
        """Measure the rate anew if the last measurement is long enough ago. now: of the loop's clock (s)."""
        if self._measured is None:
            self._measured = (now, self.tuples)
        since, before = self._measured
        if now - since >= _RATE_SECONDS:
            self.tuples_per_second = round((self.tuples - before) / (now - since), 1)
            self._measured = (now, self.tuples)


def running(settings: Settings, source: Source, router: Router, work: Work) -> dict[str, Any]:
    """The status of an instance that reads, as fields that JSON can hold. Times are event times in ms."""
    query = settings.query
    observed = router.plans.partitioner.observe()
    upcoming = router.plans.upcoming
    stuck = source.unfetchable.at(source.states)
    return {
        "state": "running",
        "instance": settings.partitioner.instance,
        "query": query.name,
        "partitioner": settings.partitioner.name,
        "plan_epoch": router.plans.epoch,
        "input_partitions": source.partition_count,
        "next_plan": upcoming and {"epoch": upcoming.plan.epoch, "begins": _shown(upcoming.begins)},
        "assignment": {
            str(p): {
                "offset": s.offset,
                "lag": source.lag(p),
                "at_end_s": source.ends.seconds_at_end(p),
                "max_time": s.max_time,
                "watermark": s.watermark(query),
                "mark": _shown(s.mark(query)),
                "ended": s.ended,
                "idle": s.asleep,
                "paused": p in source.paused,
                "stuck_at": stuck[p].offset if p in stuck else None,
                "read": s.read,
                "routed": s.routed,
                "rejected": s.rejected,
                "filtered": s.filtered,
                "max_jump": s.max_jump(query),
                "max_jump_from": s.max_jump_from,
                "out_of_orderness": s.out_of_orderness(query),
                "out_of_orderness_from": s.out_of_orderness_from,
            }
            for p, s in sorted(source.states.items())
        },
        "read": work.read,
        "filtered": work.filtered,
        "tuples": work.tuples,
        "tuples_per_second": work.tuples_per_second,
        "rejected": work.rejected.total,
        "rejected_by_reason": dict(work.rejected.by_reason),
        "blocks": work.blocks,
        "commits": work.commits,
        "busy_seconds": round(work.busy_seconds, 3),
        "rebalances": source.rebalances,
        "reading": source.reading,
        "workers": observed.workers,
        "routed_partitions": settings.routed_partitions,
        "loads": observed.loads.tolist(),
        "worker_tuples": [] if work.counts is None else work.counts.tolist(),
        "worker_costs": [] if work.loads is None else work.loads.tolist(),
        "cost": settings.partitioner.cost,
        "costs_below": work.costs_below,
        "costs_above": work.costs_above,
    }


def _shown(mark: int) -> int | str | None:
    """A mark (ms) as the status page shows it. None if there is no mark yet."""
    return "ended" if mark >= END_MARK else None if mark == NO_MARK else mark
