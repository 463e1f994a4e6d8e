"""The values of one scrape, under the names of the catalogue.

A value that is not known is left out. It is never 0.
"""

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
from evenflow.settings import Settings
from monitoring.instruments.catalogue import BUILD, CERTIFICATE_END, Metric
from topics.certificates import PAGES, certificate_ends

# Otherwise each counter and histogram would have one more series, `_created`, which nothing here uses.
disable_created_metrics()  # type: ignore[no-untyped-call]

_FAMILIES: dict[str, Any] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "histogram": HistogramMetricFamily,
}


class WeightedHistogram:
    """A histogram to which a value can be added many times at once.

    The caller must guard it against other threads. prometheus_client's own histogram takes single values
    only.
    """

    def __init__(self, metric: Metric) -> None:
        self._bounds = metric.bounds
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0

    def add(self, value: float, often: int) -> None:
        """Add this value, `often` times."""
        # bisect_left: a value at a bound belongs to the range that ends there.
        self._counts[bisect_left(self._bounds, value)] += often
        self._sum += value * often

    def ranges(self) -> list[tuple[str, float]]:
        """(upper bound, number of values up to it) of each range: cumulative, as Prometheus wants them."""
        names = [str(floatToGoString(bound)) for bound in (*self._bounds, math.inf)]  # type: ignore[no-untyped-call]
        return list(zip(names, accumulate(self._counts), strict=True))

    @property
    def total(self) -> float:
        """The sum of all values."""
        return self._sum


class Sheet:
    """Collects the values of one scrape.

    query: the value of the label `query`. families: where the values go, by the name of the metric. None:
    into a new dict.
    """

    def __init__(self, query: str, families: dict[str, Any] | None = None) -> None:
        self._query = query
        self._families = {} if families is None else families

    def for_query(self, query: str) -> Sheet:
        """The same sheet, with another value of the label `query`. Used for views."""
        return Sheet(query, self._families)

    def put(self, metric: Metric, value: float | None, **labels: object) -> None:
        """Add a value.

        None is left out. Raises ValueError unless the labels are exactly those of the metric.
        """
        if value is not None:
            family, values = self._family(metric, labels)
            family.add_metric(values, value)

    def put_histogram(self, metric: Metric, histogram: WeightedHistogram, **labels: object) -> None:
        """Add a histogram. Raises what `put` raises."""
        family, values = self._family(metric, labels)
        family.add_metric(values, histogram.ranges(), histogram.total)

    def _family(self, metric: Metric, labels: Mapping[str, object]) -> tuple[Any, list[str]]:
        if set(labels) != set(metric.labels):
            raise ValueError(f"{metric.name} has the labels {metric.labels}, not {tuple(labels)}")
        if metric.name not in self._families:
            family = _FAMILIES[metric.kind]
            self._families[metric.name] = family(metric.name, metric.help, labels=("query", *metric.labels))
        return self._families[metric.name], [self._query, *(str(labels[name]) for name in metric.labels)]

    def families(self) -> Iterable[Family]:
        """All metrics with a value, in the order of their first values."""
        return self._families.values()


class Instruments(Collector):
    """The metrics of one part. Subclasses fill a sheet in `write`, which is called at every scrape.

    Scrapes come in threads of their own, maybe several at once. part: value of the label `part` of
    `evenflow_build_info`.
    """

    def __init__(self, settings: Settings, part: str) -> None:
        self._query = settings.query.name
        self._settings = settings
        # Clients read their files once, so what counts is what they held then.
        self._certificates = [one for one in certificate_ends(settings) if one.setting != PAGES]
        self._part = part
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self.registry.register(self)

    def histogram(self, metric: Metric) -> Histogram:
        """A histogram of prometheus_client, which takes single values.

        Its labels are `query` and the metric's own.
        """
        return Histogram(
            metric.name,
            metric.help,
            ("query", *metric.labels),
            buckets=metric.bounds,
            registry=self.registry,
        )

    def describe(self) -> Iterable[Family]:
        """Describe nothing: which metrics there are depends on what is known.

        Without this method, prometheus_client would call `collect` to find out.
        """
        return []

    def write(self, sheet: Sheet) -> None:
        """Put every value that is known now on the sheet. Each part has its own."""

    def collect(self) -> Iterable[Family]:
        """The metrics of one scrape. prometheus_client calls this."""
        sheet = Sheet(self._query)
        sheet.put(BUILD, 1, part=self._part, version=evenflow.__version__, python=platform.python_version())
        for certificate in [*self._certificates, *certificate_ends(self._settings, only=PAGES)]:
            sheet.put(CERTIFICATE_END, certificate.end, setting=certificate.setting)
        self.write(sheet)
        return sheet.families()
