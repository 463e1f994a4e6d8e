"""The metrics of a Spark application, from the records that its stages publish of each micro-batch.

These records include the work of the executors' Python workers.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Sequence

from prometheus_client import Histogram

from evenflow.settings import Settings
from evenflow.settings.views import queries
from evenflow.telemetry import BatchRecord, HeartbeatRecord, PartWork, Stage, parts_of, present_load
from monitoring.instruments import catalogue as c
from monitoring.instruments.sheet import Instruments, Sheet, WeightedHistogram


class SparkInstruments(Instruments):
    """Gets every record that the application publishes about itself. Scrapes read in threads of their own.

    For values of a view, the label `query` is `<query>.<view>`. stages: the stages that the application runs
    for the query and for each view. Their counters exist from the start, at 0: Prometheus sees no increase in
    a counter that begins above 0.
    """

    def __init__(self, settings: Settings, stages: Sequence[Stage] = ("fused",)) -> None:
        super().__init__(settings, "spark")
        seconds, delay = self.histogram(c.BATCH_SECONDS), self.histogram(c.CLOSE_DELAY)
        self._by_query = {
            query_settings.query.name: _OfQuery(query_settings, stages, seconds, delay)
            for query_settings in queries(settings)
        }

    def batch(self, record: BatchRecord) -> None:
        """A micro-batch that had rows has ended."""
        self._by_query[record.query].batch(record)

    def heartbeat(self, record: HeartbeatRecord) -> None:
        """A stage lives, but has finished no micro-batch for a while."""
        self._by_query[record.query].heartbeat(record)

    def write(self, sheet: Sheet) -> None:
        """As `Instruments` says."""
        for query, instruments in self._by_query.items():
            instruments.write(sheet.for_query(query))


class _OfQuery:
    """What the stages of one query, or of one view, have published."""

    def __init__(
        self, settings: Settings, stages: Sequence[Stage], batch_seconds: Histogram, close_delay: Histogram
    ) -> None:
        self._query = settings.query.name
        self._stages = stages
        self._parts = sorted({part for stage in stages for part in parts_of(stage)})
        self._delay = settings.query.result_delay
        self._batch_seconds = batch_seconds
        self._close_delay = close_delay.labels(self._query)
        self._lock = threading.Lock()
        self._batches: dict[Stage, BatchRecord] = {}
        self._words: dict[Stage, BatchRecord | HeartbeatRecord] = {}
        self._works: dict[str, PartWork] = {}
        self._read: Counter[Stage] = Counter()
        self._rows: Counter[str] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._repeated: Counter[str] = Counter()
        self._results: Counter[str] = Counter()
        self._latencies: defaultdict[Stage, WeightedHistogram] = defaultdict(
            lambda: WeightedHistogram(c.LATENCY)
        )
        self._result_latency = WeightedHistogram(c.RESULT_LATENCY)
        self._newest_end: int | None = None

    def batch(self, record: BatchRecord) -> None:
        """As above."""
        self._batch_seconds.labels(self._query, record.stage).observe(record.duration_ms / 1000)
        with self._lock:
            self._batches[record.stage] = self._words[record.stage] = record
            self._read[record.stage] += record.rows
            for part, work in record.parts.items():
                self._works[part] = work
                self._rows[part] += work.rows
                self._seconds[part] += work.busy_ms / 1000
                self._repeated[part] += work.repeated
            # In the fused wiring both parts end with the same
            # micro-batch, and only the combiner knows each tuple.
            first = record.parts.get("reduce" if record.stage == "reduce" else "combine")
            for waited, rows in first.latencies if first else ():
                self._latencies[record.stage].add(waited / 1000, rows)
            if record.stage != "combine":
                self._closed(record)
                reduced = record.parts.get("reduce")
                for waited, rows in reduced.result_latencies if reduced else ():
                    self._result_latency.add(waited / 1000, rows)

    def heartbeat(self, record: HeartbeatRecord) -> None:
        """As above."""
        with self._lock:
            self._words[record.stage] = record

    def _closed(self, record: BatchRecord) -> None:
        self._results["rows"] += record.rows_out
        self._results["windows"] += record.windows_closed
        self._results["unfit"] += record.unfit
        if record.windows_closed and record.last_window_end is not None:
            due = record.last_window_end + self._delay
            self._newest_end = record.last_window_end
            # In a replay of old data the difference is no delay.
            # Such values all fall into the histogram's last range.
            self._close_delay.observe(max(0.0, (record.time - due) / 1000))

    def write(self, sheet: Sheet) -> None:
        """Put every value that is known now on the sheet."""
        with self._lock:
            for stage, batch in self._batches.items():
                self._write_batch(sheet, stage, batch)
            for stage, word in self._words.items():
                # Only a heartbeat tells of a running micro-batch.
                # It comes once the stage has finished none for a while.
                running = word.running_ms or 0 if isinstance(word, HeartbeatRecord) else 0
                sheet.put(c.LOAD, present_load(word, self._batches.get(stage)), stage=stage)
                sheet.put(c.BATCH_RUNNING, running / 1000, stage=stage)
                sheet.put(c.BATCH_INTERVAL, word.batch_interval_ms / 1000, stage=stage)
                sheet.put(c.FRAMES_PER_BATCH, word.frames_per_batch, stage=stage)
                sheet.put(c.COMBINE_TASKS, word.combine_tasks, stage=stage)
                sheet.put(c.BUCKETS, word.buckets, stage=stage)
            for part, work in self._works.items():
                self._write_work(sheet, part, work)
            self._write_counters(sheet)
            self._write_results(sheet)

    def _write_counters(self, sheet: Sheet) -> None:
        for stage in self._stages:
            sheet.put(c.BATCH_ROWS, self._read[stage], stage=stage)
        for part in self._parts:
            sheet.put(c.PART_ROWS, self._rows[part], work=part)
            sheet.put(c.PART_SECONDS, self._seconds[part], work=part)
        if "reduce" in self._parts:
            sheet.put(c.REPEATED, self._repeated["reduce"])
            sheet.put(c.RESULT_ROWS, self._results["rows"])
            sheet.put(c.WINDOWS_CLOSED, self._results["windows"])
            sheet.put(c.UNFIT, self._results["unfit"])
            sheet.put_histogram(c.RESULT_LATENCY, self._result_latency)

    def _write_batch(self, sheet: Sheet, stage: Stage, batch: BatchRecord) -> None:
        sheet.put(c.BACKLOG, batch.backlog, stage=stage)
        sheet.put_histogram(c.LATENCY, self._latencies[stage], stage=stage)

    def _write_work(self, sheet: Sheet, part: str, work: PartWork) -> None:
        sheet.put(c.PART_KEYS, work.keys, work=part)
        if part == "combine":
            sheet.put(c.REPLICATION, work.replication)
        sheet.put(c.TASK_SPREAD, work.spread, work=part)

    def _write_results(self, sheet: Sheet) -> None:
        # The stages of one application follow the same plan on
        # the same executors: the newest record of any says it.
        newest = max(self._words.values(), key=lambda word: word.time, default=None)
        if newest is not None:
            sheet.put(c.PLAN_EPOCH, newest.epoch, part="spark")
            sheet.put(c.EXECUTORS, newest.executors)
            sheet.put(c.SLOTS, newest.slots)
        closing = next(
            (self._batches[stage] for stage in ("reduce", "fused") if stage in self._batches), None
        )
        if closing is None:
            return
        sheet.put(c.REDUCERS, closing.reducers)
        sheet.put(c.OPEN_PANES, closing.open_panes)
        sheet.put(c.OPEN_WINDOWS, closing.open_windows)
        sheet.put(c.STATE_BYTES, closing.state_bytes)
        sheet.put(c.MERGED, None if closing.mark is None else closing.mark / 1000)
        sheet.put(c.WINDOW_END, None if self._newest_end is None else self._newest_end / 1000)
