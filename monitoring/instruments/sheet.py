"""What one scrape says: values under the names of the catalogue. What is not known is left out, never 0."""

from __future__ import annotations

import platform
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, GCCollector, Histogram, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

import evenflow
from monitoring.instruments.catalogue import BUILD, Metric

Families = CounterMetricFamily | GaugeMetricFamily


class Sheet:
    """Filled during one scrape."""

    def __init__(self, query: str) -> None:
        self._query = query
        self._families: dict[str, Families] = {}

    def put(self, metric: Metric, value: float | None, **labels: object) -> None:
        """Nothing for None. Raises ValueError for labels that the metric does not have."""
        if value is None:
            return
        if set(labels) != set(metric.labels):
            raise ValueError(f"{metric.name} has the labels {metric.labels}, not {tuple(labels)}")
        if metric.name not in self._families:
            kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            self._families[metric.name] = kind(metric.name, metric.help, labels=("query", *metric.labels))
        values = [self._query, *(str(labels[name]) for name in metric.labels)]
        self._families[metric.name].add_metric(values, value)

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
        """One that is told each single value; its labels are `query` and the metric's."""
        return Histogram(
            metric.name,
            metric.help,
            ("query", *metric.labels),
            buckets=metric.buckets,
            registry=self.registry,
        )

    def describe(self) -> Iterable[Family]:
        """Nothing: what there is depends on what is known."""
        return []

    def write(self, sheet: Sheet) -> None:
        """Put what is known now; for each part to say."""

    def collect(self) -> Iterable[Family]:
        """One scrape."""
        sheet = Sheet(self._query)
        sheet.put(BUILD, 1, part=self._part, version=evenflow.__version__, python=platform.python_version())
        self.write(sheet)
        return sheet.families()
