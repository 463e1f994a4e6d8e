"""The runs that docs/scale.md compares its model with, of the rows in docs/measurements."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.pages.rows import Rows
from benchmarks.service.growth import LARGE, SHORT
from evenflow.scale.runs import CatchUp, Service, WholeRuns
from evenflow.settings.sections.sharing import chosen_partitions

SCENARIOS = (
    "growth-service",
    "service-partitioner-hashing",
    "service-end-to-end-fused",
)
"""The scenarios whose rows have the figures."""
_BLOCK, _COMMIT = SHORT["block_tuples"], SHORT["commit_interval"] / 1000
_CATCH_UPS = (1.0, 1.4)


def whole_runs(rows: Rows) -> WholeRuns:
    """The runs that these rows have."""
    services = [*_large(rows), _hashing(rows), *_shapes(rows)]
    return WholeRuns(services, [_catch_up(rows, zipf) for zipf in _CATCH_UPS])


def _large(rows: Rows) -> Iterator[Service]:
    """1,000 workers with a routed partition each, and with those that evenflow chooses."""
    figures, (workers, inputs) = rows["growth-service"], LARGE
    for part, routed, sharing in (
        (figures, workers, None),
        (figures["as_chosen"], chosen_partitions(workers), workers),
    ):
        used = part["large_by_process"]["cpu_seconds_per_million_tuples"]["data_plane"]
        # The median of the turns. The first one may meet a broker that has never seen so many partitions.
        all_of_it = part["large_cpu_seconds_per_million_tuples"]["median"]
        rate = _rate(part["large_tuples_per_second"]["median"])
        yield Service(
            "growth-service",
            routed,
            inputs,
            _BLOCK,
            _COMMIT,
            rate,
            used,
            round(all_of_it - used, 2),
            workers=sharing,
        )


def _hashing(rows: Rows) -> Service:
    """8 workers and 4 input partitions. The broker's share is that of the same shape in `growth-service`."""
    figures = rows["service-partitioner-hashing"]
    used = figures["service_by_process"]["cpu_seconds_per_million_tuples"]["data_plane"]
    rate = _rate(figures["service_tuples_per_second"]["median"])
    return Service("service-partitioner-hashing", 8, 4, _BLOCK, _COMMIT, rate, used, None)


def _shapes(rows: Rows) -> Iterator[Service]:
    for shape in rows["growth-service"]["shapes"]:
        used = shape["cpu_seconds_per_million_tuples"]
        yield Service(
            "growth-service",
            shape["workers"],
            shape["inputs"],
            shape["block_tuples"],
            shape["commit_interval"] / 1000,
            _rate(shape["tuples_per_second"]),
            used["data_plane"],
            used["broker"],
        )


def _catch_up(rows: Rows, zipf: float) -> CatchUp:
    figures = rows["service-end-to-end-fused"][f"zipf_{zipf}"]["catch_up"]
    used = figures["cpu_seconds_per_million_tuples"]
    return CatchUp(
        zipf,
        _rate(figures["tuples_per_second"]),
        _rate(figures["result_rows_per_second"]),
        used["partitioner"],
        used["broker"],
        round(used["spark_jvm"] + used["spark_python"], 2),
    )


def _rate(tuples: float) -> float:
    return float(round(tuples, -3))
