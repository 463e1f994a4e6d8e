"""The tables of `service-costly-peers` and `service-costly-live` in docs/measurements.md, which
`python -m benchmarks.measurements_page` writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.pages.tables import table
from benchmarks.spark.costly_live import PARTITIONERS
from benchmarks.spark.costly_peers import AT_ONCE

_SYSTEMS = {
    "evenflow, evenflow": "evenflow, `evenflow`",
    "evenflow, hashing": "evenflow, `hashing`",
    "flink, keyBy": "Flink, keyBy (`ONE_PHASE`)",
    "flink, two-phase": "Flink, two-phase (`TWO_PHASE`)",
    "spark, groupBy": "Spark, `groupBy`",
    "spark, 8 salts": "Spark, 8 salts by hand",
    f"evenflow, evenflow, {AT_ONCE}": f"evenflow, `evenflow`, {AT_ONCE}",
    f"spark, 8 salts, {AT_ONCE}": f"Spark, 8 salts by hand, {AT_ONCE}",
}
_LIVE_SYSTEMS = {f"evenflow, {name}": f"evenflow, `{name}`" for name in PARTITIONERS} | {
    "spark, by key": "Spark, a function by key"
}


def peers_table(figures: Mapping[str, Any]) -> str:
    """Each system under each skew, beside perfect balance."""
    by_name = _by_name(figures["rows"], "system")
    skews = _skews(figures["rows"])
    return table(
        (
            "system",
            *(
                f"Zipf {skew}: {words}"
                for skew in skews
                for words in ("of perfect", "CPU, s per million tuples", "tuples/s")
            ),
            "memory, MiB",
        ),
        [
            (
                words,
                *(cell for skew in skews for cell in _speed_and_cpu(by_name[name][skew])),
                f"{max(row['most_mib'] for row in by_name[name].values()):,}",
            )
            for name, words in _SYSTEMS.items()
        ],
    )


def live_table(figures: Mapping[str, Any]) -> str:
    """How late the rows of each system are under each skew."""
    by_name = _by_name(figures["rows"], "system")
    skews = _skews(figures["rows"])
    return table(
        (
            "system",
            *(f"Zipf {skew}: {words}" for skew in skews for words in ("p50 / p99, s", "grows by, s")),
            "memory, MiB",
        ),
        [
            (
                _LIVE_SYSTEMS.get(name) or _SYSTEMS[name],
                *(cell for skew in skews for cell in _lateness(rows[skew])),
                f"{max(sum(row['most_mib'].values()) for row in rows.values()):,}",
            )
            for name, rows in by_name.items()
        ],
    )


def times_as_fast(figures: Mapping[str, Any], zipf: float, other: str) -> float:
    """How many times as fast evenflow is as another system under this skew."""
    by_name = _by_name(figures["rows"], "system")
    ours, theirs = (by_name[name][zipf] for name in ("evenflow, evenflow", other))
    return float(ours["tuples_per_second"] / theirs["tuples_per_second"])


def _by_name(rows: Sequence[Mapping[str, Any]], column: str) -> dict[str, dict[float, Mapping[str, Any]]]:
    """The rows by what stands in a column, and by their skew."""
    by_name: dict[str, dict[float, Mapping[str, Any]]] = {}
    for row in rows:
        by_name.setdefault(row[column], {})[row["zipf"]] = row
    return by_name


def _skews(rows: Sequence[Mapping[str, Any]]) -> list[float]:
    return sorted({row["zipf"] for row in rows})


def _speed_and_cpu(row: Mapping[str, Any]) -> tuple[str, str, str]:
    cpu = row["cpu_seconds_per_million_tuples"]["all"]
    return f"{row['of_perfect']:.2f}", f"{cpu:.1f}", f"{row['tuples_per_second']:,.0f}"


def _lateness(row: Mapping[str, Any]) -> tuple[str, str]:
    if row["latency_p50_ms"] is None:
        return "no row", ""
    p50, p99, growth = (row[name] / 1000 for name in ("latency_p50_ms", "latency_p99_ms", "growth_ms"))
    # Adding 0 makes 0.0 of -0.0.
    return f"{p50:.1f} / {p99:.1f}", f"{round(growth, 1) + 0:.1f}"
