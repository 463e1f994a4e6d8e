"""What a simulation found, and how it is found from a routed stream."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenflow import metrics
from evenflow.arrays import Float64s, Int64s
from evenflow.simulation.routing import Routed
from evenflow.simulation.scenario import Entrant, Scenario
from evenflow.simulation.streams import KeyedStream

CURVE_POINTS = 200


@dataclass(frozen=True, kw_only=True)
class Figures:
    """One partitioner on one stream. The definitions are those of `evenflow.metrics`."""

    partitioner: str
    """As it was asked for, with its options."""
    workers: int
    tuples: int
    keys: int
    """Keys of the generator, or distinct keys of the file."""
    exchange: bool
    """Whether its sources told each other what they know, every slide."""
    imbalance: float
    """I(m) = largest share of a worker - 1/workers, at the end of the stream."""
    imbalance_mean: float
    """Mean of I(t) at evenly spaced points of the stream."""
    window_imbalance: float | None
    """(max load - mean load) / tuples of the window, mean over slides after the warm-up. None without window."""
    gamma: float
    """Distinct (key, worker) pairs: of the whole stream, or of a window as mean over slides."""
    distinct: float
    """Distinct keys, likewise."""
    ksr: float
    """Gamma / distinct: replication factor, likewise."""
    max_holders: float
    """Workers that hold the most split key, likewise."""
    hot_keys: int | None
    """Keys treated as frequent at the end, of the source with most. None: the rule does not tell keys apart."""
    seconds: float
    """Processor time inside `assign`, kernels being compiled already. Without that of the exchange."""
    ns_per_tuple: float
    """The same by tuple."""

    def as_json(self) -> dict[str, Any]:
        """The fields in order."""
        return asdict(self)


@dataclass(frozen=True, eq=False, kw_only=True)
class Result:
    """Figures, and the curves that the charts show."""

    figures: Figures
    at: Float64s
    """Where the imbalance over time was taken: seconds of event time (windowed), or tuples so far."""
    over_time: Float64s
    """Imbalance there: of the window, or of the stream so far."""
    loads: Int64s
    """Tuples of each worker over the whole stream."""


def measure(routed: Routed, who: Entrant, stream: KeyedStream, scenario: Scenario) -> Result:
    """Figures of a routed stream."""
    n, tuples = scenario.workers, len(stream)
    points, samples = metrics.sampled_imbalance(routed.workers, n, samples=scenario.samples)
    loads = metrics.worker_loads(routed.workers, n)
    at, over_time = points.astype(np.float64), samples
    if scenario.window_ms is None:
        windows = metrics.stream_figures(routed.workers, stream.codes, n)
    else:
        panes = scenario.panes(stream.times)
        first, last = scenario.measured_slides(panes, stream)
        all_windows = metrics.window_figures(
            routed.workers, stream.codes, panes, n, panes_per_window=scenario.panes_per_window, through=last
        )
        at = ((all_windows.ends + 1 - int(panes[0])) * (scenario.slide_ms / 1000)).astype(np.float64)
        over_time = all_windows.imbalance
        windows = all_windows[int(np.searchsorted(all_windows.ends, first)) :]
    mean = _only if scenario.window_ms is None else _mean
    thin = slice(None, None, -(-len(at) // CURVE_POINTS))
    figures = Figures(
        partitioner=who.label,
        workers=n,
        tuples=tuples,
        keys=stream.key_count,
        exchange=routed.exchanged,
        imbalance=metrics.imbalance(loads),
        imbalance_mean=_mean(samples),
        window_imbalance=None if scenario.window_ms is None else _mean(windows.imbalance),
        gamma=mean(windows.gamma),
        distinct=mean(windows.distinct),
        ksr=_mean(windows.ksr),
        max_holders=mean(windows.max_holders),
        hot_keys=routed.hot_keys,
        seconds=routed.seconds,
        ns_per_tuple=routed.seconds * 1e9 / tuples,
    )
    return Result(figures=figures, at=at[thin], over_time=over_time[thin], loads=loads)


def _mean(values: npt.NDArray[Any]) -> float:
    return float(values.mean())


def _only(values: Int64s) -> int:
    return int(values[0])
