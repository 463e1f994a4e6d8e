"""The model beside measured runs: what was measured, what the model gives, and how far it is off.

A run is a setting that was measured as a whole. The unit costs were measured apart from it, except where
`fitted` says that they were fitted to this very run.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

from evenflow.scale.costs import Place, Units, terms
from evenflow.scale.law import ZipfLaw
from evenflow.scale.measurements import Measurements
from evenflow.scale.shape import Shape, StreamLoad

TASKS = 2
"""Tasks of the combiner in the scenarios `growth-lanes` and `service-end-to-end-fused`."""
_EVENT_RATE = 50_000
"""Tuples in a second of event time, in all scenarios of the services (`benchmarks/measuring/stream.py`)."""
_ROW_IN_CORE = 0.016 / 85_080
"""CPU seconds of a result row in the reducer's core, without Spark and the sink (`growth-keys`)."""


@dataclass(frozen=True)
class Run:
    """A measured figure beside the model's, in CPU seconds."""

    setting: str
    """Where it was measured: the benchmark and its sizes, in words."""
    quantity: str
    """What was measured of it: "partitioner", "broker", "combine and reduce"."""
    measured: float
    """What the run took."""
    model: float
    """What the model gives for such a run."""
    fitted: bool = False
    """Whether unit costs were fitted to this very figure, so that it proves nothing."""

    @property
    def ratio(self) -> float:
        """Model over measured."""
        return self.model / self.measured


class Service(NamedTuple):
    """A run of the partitioner service on one broker without replicas: a full topic is worked off."""

    source: str
    """The benchmark that measured it."""
    routed: int
    """Partitions of the routed topic."""
    inputs: int
    """Partitions of the input topic."""
    block: int
    """The setting block_tuples."""
    commit: float
    """The setting commit_interval, s."""
    rate: float
    """Tuples a second that were reached."""
    partitioner: float
    """CPU seconds of the partitioner for a million tuples."""
    broker: float | None
    """CPU seconds of the broker for a million tuples. None: another run has the same shape."""
    workers: int | None = None
    """How many workers share the routed partitions. None: each has one of its own."""


FULL_BATCHES = ((8, 4, 2, 0.033), (64, 16, 8, 0.052), (1_000, 100, 2, 0.340), (1_000, 100, 64, 0.932))
"""`growth-lanes`, micro-batches of 50,000 tuples in five blocks over 100,000 keys: routed partitions, input
partitions, buckets, CPU seconds of combine and reduce."""

WHOLE_RUNS = Path(__file__).with_name("whole_runs.json")
"""Figures of services that were measured as a whole, on a quiet machine. `python -m benchmarks.scale` writes
them, of the rows of `growth-service`, `service-partitioner-hashing` and `service-end-to-end-fused` in
docs/measurements.
"""


class CatchUp(NamedTuple):
    """The catch-up of `service-end-to-end-fused`: partitioner, broker and Spark on the same two cores."""

    zipf: float
    """Exponent of the keys' distribution."""
    rate: float
    """Tuples a second."""
    rows: float
    """Result rows a second."""
    partitioner: float
    """CPU seconds of the partitioner for a million tuples."""
    broker: float
    """CPU seconds of the broker for a million tuples."""
    spark: float
    """CPU seconds of Spark, JVM and Python, for a million tuples."""


class WholeRuns(NamedTuple):
    """What was measured as a whole."""

    services: list[Service]
    """Runs of the partitioner service alone."""
    catch_ups: list[CatchUp]
    """Runs of the whole pipeline."""

    def write(self, path: Path = WHOLE_RUNS) -> None:
        """Write a file that `read` reads."""
        figures = {name: [each._asdict() for each in kind] for name, kind in self._asdict().items()}
        path.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path = WHOLE_RUNS) -> WholeRuns:
        """The runs of a file."""
        figures = json.loads(path.read_text(encoding="utf-8"))
        return cls(
            [Service(**each) for each in figures["services"]],
            [CatchUp(**each) for each in figures["catch_ups"]],
        )


def runs(measurements: Measurements) -> list[Run]:
    """Every measured figure beside the model's."""
    units, whole = measurements.units, WholeRuns.read()
    return [
        *_empty_batches(measurements),
        *_full_batches(units),
        *(run for service in whole.services for run in _service(service, units)),
        *(run for catch_up in whole.catch_ups for run in _end_to_end(catch_up, units)),
        *_fitted(measurements),
    ]


def factor(compared: Sequence[Run]) -> tuple[float, float]:
    """How far the model is off: the median and the largest factor between model and measured,
    each at least 1.
    """
    factors = [math.exp(abs(math.log(run.ratio))) for run in compared]
    return median(factors), max(factors)


def empty_batch(routed: int, inputs: int, buckets: int, units: Units) -> float:
    """CPU seconds of a micro-batch without tuples, by the model.

    Each routed partition has one frame that tells, whose cost is part of `range`. There are two tasks, and
    each has one line of marks.
    """
    blobs = TASKS * buckets
    return (
        routed * units.range
        + blobs * units.blob
        + buckets * routed * units.segment
        + routed * inputs * units.lane
        + buckets * (units.bucket + routed * inputs * units.lane_state)
    )


def _empty_batches(measurements: Measurements) -> Iterator[Run]:
    for row in measurements.check:
        routed, inputs, buckets = (round(row[name]) for name in ("routed", "inputs", "buckets"))
        setting = f"growth-lanes, {routed:,} x {inputs}, {buckets} buckets, empty"
        model = empty_batch(routed, inputs, buckets, measurements.units)
        yield Run(setting, "combine and reduce", row["measured"], model)


def _full_batches(units: Units) -> Iterator[Run]:
    tuples, keys, blocks = 50_000, 100_000, 5
    flat = ZipfLaw("flat", 0.0, keys)
    for routed, inputs, buckets, measured in FULL_BATCHES:
        # The middle one of the measured micro-batches is the fourth, and each of them closes a window.
        rows = flat.distinct(4 * tuples)
        model = (
            empty_batch(routed, inputs, buckets, units)
            + blocks * (routed * units.frame_decoded + TASKS * units.header_decoded)
            + tuples * units.tuple_combined
            + flat.distinct(tuples) * units.partial_merged
            + rows * _ROW_IN_CORE
        )
        setting = f"growth-lanes, {routed:,} x {inputs}, {buckets} buckets, 50,000 tuples"
        yield Run(setting, "combine and reduce", measured, model)


def _service(service: Service, units: Units) -> Iterator[Run]:
    shape = Shape(
        rate=service.rate,
        inputs=service.inputs,
        routed=service.routed,
        shared_by=1.0 if service.workers is None else service.workers / service.routed,
        instances=1,
        slide=_EVENT_RATE / service.rate,
        commit=service.commit,
        block=service.block,
        linger=math.inf,  # the topic is full, so blocks are
        replicas=1,
    )
    load = StreamLoad(law="", slide_keys=0, window_keys=0, ksr=1, imbalance=0, hot=0)
    sharing = "" if service.workers is None else f"{service.workers:,} workers on "
    setting = (
        f"{service.source}, {sharing}{service.routed:,} x {service.inputs}, blocks of {service.block:,}, "
        f"commits of {service.commit:g} s"
    )
    for place, measured in (("instances", service.partitioner), ("brokers", service.broker)):
        if measured is not None:
            figure = {"instances": "partitioner", "brokers": "broker"}[place]
            yield Run(setting, figure, measured, _per_million(shape, load, units, place))  # type: ignore[arg-type]


def _end_to_end(catch_up: CatchUp, units: Units) -> Iterator[Run]:
    law = ZipfLaw(f"Zipf {catch_up.zipf}", catch_up.zipf, 100_000)
    shape = Shape(
        rate=catch_up.rate,
        inputs=4,
        routed=8,
        instances=1,
        buckets=2,
        tasks=TASKS,
        slide=_EVENT_RATE / catch_up.rate,
        block=50_000,
        linger=math.inf,
        replicas=1,
    )
    load = StreamLoad(
        law=law.name,
        slide_keys=law.distinct(_EVENT_RATE),
        window_keys=catch_up.rows * shape.slide,
        ksr=1,
        imbalance=0,
        hot=0,
    )
    setting = f"service-end-to-end-fused, Zipf {catch_up.zipf}, {catch_up.rate:,.0f} tuples/s"
    yield Run(setting, "partitioner", catch_up.partitioner, _per_million(shape, load, units, "instances"))
    yield Run(setting, "broker", catch_up.broker, _per_million(shape, load, units, "brokers"))
    yield Run(setting, "Spark", catch_up.spark, _per_million(shape, load, units, "executors", "driver"))


def _fitted(measurements: Measurements) -> Iterator[Run]:
    units = measurements.units
    for row in measurements.transactions:
        partitions, frames = row["partitions"], row["partitions"] * row["frames_a_partition"]
        setting = f"transaction, {partitions:,.0f} partitions, {row['frames_a_partition']:.0f} frames to each"
        broker = units.transaction_broker + partitions * units.marker + frames * units.frame_appended
        client = units.transaction_client + partitions * units.enlisted + frames * units.frame_produced
        yield Run(setting, "broker", row["broker_cpu"], broker, fitted=True)
        yield Run(setting, "client", row["client_cpu"], client, fitted=True)


def _per_million(shape: Shape, load: StreamLoad, units: Units, *places: Place) -> float:
    """CPU seconds per million tuples at these places."""
    cores = sum(term.cores for term in terms(shape, load, units) if term.place in places)
    return 1e6 * cores / shape.rate
