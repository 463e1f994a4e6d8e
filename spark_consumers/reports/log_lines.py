"""What the Spark application logs: a line every ten seconds, and warnings if something stands still."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from evenflow.reporting import Concern, Concerns, Increase, Increases, unanswered, with_fields
from evenflow.reporting.liveness import UNANSWERED
from evenflow.reporting.words import moment, partitions, span
from evenflow.settings import Settings
from evenflow.settings.views import TopicRole
from evenflow.telemetry import BatchRecord
from evenflow.twostep import Tally
from evenflow.windows import END_MARK, NO_MARK

_LOG = logging.getLogger("evenflow.spark")
_LONG = 60.0  # s without progress until a warning
_LOOK_EVERY = 30.0  # s between two questions to the broker


def say_where_it_begins(
    settings: Settings, stage: str, *, reads: TopicRole, writes: str, before: int | None
) -> None:
    """Log that a stage is about to run.

    before: the last micro-batch that the stage has begun, None for none.
    """
    where = "from the beginning" if before is None else f"goes on after micro-batch {before}"
    _LOG.info(
        "query %s, %s: %s to %s, %s",
        settings.query.name,
        stage,
        settings.topic(reads),
        writes,
        where,
        extra=with_fields({"event": "begin", "query": settings.query.name, "stage": stage}),
    )


class LogLines:
    """Logs the progress of a query or a view.

    Spark's listener reports each micro-batch, and the application's own thread calls `look` every now and
    then. So a lock guards the state. unread: returns how many records of the input no partitioner has routed,
    None if not known. It is called only after a minute without frames. unanswered: returns for how many
    seconds Kafka has not answered. clock: s.
    """

    def __init__(
        self,
        settings: Settings,
        unread: Callable[[], int | None],
        *,
        unanswered: Callable[[], float] = lambda: 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._unread = unread
        self._unanswered = unanswered
        self._clock = clock
        self._lock = threading.Lock()
        self._concerns = Concerns(_LOG, clock=clock)
        self._increases = Increases(clock=clock)
        self._read: Counter[str] = Counter()
        self._last: dict[str, BatchRecord] = {}
        self._tally = Tally()
        self._least = NO_MARK
        self._came_at = self._moved_at = self._asked_at = clock()
        self._waiting: int | None = None

    def progress(self, record: BatchRecord, tally: Tally) -> None:
        """Note a micro-batch that had rows, and everything that the Python workers have told so far."""
        with self._lock:
            self._read[record.stage] += record.rows
            self._last[record.stage] = record
            self._tally = tally
            self._came_at = self._clock()
            self._waiting = None
            least = NO_MARK if tally.stand is None else min(tally.stand.marks)
            if least > self._least:
                self._least, self._moved_at = least, self._clock()

    def look(self, *, last: bool = False) -> None:
        """Log what is due. last: also log what no line has told yet."""
        # Without the lock: the broker may take seconds to answer, and the listener must not wait so long.
        self._ask_for_the_unread()
        with self._lock:
            self._concerns.now(map(self._of_view, self._what_lasts()))
            increase = self._increases.due(self._counters(), now=last)
            if increase is not None:
                fields = self._figures(increase)
                _LOG.info(
                    "%s", self._named(self._line(fields)), extra=with_fields({"event": "heartbeat", **fields})
                )

    def _what_lasts(self) -> list[Concern]:
        kafka_concern = self._no_kafka()
        lasting = [self._held_back(), self._slow(), self._full()]
        if self._settings.query.view_name is None:  # a view reads the frames of its query
            lasting = [kafka_concern, self._no_frames(), *lasting]
        # While Kafka is gone nothing else is worth a line, but what was said already is not over either.
        known = {some.concern.name for some in self._concerns.lasting if some.seconds >= some.concern.after}
        return [
            concern
            for concern in lasting
            if concern is not None and (kafka_concern in (None, concern) or concern.name in known)
        ]

    def _no_kafka(self) -> Concern | None:
        servers = self._settings.kafka.bootstrap_servers
        trouble = unanswered(servers, self._unanswered())
        if trouble is None:
            return None
        return Concern(
            name="no Kafka",
            text=f"{trouble.text}: nothing is read or written until it does. Nothing is lost",
            over=f"Kafka at {servers} answers again",
        )

    def _of_view(self, concern: Concern) -> Concern:
        return replace(
            concern,
            text=self._named(concern.text),
            over=None if concern.over is None else self._named(concern.over),
        )

    def _named(self, text: str) -> str:
        """The text with the name of the view, if these settings are of a view."""
        view = self._settings.query.view_name
        return text if view is None else f"view {view}: {text}"

    def _ask_for_the_unread(self) -> None:
        now = self._clock()
        if (
            self._unanswered() < UNANSWERED
            and now - self._came_at >= _LONG
            and now - self._asked_at >= _LOOK_EVERY
        ):
            self._asked_at = now
            self._waiting = self._unread()

    def _counters(self) -> dict[str, int]:
        tally = self._tally
        return {**self._read, "tuples": tally.tuples, "rows": tally.rows, "windows": tally.windows}

    def _figures(self, increase: Increase) -> dict[str, Any]:
        tally, stand = self._tally, self._tally.stand
        loads = [some.load for some in self._last.values() if some.load is not None]
        return {
            "read": dict(self._read),
            "tuples": tally.tuples,
            "tuples_per_second": round(increase.per_second("tuples"), 1),
            "rows_out": tally.rows,
            "windows_closed": tally.windows,
            "last_window_end": max(tally.emitted.values(), default=None),
            "open_windows": None if stand is None else stand.windows,
            "next_window_end": None if stand is None else stand.next_end,
            "least_mark": None if stand is None or min(stand.marks) == NO_MARK else min(stand.marks),
            "load": max(loads, default=None),
            "backlog": {stage: some.backlog or 0 for stage, some in self._last.items()},
        }

    def _line(self, f: Mapping[str, Any]) -> str:
        parts = [f"{stage} read {n:,} {_WHAT[stage]}" for stage, n in f["read"].items()]
        worst = [some for some in self._last.values() if some.load is not None and some.load == f["load"]]
        if f["tuples"]:
            parts.append(f"{f['tuples']:,} tuples ({f['tuples_per_second']:,.0f}/s)")
        if f["open_windows"] is not None:
            parts.append(f"{f['rows_out']:,} rows out, {f['windows_closed']:,} windows closed{_latest(f)}")
            parts.append(self._next(f))
        parts += [f"micro-batch {span(some.duration_ms)} of {span(some.batch_interval_ms)}" for some in worst]
        parts.append(f"backlog {sum(f['backlog'].values()):,}")
        return ", ".join(parts)

    def _next(self, f: Mapping[str, Any]) -> str:
        least = f["least_mark"]
        if least is not None and least >= END_MARK:
            return "the input has ended"
        if f["next_window_end"] is None:
            return "no window is open"
        at = "no mark yet" if least is None else f"mark {moment(least)}"
        return f"{f['open_windows']:,} open, the next closes at {moment(f['next_window_end'])} ({at})"

    # ---- what lasts and should not

    def _no_frames(self) -> Concern | None:
        silent, marks = self._clock() - self._came_at, self._settings.input_partitions
        # Each partition's log may end with a transaction marker, an offset that no reader commits. So as many
        # unread offsets as there are partitions mean nothing.
        if silent < _LONG or self._waiting is None or self._waiting <= marks:
            return None
        return Concern(
            name="no frames",
            text=(
                f"nothing has come for {span(1_000 * silent)}, although {self._waiting:,} records of"
                f" {self._settings.topic('input')} are not routed yet: does `evenflow"
                " partition` run, and what does it say?"
            ),
            over="frames come again",
            fields={"unread": self._waiting},
        )

    def _held_back(self) -> Concern | None:
        """Windows are open, but the least mark has not moved for a minute: some partition lacks newer
        tuples.
        """
        stand = self._tally.stand
        if stand is None or stand.next_end is None or self._clock() - self._moved_at < _LONG:
            return None
        behind = [p for p, mark in enumerate(stand.marks) if mark < stand.next_end]
        if not behind:
            return None
        least = min(behind, key=lambda p: stand.marks[p])
        mark = stand.marks[least]
        delay = self._settings.query.out_of_orderness + self._settings.query.allowed_lateness
        # The partitioner tells marks only once the slowest partition has passed a pane. Before that, the
        # application does not know which partition is the slowest.
        where = (
            "no mark has come yet that closes it: the partitioner's log, or `evenflow status`, names the"
            " partition that holds it back"
            if mark == NO_MARK
            else (
                f"{partitions(behind)} {'has' if len(behind) == 1 else 'have'} not: partition {least} stood"
                f" at {moment(mark + delay)} when the marks were told last"
            )
        )
        extra = f" by {span(delay)}" if delay else ""
        begin, end = stand.next_end - self._settings.query.window, stand.next_end
        return Concern(
            name="windows wait",
            text=(
                f"{stand.windows:,} windows are open; the next one, [{moment(begin)}, {moment(end)}), closes"
                f" when every input partition has passed its end{extra}; {where}. A partition without newer"
                " data needs some, an end, or partitioner.idle_timeout"
            ),
            over="windows close again",
            fields={"open_windows": stand.windows, "next_window_end": stand.next_end, "partitions": behind},
        )

    def _busy(self, holds: Callable[[BatchRecord], bool]) -> list[tuple[str, BatchRecord]]:
        """The stages whose last micro-batch `holds`, each with that micro-batch.

        Empty after a minute without input.
        """
        comes = self._clock() - self._came_at < _LONG
        return [(stage, some) for stage, some in self._last.items() if comes and holds(some)]

    def _slow(self) -> Concern | None:
        slow = self._busy(lambda some: (some.load or 0) > 1)
        if not slow:
            return None
        stage, worst = max(slow, key=lambda entry: entry[1].load or 0)
        return Concern(
            name="micro-batches too long",
            text=(
                f"micro-batches of {stage} take longer than their interval for over a minute (the last one"
                f" {span(worst.duration_ms)} of {span(worst.batch_interval_ms)}), backlog"
                f" {worst.backlog or 0:,}: results fall behind if that lasts; more"
                " cores (spark.master), or fewer rows out"
            ),
            over="micro-batches take no longer than their interval again",
            after=_LONG,
            fields={"stage": stage, "load": worst.load, "backlog": worst.backlog},
        )

    def _full(self) -> Concern | None:
        """Micro-batches have time left, but the limit of frames keeps them from reading the backlog."""
        most = self._settings.frames_per_batch
        full = self._busy(lambda some: (some.load or 0) <= 1 and (some.backlog or 0) > most)
        if not full:
            return None
        stage, worst = max(full, key=lambda entry: entry[1].backlog or 0)
        return Concern(
            name="micro-batches full",
            text=(
                f"micro-batches of {stage} have time left (the last one took {span(worst.duration_ms)} of"
                f" {span(worst.batch_interval_ms)}), but read at most {most:,} {_WHAT[stage]}, and"
                f" {worst.backlog:,} wait: raise spark.max_frames_per_batch, or partitioner.linger, which"
                " makes fewer and larger frames"
            ),
            over="micro-batches read all that waits again",
            after=_LONG,
            fields={"stage": stage, "most": most, "backlog": worst.backlog},
        )


_WHAT = {"fused": "frames", "combine": "frames", "reduce": "blobs"}


def _latest(f: Mapping[str, Any]) -> str:
    return "" if f["last_window_end"] is None else f" (to {moment(f['last_window_end'])})"
