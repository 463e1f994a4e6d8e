"""What a sweep's table says over the seeds: a mean or median with its interval,
and the paired difference of two names.

The interval of a mean is Student's t interval. The interval of a median is the percentile bootstrap with
`RESAMPLES` resamples and a fixed seed. An interval of fewer than two seeds does not exist, and a bootstrap of
fewer than ten is narrow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from evenflow.errors import ConfigError
from evenflow.numeric.arrays import Float64s
from evenflow.simulation.provenance import Provenance, of_rows
from evenflow.sweep.grid import IDENTITY
from evenflow.sweep.table import FIGURES
from evenflow.text.spelling import did_you_mean

RESAMPLES = 10_000
_BOOTSTRAP_SEED = 1
_ANGLES = 100_001
Centre = Literal["mean", "median"]
CONDITIONS = tuple(name for name in IDENTITY if name not in ("partitioner", "seed", "hash_seed"))
"""Columns that are the same for all seeds and partitioners of a comparison."""
Condition = tuple[Any, ...]
Seed = tuple[int | None, int]
"""Seed of the stream, and of the hash family."""


@dataclass(frozen=True)
class Interval:
    """A mean or median with its interval."""

    centre: float
    """The mean or median of the values."""
    low: float | None
    """Lower end of the interval. None if there are fewer than two values."""
    high: float | None
    """Upper end of the interval. None if there are fewer than two values."""


@dataclass(frozen=True, kw_only=True)
class ConditionSummary:
    """One partitioner under one condition."""

    partitioner: str
    """The partitioner as the sweep's user wrote it."""
    condition: Mapping[str, Any]
    """The values of `CONDITIONS` by name: what all seeds and partitioners of a comparison share."""
    seeds: int
    """How many seeds the value is over."""
    value: Interval
    """The metric over the seeds."""
    provenance: Mapping[str, Any]
    """What made the value (`provenance.of_rows`)."""

    def as_json(self) -> dict[str, Any]:
        """The fields as plain JSON."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two partitioners under one condition, on the same seeds. Less wins."""

    condition: Mapping[str, Any]
    """The values of `CONDITIONS` by name: what all seeds and partitioners of a comparison share."""
    first: str
    """One partitioner, as the sweep's user wrote it."""
    second: str
    """The other partitioner."""
    seeds: int
    """Seeds that both have."""
    unpaired: int
    """Seeds that only one of them has. They count nowhere."""
    first_value: Interval
    """The metric of the first over the seeds that both have."""
    second_value: Interval
    """The metric of the second over the same seeds."""
    difference: Interval
    """The metric of first - second, seed by seed."""
    first_wins: int
    """Seeds on which the value of the first is less."""
    second_wins: int
    """Seeds on which the value of the second is less."""
    ties: int
    """Seeds on which both values are equal."""
    first_provenance: Mapping[str, Any]
    """What made the values of the first, on the seeds that both have (`provenance.of_rows`)."""
    second_provenance: Mapping[str, Any]
    """What made the values of the second, likewise."""

    def as_json(self) -> dict[str, Any]:
        """The fields as plain JSON."""
        return asdict(self)


def summarised(
    table: pa.Table,
    metric: str,
    names: Sequence[str] = (),
    *,
    centre: Centre = "mean",
    level: float = 0.95,
) -> list[ConditionSummary]:
    """Each partitioner under each condition, in the order of the table.
    names: which partitioners. Empty: all.

    ConfigError for an unknown metric or name, and for a metric without a value.
    """
    values, rows = _values(table, metric), _Origins(table)
    known = dict.fromkeys(name for name, _ in values)
    for name in names:
        _check_name(name, known)
    return [
        ConditionSummary(
            partitioner=name,
            condition=dict(zip(CONDITIONS, condition, strict=True)),
            seeds=len(by_seed),
            value=interval(_numbers(by_seed), centre=centre, level=level),
            provenance=rows.provenance(by_seed.values()),
        )
        for (name, condition), by_seed in values.items()
        if not names or name in names
    ]


def compared(
    table: pa.Table, metric: str, first: str, second: str, *, centre: Centre = "mean", level: float = 0.95
) -> list[Comparison]:
    """Two partitioners on the same seeds, under each condition that both have, in the order of the table.

    ConfigError for an unknown metric or name, for twice the same name, and if they have no seed in common.
    """
    values, rows = _values(table, metric), _Origins(table)
    known = dict.fromkeys(name for name, _ in values)
    for name in (first, second):
        _check_name(name, known)
    if first == second:
        raise ConfigError(f"{first!r} is compared with itself", hint="name two partitioners")
    comparisons = []
    for (name, condition), ours in values.items():
        theirs = values.get((second, condition))
        if name == first and theirs is not None and (both := [seed for seed in ours if seed in theirs]):
            comparisons.append(
                _paired(
                    {seed: ours[seed] for seed in both},
                    {seed: theirs[seed] for seed in both},
                    unpaired=len(ours) + len(theirs) - 2 * len(both),
                    names=(first, second),
                    condition=dict(zip(CONDITIONS, condition, strict=True)),
                    rows=rows,
                    centre=centre,
                    level=level,
                )
            )
    if not comparisons:
        raise ConfigError(
            f"{first!r} and {second!r} have no cell and seed in common",
            hint="sweep both over the same lists",
        )
    return comparisons


def interval(values: Sequence[float], *, centre: Centre, level: float) -> Interval:
    """The mean or median of the values with its interval at this level, 0 < level < 1.
    ConfigError for another level.
    """
    if not 0 < level < 1:
        raise ConfigError(f"the level of an interval is between 0 and 1, not {level}", hint="usual is 0.95")
    numbers = np.array(values, np.float64)
    at = float(numbers.mean() if centre == "mean" else np.median(numbers))
    if len(numbers) < 2:
        return Interval(at, None, None)
    if centre == "mean":
        reach = student_t(level, len(numbers) - 1) * float(numbers.std(ddof=1)) / math.sqrt(len(numbers))
        return Interval(at, at - reach, at + reach)
    low, high = _bootstrap(numbers, level)
    return Interval(at, low, high)


def student_t(level: float, freedom: int) -> float:
    """The t that Student's distribution with these degrees of freedom exceeds, on both sides, with 1 - level.

    With t = sqrt(f) tan(a) the density of a is proportional to cos(a)^(f-1), which has no tails to cut off.
    """
    angles = np.linspace(0, math.pi / 2, _ANGLES)
    density = np.cos(angles) ** (freedom - 1)
    # The trapezoidal rule. Its constant factor goes out with `share[-1]`.
    share = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    angle = float(np.interp(level, share / share[-1], angles))
    return math.sqrt(freedom) * math.tan(angle)


def _bootstrap(numbers: Float64s, level: float) -> tuple[float, float]:
    """The percentile interval of the median."""
    # A fixed seed, so that the same table always gives the same interval.
    random = np.random.default_rng(_BOOTSTRAP_SEED)
    resamples = random.integers(0, len(numbers), (RESAMPLES, len(numbers)))
    low, high = np.quantile(np.median(numbers[resamples], axis=1), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _paired(
    ours: Mapping[Seed, _Value],
    theirs: Mapping[Seed, _Value],
    *,
    rows: _Origins,
    unpaired: int,
    names: tuple[str, str],
    condition: Mapping[str, Any],
    centre: Centre,
    level: float,
) -> Comparison:
    differences = [ours[seed].number - theirs[seed].number for seed in ours]
    return Comparison(
        condition=condition,
        first=names[0],
        second=names[1],
        seeds=len(ours),
        unpaired=unpaired,
        first_value=interval(_numbers(ours), centre=centre, level=level),
        second_value=interval(_numbers(theirs), centre=centre, level=level),
        difference=interval(differences, centre=centre, level=level),
        first_wins=sum(difference < 0 for difference in differences),
        second_wins=sum(difference > 0 for difference in differences),
        ties=sum(difference == 0 for difference in differences),
        first_provenance=rows.provenance(ours.values()),
        second_provenance=rows.provenance(theirs.values()),
    )


class _Value(NamedTuple):
    """A value of the metric, and where it is from."""

    number: float
    """The metric of this row."""
    row: int
    """Place of the row in the table."""


class _Origins:
    """What the rows of the table say of where they come from."""

    def __init__(self, table: pa.Table) -> None:
        self._columns = {field.name: table.column(field.name).to_pylist() for field in fields(Provenance)}

    def provenance(self, values: Iterable[_Value]) -> dict[str, Any]:
        """The provenance of a figure over these values."""
        rows = [value.row for value in values]
        return of_rows([{name: column[row] for name, column in self._columns.items()} for row in rows])


def _numbers(by_seed: Mapping[Seed, _Value]) -> list[float]:
    return [value.number for value in by_seed.values()]


def _values(table: pa.Table, metric: str) -> dict[tuple[str, Condition], dict[Seed, _Value]]:
    """The value of each seed, by partitioner and condition."""
    if metric not in FIGURES:
        raise ConfigError(
            f"there is no metric {metric!r}{did_you_mean(metric, FIGURES)}",
            hint=f"known: {', '.join(FIGURES)}",
        )
    columns = {name: table.column(name).to_pylist() for name in {*IDENTITY, metric}}
    values: dict[tuple[str, Condition], dict[Seed, _Value]] = {}
    for at in range(table.num_rows):
        row = {name: column[at] for name, column in columns.items()}
        if row[metric] is None:
            raise ConfigError(
                f"{row['partitioner']} has no {metric} in the table",
                hint="window_imbalance needs a sweep with --window; choose another --metric",
            )
        by_seed = values.setdefault((row["partitioner"], tuple(row[name] for name in CONDITIONS)), {})
        seed = (row["seed"], row["hash_seed"])
        if seed in by_seed:
            raise ConfigError(
                f"the table has {row['partitioner']} with seed {row['hash_seed']} twice under one condition",
                hint="each cell has one row",
            )
        by_seed[seed] = _Value(float(row[metric]), at)
    if not values:
        raise ConfigError("the table has no rows", hint="run a sweep")
    return values


def _check_name(name: str, known: Mapping[str, None]) -> None:
    if name not in known:
        raise ConfigError(
            f"the table has no partitioner {name!r}{did_you_mean(name, known)}",
            hint=f"it has: {', '.join(known)}",
        )
