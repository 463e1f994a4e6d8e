"""What was routed, and what other partitioners would have done with the same tuples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenflow import metrics, partitioners
from evenflow.keys import hash_keys
from evenflow.numeric.arrays import Int32s, Int64s, UInt64s
from evenflow.settings import Settings
from evenflow.wire import decode_frame
from topics import reader

COMPARED = ("hashing", "shuffle")


@dataclass(frozen=True, kw_only=True)
class RoutingFigures:
    """How tuples were spread over the workers."""

    name: str
    """Name of the partitioner."""
    loads: tuple[int, ...]
    """Tuples of each worker."""
    imbalance: float
    """I(m) over all tuples."""
    window_imbalance: float
    """Mean over windows of (max load - mean load) / tuples."""
    ksr: float
    """Mean over consecutive windows of the replication factor."""


@dataclass(frozen=True)
class RoutedTuples:
    """Every routed tuple, in order of panes. Arrays of shape (m,)."""

    keys: UInt64s
    """Hash of the tuple's key."""
    panes: Int64s
    """Number of the pane that holds the tuple."""
    workers: Int32s
    """The worker to which the tuple was routed."""


def read_tuples(settings: Settings) -> RoutedTuples:
    """All tuples of the routed topic."""
    keys, panes, workers = [np.empty(0, np.uint64)], [np.empty(0, np.int64)], [np.empty(0, np.int32)]
    for messages in reader.read_range(settings.kafka, settings.topic("routed")):
        for message in messages:
            frame = decode_frame(message.value(), fingerprint=settings.fingerprint)
            keys.append(hash_keys(frame.batch.column(1)))
            panes.append(frame.batch.column(0).to_numpy())
            workers.append(frame.row_workers(message.partition()))
    all_panes = np.concatenate(panes)
    order = np.argsort(all_panes, kind="stable")
    return RoutedTuples(np.concatenate(keys)[order], all_panes[order], np.concatenate(workers)[order])


def as_routed(settings: Settings, tuples: RoutedTuples) -> RoutingFigures:
    """How the partitioner service has routed these tuples."""
    return _measure(settings, settings.partitioner.name, tuples, tuples.workers)


def as_others(settings: Settings, tuples: RoutedTuples) -> list[RoutingFigures]:
    """How each of the partitioners in COMPARED routes the same tuples.
    The partitioner of the settings is left out.
    """
    routings = []
    for name in COMPARED:
        if name != settings.partitioner.name:
            other: Any = partitioners.create(
                name, workers=settings.partitioner.workers, seed=settings.partitioner.seed
            )
            workers = other.assign(tuples.keys, tuples.panes * settings.query.slide_ms)
            routings.append(_measure(settings, name, tuples, workers))
    return routings


def _measure(settings: Settings, name: str, tuples: RoutedTuples, workers: Int32s) -> RoutingFigures:
    n, width = settings.partitioner.workers, settings.query.panes_per_window
    loads = metrics.worker_loads(workers, n)
    _, by_window = metrics.window_imbalance(workers, tuples.panes, n, panes_per_window=width)
    return RoutingFigures(
        name=name,
        loads=tuple(int(load) for load in loads),
        imbalance=metrics.imbalance(loads),
        window_imbalance=float(by_window.mean()) if len(by_window) else 0.0,
        ksr=_replication(tuples, workers, width),
    )


def _replication(tuples: RoutedTuples, workers: Int32s, width: int) -> float:
    """Mean over consecutive windows of (distinct (key, worker) pairs) / (distinct keys)."""
    if not len(workers):
        return 1.0
    # Windows side by side, not sliding ones, so that each tuple counts once. Tuples are in order of panes.
    windows = np.floor_divide(tuples.panes, width)
    bounds = np.flatnonzero(np.diff(windows)) + 1
    pieces = zip(np.split(workers, bounds), np.split(tuples.keys, bounds), strict=True)
    return float(np.mean([metrics.replication_factor(some, keys) for some, keys in pieces]))
