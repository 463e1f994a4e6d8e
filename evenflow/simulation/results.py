"""The result of a simulation, and its computation from a routed stream."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenflow import metrics
from evenflow.numeric.arrays import Float64s, Int64s
from evenflow.simulation.channel import ChannelTraffic
from evenflow.simulation.routing import RoutedStream
from evenflow.simulation.scenario import Entrant, Scenario
from evenflow.simulation.streams import KeyedStream


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The figures of one partitioner on one stream. The definitions are those of `evenflow.metrics`."""

    partitioner: str
    """The partitioner as the user wrote it, with its options."""
    workers: int
    """How many workers the stream was routed to."""
    tuples: int
    """How many tuples the stream has."""
    keys: int
    """Keys of the generator, whether or not each occurs, or distinct keys of the file."""
    exchange: bool
    """Whether the sources told each other what they know."""
    exchange_tables: int | None
    """Tables that were made of the messages of all. None without an exchange."""
    exchange_bytes: float | None
    """Bytes that a source sent per second of event time: its messages, and its share of the tables.
    None without one.
    """
    total_cost: int | None = None
    """Sum of the costs of all tuples. The loads of workers are then sums of costs. None: loads count
    tuples.
    """
    weighs: bool | None = None
    """Whether the partitioner weighs tuples by their costs. None if tuples have no costs."""
    imbalance: float
    """I(m) = largest share of a worker - 1/workers, at the end of the stream. Shares are of the loads."""
    imbalance_mean: float
    """Mean of I(t) at evenly spaced points of the stream."""
    window_imbalance: float | None
    """(max load - mean load) / load of all workers in the window, mean over slides after the warm-up.
    None without window."""
    gamma: float
    """Distinct (key, worker) pairs of the whole stream. With windows, their mean over the measured slides."""
    distinct: float
    """Distinct keys of the whole stream. With windows, their mean over the measured slides."""
    ksr: float
    """Gamma / distinct, the replication factor. With windows, its mean over the measured slides."""
    max_holders: float
    """Workers that hold the most split key. With windows, their mean over the measured slides."""
    key_moves: float | None = None
    """How often a worker gets a key that other workers have in the window and it has not: mean over the
    measured slides, or over the whole stream without windows. None unless the scenario has `state_bytes`."""
    moved_bytes: float | None = None
    """Bytes of state that these moves take along, if state follows its key."""
    moved_pause_s: float | None = None
    """Seconds for which work stands still while they move."""
    hot_keys: int | None
    """Keys treated as frequent at the end, at the source that has most.
    None if the rule does not tell keys apart.
    """
    seconds: float
    """Processor time inside `assign`. Compiling the kernels and the exchange are not included."""
    ns_per_tuple: float
    """`seconds` per tuple, in nanoseconds."""

    def as_json(self) -> dict[str, Any]:
        """The fields as plain JSON, in their order.
        Those of costs and of state are left out where there are none.
        """
        fields = asdict(self)
        if self.key_moves is None:
            del fields["key_moves"], fields["moved_bytes"], fields["moved_pause_s"]
        if self.total_cost is None:
            del fields["total_cost"], fields["weighs"]
        return fields


@dataclass(frozen=True, eq=False, kw_only=True)
class SimulationResult:
    """Figures, and the whole series that the charts show."""

    figures: Figures
    """What the result is in numbers."""
    at: Float64s
    """Where the imbalance over time was taken: seconds of event time (windowed), or tuples so far."""
    over_time: Float64s
    """Imbalance at each of these points: of the window of every slide, or of the stream so far."""
    loads: Int64s
    """Load of each worker over the whole stream: its tuples, or the sum of their costs."""


def measure(routed: RoutedStream, who: Entrant, stream: KeyedStream, scenario: Scenario) -> SimulationResult:
    """The figures and curves of a routed stream."""
    n, tuples, costs = scenario.workers, len(stream), stream.costs
    points, samples = metrics.sampled_imbalance(routed.workers, n, samples=scenario.samples, costs=costs)
    loads = metrics.worker_loads(routed.workers, n, costs)
    at, over_time = points.astype(np.float64), samples
    if scenario.window_ms is None:
        windows = metrics.stream_figures(routed.workers, stream.codes, n, costs=costs)
    else:
        panes = scenario.panes(stream.times)
        first, last = scenario.measured_slides(panes, stream)
        all_windows = metrics.window_figures(
            routed.workers,
            stream.codes,
            panes,
            n,
            panes_per_window=scenario.panes_per_window,
            through=last,
            costs=costs,
        )
        at = ((all_windows.ends + 1 - int(panes[0])) * (scenario.slide_ms / 1000)).astype(np.float64)
        over_time = all_windows.imbalance
        windows = all_windows[int(np.searchsorted(all_windows.ends, first)) :]
    # Without a window there is one value, which stays a whole number.
    mean = _only if scenario.window_ms is None else _mean
    moves = None if scenario.state_bytes is None else _key_moves(routed, stream, scenario)
    moved = None if moves is None else moves * (scenario.state_bytes or 0)
    figures = Figures(
        partitioner=who.label,
        workers=n,
        tuples=tuples,
        keys=stream.key_count,
        exchange=routed.sent is not None,
        exchange_tables=None if routed.sent is None else routed.sent.tables,
        exchange_bytes=None if routed.sent is None else _bytes_per_second(routed.sent, stream, scenario),
        total_cost=None if costs is None else int(loads.sum()),
        weighs=None if costs is None else routed.takes_costs,
        imbalance=metrics.imbalance(loads),
        imbalance_mean=_mean(samples),
        window_imbalance=None if scenario.window_ms is None else _mean(windows.imbalance),
        gamma=mean(windows.gamma),
        distinct=mean(windows.distinct),
        ksr=_mean(windows.ksr),
        max_holders=mean(windows.max_holders),
        key_moves=moves,
        moved_bytes=moved,
        moved_pause_s=None if moved is None else scenario.migration.pause_s(moved),
        hot_keys=routed.hot_keys,
        seconds=routed.seconds,
        ns_per_tuple=routed.seconds * 1e9 / tuples,
    )
    return SimulationResult(figures=figures, at=at, over_time=over_time, loads=loads)


def _key_moves(routed: RoutedStream, stream: KeyedStream, scenario: Scenario) -> float:
    """Moves of keys in a measured slide on average, or in the whole stream without windows."""
    if scenario.window_ms is None:
        # One slide with all tuples.
        panes = np.zeros(len(stream), np.int64)
        return float(
            metrics.key_moves(routed.workers, stream.codes, panes, scenario.workers, panes_per_window=1)[
                1
            ].sum()
        )
    panes = scenario.panes(stream.times)
    first, last = scenario.measured_slides(panes, stream)
    slides, moves = metrics.key_moves(
        routed.workers, stream.codes, panes, scenario.workers, panes_per_window=scenario.panes_per_window
    )
    return float(moves[(slides >= first) & (slides <= last)].sum()) / (last - first + 1)


def _bytes_per_second(sent: ChannelTraffic, stream: KeyedStream, scenario: Scenario) -> float:
    """Of one source, per second of event time."""
    clock = scenario.clock(stream.times)
    seconds = (int(clock.max()) - int(clock[0]) + 1) / 1000
    return (sent.message_bytes + sent.table_bytes) / scenario.sources / seconds


def _mean(values: npt.NDArray[Any]) -> float:
    return float(values.mean())


def _only(values: Int64s) -> int:
    return int(values[0])
