"""What an instance logs about its work: a line when it begins, one every ten seconds, lasting concerns."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from evenflow.progress import PartitionState
from evenflow.reporting import Concerns, Increase, Increases, with_fields
from evenflow.reporting.words import by_reason, moment, partitions, share, span
from evenflow.settings import Settings
from partitioner_service.reports.batch_concerns import BatchConcerns
from partitioner_service.reports.rejections import RejectionCounts
from partitioner_service.reports.standstill import OPEN_FOR_LONG, STANDS_STILL, StandstillWatch
from partitioner_service.routing.batches import Batching, batching

log = logging.getLogger("partitioner_service")


class Standings(NamedTuple):
    """What lasts."""

    still: list[dict[str, Any]]
    """What stands still, each with its name, its seconds and its reason."""
    warnings: list[str]
    """What else is wrong, in sentences."""


class LogLines:
    """Logs what every new status gives reason to say. clock: for intervals (s). wall: seconds since 1970."""

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._wall = wall
        self._standing = StandstillWatch(settings, clock=clock, wall=wall)
        self._batches = BatchConcerns(settings, clock=clock)
        self._concerns = Concerns(log, clock=clock)
        self._increases = Increases(clock=clock)

    def begins(self) -> None:
        """Log what this instance is about to do."""
        settings = self._settings
        log.info(
            "query %s, instance %s: %s (%d partitions) to %s, %d workers by '%s'",
            settings.query.name,
            settings.partitioner.instance,
            settings.topic("input"),
            settings.input_partitions,
            settings.topic("routed"),
            settings.partitioner.workers,
            settings.partitioner.name,
            extra=with_fields({"event": "begin", "query": settings.query.name}),
        )
        if settings.workers_per_partition > 1:
            log.info(
                "%s workers share %d routed partitions, up to %d each",
                f"{settings.max_workers:,}",
                settings.routed_partitions,
                settings.workers_per_partition,
            )
            self._warn_of_uneven_partitions()
        how = batching(settings)
        if how is not None:
            log.info(
                "%s", _batching(how), extra=with_fields({"event": "begin", "query": settings.query.name})
            )

    def _warn_of_uneven_partitions(self) -> None:
        """Warn if some partitions in use have twice the workers of others, because few workers share them."""
        how, partitions = self._settings.partitioner, self._settings.routed_partitions
        least, more = divmod(how.workers, partitions)
        if least == 1 and more:
            log.warning(
                "%d of %d routed partitions have two workers and the others one, so their cores have twice"
                " the work: a number of workers that they divide is better (`evenflow plan --workers %d`)",
                more,
                partitions,
                2 * partitions if 2 * partitions <= self._settings.max_workers else partitions,
            )

    def tell(
        self, status: Mapping[str, Any], rejected: RejectionCounts, everyone: Mapping[int, PartitionState]
    ) -> Standings:
        """Log what is due. Returns what the status page shows of it.

        everyone: the states of all input partitions that are known.
        """
        concerns = [
            *self._standing.concerns(status, everyone),
            *rejected.concerns(status["read"]),
            *self._batches.concerns(status.get("batches")),
        ]
        self._concerns.now(concerns)
        self._progress(status)
        lasting = self._concerns.lasting
        return Standings(
            still=[
                {"what": concern.name, "seconds": round(seconds, 1), "reason": concern.text}
                for concern, seconds in lasting
                if concern.name in STANDS_STILL
            ],
            warnings=[concern.text for concern, _ in lasting if concern.name == OPEN_FOR_LONG],
        )

    def ends(self, status: Mapping[str, Any]) -> None:
        """Log the last line, with the figures since the line before."""
        if "tuples" in status:  # not so before the first status of a running instance
            self._progress(status, now=True)

    def _progress(self, status: Mapping[str, Any], *, now: bool = False) -> None:
        increase = self._increases.due({"read": status["read"], "rejected": status["rejected"]}, now=now)
        if increase is not None:
            fields = figures(status, increase, self._wall())
            log.info("%s", _line(fields), extra=with_fields({"event": "heartbeat", **fields}))


def figures(status: Mapping[str, Any], increase: Increase, wall: float) -> dict[str, Any]:
    """The figures of a line.

    Counts are since the start of the process, event times are in ms. wall: s since 1970.
    """
    own = status["assignment"].values()
    awake = [shown for shown in own if not shown["ended"] and not shown["idle"]]
    marks = [shown["watermark"] for shown in awake]
    # One partition without a tuple leaves the instance without a watermark, because no window can close
    # before it.
    least = min(marks) if marks and None not in marks else None
    loads = status["loads"]
    mean = sum(loads) / len(loads) if loads else 0
    return {
        "read": status["read"],
        "read_per_second": round(increase.per_second("read"), 1),
        "routed": status["tuples"],
        "filtered": status["filtered"],
        "rejected": status["rejected"],
        "rejected_by_reason": status["rejected_by_reason"],
        "lag": sum(shown["lag"] or 0 for shown in own),
        "watermark": least,
        "behind_clock_ms": None if least is None else round(wall * 1000) - least,
        "without_tuple": [
            int(p) for p, s in status["assignment"].items() if s in awake and s["max_time"] is None
        ],
        "ended": bool(own) and all(shown["ended"] for shown in own),
        "above_mean": round(max(loads) / mean - 1, 4) if mean else None,
    }


def _batching(how: Batching) -> str:
    """How batches are cut, for people."""
    if how.clock == "event":
        end = "each is routed once every input partition of this instance has passed its end"
    elif how.release_early:
        end = "each is cut before its end, by as long as the slowest of the last ones took"
    else:
        end = "each is cut at its end"
    return (
        f"tuples are routed in micro-batches of {span(how.interval)} of {how.clock} time: {end}, or once more"
        f" than {how.most_bytes:,} bytes wait"
    )


def _line(f: Mapping[str, Any]) -> str:
    parts = [f"read {f['read']:,} ({f['read_per_second']:,.0f}/s)", f"routed {f['routed']:,}"]
    if f["filtered"]:
        parts.append(f"filtered {f['filtered']:,}")
    if f["rejected"]:
        how_many = share(f["rejected"], f["read"])
        parts.append(f"rejected {f['rejected']:,} ({how_many}: {by_reason(f['rejected_by_reason'])})")
    parts.append(f"lag {f['lag']:,}")
    parts.append(_watermark(f))
    if f["above_mean"] is not None:
        parts.append(f"largest load {100 * f['above_mean']:.1f} % above the mean")
    return ", ".join(parts)


def _watermark(f: Mapping[str, Any]) -> str:
    if f["ended"]:
        return "the input has ended"
    if f["watermark"] is None:
        return (
            f"no watermark yet ({partitions(f['without_tuple'])})"
            if f["without_tuple"]
            else "no watermark yet"
        )
    behind = f["behind_clock_ms"]
    side = "behind" if behind >= 0 else "ahead of"
    return f"watermark {moment(f['watermark'])} ({span(abs(behind))} {side} the clock)"
