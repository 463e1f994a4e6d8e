"""What metrics and the live page's figures cost, compared with the work that they measure.

These figures are for information. `service-metrics-partitioner` and `service-metrics-spark` judge what
metrics cost the whole service.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

from prometheus_client import generate_latest

from benchmarks.measuring.broken_records import KINDS
from benchmarks.measuring.broken_records import SEED as SEED
from evenflow.partitioners import create
from evenflow.progress import PartitionState
from evenflow.settings import Settings
from evenflow.telemetry import PartitionerRecord
from monitoring.instruments.partitioner import PartitionerInstruments
from partitioner_service.block import Slice
from partitioner_service.reports.telemetry import Periods
from partitioner_service.routing.pieces import RoutedTuples
from partitioner_service.routing.router import Router

ID = "service-metrics"
WHAT = "CPU time of what a partitioner notes for metrics beside that of routing, and of a scrape"

_WORKERS, _BLOCK = 8, 50_000
_KIND = KINDS["number as text"]
_SCRAPES_APART = 15.0


def run(*, smoke: bool) -> dict[str, object]:
    """A row for each size of block, then a row for each size of scrape."""
    repetitions = 3 if smoke else 15
    rows = [_noted(size, repetitions) for size in ((5_000,) if smoke else (500, 5_000, 50_000))]
    return {
        "blocks": rows,
        "scrapes": [_scrape(*size, repetitions) for size in ((4, 8), (1_000, 100))],
    }


def _noted(size: int, repetitions: int) -> dict[str, Any]:
    """CPU time of routing blocks and of noting them for metrics (rate, keys, loads, hottest keys).

    Blocks follow one another without a pause, as at full speed.
    """
    settings, values = _KIND.settings(), _KIND.records(size, bad_every=None)
    router = Router(settings, create("evenflow", workers=_WORKERS, seed=SEED))
    instruments = PartitionerInstruments(settings)
    periods = Periods(1e9, now=0.0)
    state = PartitionState(fingerprint=settings.fingerprint, topic_id="t", offset=0)
    routing, noting = [], []
    for _ in range(repetitions * _BLOCK // size + 1):
        seconds, routed = _timed(lambda: router.route([Slice(0, 0, size - 1, values)], {0: state}))
        routing.append(seconds)
        noting.append(_timed(partial(_note, periods, instruments, routed.sent))[0])
    route, note = sum(routing[1:]), sum(noting[1:])  # the first compiles and warms up
    tuples = size * len(routing[1:])
    return {
        "tuples": size,
        "route_ns_per_tuple": round(1e9 * route / tuples, 1),
        "noted_ns_per_tuple": round(1e9 * note / tuples, 1),
        "share": round(note / (route + note), 4),
    }


def _note(periods: Periods, instruments: PartitionerInstruments, sent: RoutedTuples) -> None:
    periods.note(sent, 0.01, workers=_WORKERS, now=time.monotonic())
    instruments.block(0.01)


def _scrape(partitions: int, workers: int, repetitions: int) -> dict[str, Any]:
    """The cost of a scrape of all metrics of an instance with this many input partitions and workers."""
    settings = _KIND.settings()
    instruments = PartitionerInstruments(settings)
    instruments.watch(lambda: _status(partitions, workers), lambda: _report(settings, workers))
    scrapes = [_timed(lambda: generate_latest(instruments.registry)) for _ in range(repetitions + 1)]
    seconds = median(each[0] for each in scrapes[1:])
    return {
        "input_partitions": partitions,
        "workers": workers,
        "ms": round(1_000 * seconds, 2),
        "kilobytes": round(len(scrapes[0][1]) / 1_000, 1),
        "share_of_a_core": round(seconds / _SCRAPES_APART, 4),
    }


def _status(partitions: int, workers: int) -> dict[str, Any]:
    partition = {"lag": 10, "watermark": 1_700_000_000_000, "ended": False, "idle": False}
    return {
        "state": "running", "seconds_since_progress": 0.1,
        "assignment": {str(p): partition for p in range(partitions)},
        "tuples": 10**9, "read": 10**9 + 5, "filtered": 0, "rejected_by_reason": {"late": 5},
        "busy_seconds": 1e4,
        "rebalances": 3, "reading": "queues", "workers": workers, "worker_tuples": [10**7] * workers,
        "plan_epoch": 1, "plans_ignored": 0,
        "learned_at": 1.7e9, "worker_costs": [10**7] * workers, "costs_below": 0, "costs_above": 0,
    }  # fmt: skip


def _report(settings: Settings, workers: int) -> PartitionerRecord:
    return PartitionerRecord(
        query=settings.query.name, fingerprint=settings.fingerprint, time=1, instance="0", started=1, owned=1,
        inputs=1,
        epoch=1, workers=workers, tuples=1, rejected=0, read=1, filtered=0, period_ms=1_000, rate=1.0,
        keys=1.0, busy=0.5,
        imbalance=0.1,
    )  # fmt: skip


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    result = work()
    return time.process_time() - began, result
