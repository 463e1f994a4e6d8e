"""What one scrape says: values under the names of the catalogue. What is not known is left out, never 0."""

from __future__ import annotations

import math
import platform
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

import evenflow
from monitoring.instruments.catalogue import BUILD, Metric

# A series more for each histogram and counter, which nobody asks for.
disable_created_metrics()  # type: ignore[no-untyped-call]

_FAMILIES: dict[str, Any] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "histogram": HistogramMetricFamily,
}


class Weighted:
    """A histogram whose values come with how often they were there. Not safe for several threads by itself."""

    def __init__(self, metric: Metric) -> None:
        self._bounds = metric.bounds
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0

    def add(self, value: float, often: int) -> None:
        """So many times this value."""
        self._counts[bisect_left(self._bounds, value)] += often
        self._sum += value * often

    def ranges(self) -> list[tuple[str, float]]:
        """(upper bound, values up to it), as Prometheus wants them."""
        names = [str(floatToGoString(bound)) for bound in (*self._bounds, math.inf)]  # type: ignore[no-untyped-call]
        return list(zip(names, accumulate(self._counts), strict=True))

    @property
    def total(self) -> float:
        """Of all values."""
        return self._sum


class Sheet:
    """Filled during one scrape."""

    def __init__(self, query: str) -> None:
        self._query = query
        self._families: dict[str, Any] = {}

    def of(self, query: str) -> Sheet:
        """The same sheet for values of another query, as a view is one."""
        other = Sheet(query)
        other._families = self._families
        return other

    def put(self, metric: Metric, value: float | None, **labels: object) -> None:
        """Nothing for None. Raises ValueError for labels that the metric does not have."""
        if value is not None:
            family, values = self._of(metric, labels)
            family.add_metric(values, value)

    def put_histogram(self, metric: Metric, histogram: Weighted, **labels: object) -> None:
        """Raises as `put` does."""
        family, values = self._of(metric, labels)
        family.add_metric(values, histogram.ranges(), histogram.total)

    def _of(self, metric: Metric, labels: Mapping[str, object]) -> tuple[Any, list[str]]:
        if set(labels) != set(metric.labels):
            raise ValueError(f"{metric.name} has the labels {metric.labels}, not {tuple(labels)}")
        if metric.name not in self._families:
            family = _FAMILIES[metric.kind]
            self._families[metric.name] = family(metric.name, metric.help, labels=("query", *metric.labels))
        return self._families[metric.name], [self._query, *(str(labels[name]) for name in metric.labels)]

    def families(self) -> Iterable[Family]:
        """In order of their first value."""
        return self._families.values()


class Instruments(Collector):
    """The metrics of one part, whose `write` is called at every scrape, in whatever thread asks.

    part: as in the label of `evenflow_build_info`.
    """

    def __init__(self, query: str, part: str) -> None:
        self._query = query
        self._part = part
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self.registry.register(self)

    def histogram(self, metric: Metric) -> Histogram:
        """One that is told each single value. Its labels are `query` and the metric's."""
        return Histogram(
            metric.name,
            metric.help,
            ("query", *metric.labels),
            buckets=metric.bounds,
            registry=self.registry,
        )

    def describe(self) -> Iterable[Family]:
        """Nothing: what there is depends on what is known."""
        return []

    def write(self, sheet: Sheet) -> None:
        """Put what is known now. For each part to say."""

    def collect(self) -> Iterable[Family]:
        """One scrape."""
        sheet = Sheet(self._query)
        sheet.put(BUILD, 1, part=self._part, version=evenflow.__version__, python=platform.python_version())
        self.write(sheet)
        return sheet.families()
