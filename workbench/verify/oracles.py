"""Every aggregate again, in DuckDB: SQL of the exact value, and of how far a result may be from it.

Where an aggregate can be made of panes' totals it is `folded`: O(result rows). Any other is `whole`: it is computed over
the tuples of each window, so a tuple is looked at once for each window that it is in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from evenflow.aggregates import AggregatePlan
from evenflow.settings import Query
from workbench.verify.report import FLOAT_BOUND

_FITS = f"(s{{0}} BETWEEN {-(2**63)} AND {2**63 - 1})"
"""Sums of int64 are 128 bits wide here. A result that does not fit int64 is null."""
_SQUARES = 1e150
"""Doubles of which the squares are doubles too."""


@dataclass(frozen=True, kw_only=True)
class Oracle:
    """One result column.

    value: SQL of what it must be. tolerance: SQL of how far it may be off, 0 for not at all. Infinite: any value but null
    is fine. whole: whether both are over a window's tuples (columns `time`, `v0`, ...) and not over its totals. unfit:
    SQL, whether it is null because it does not fit. kind: type of the result. wrong: SQL, whether result `g` is wrong
    where `e` must be, of those that are no number with a tolerance.
    """

    value: str
    kind: pa.DataType
    tolerance: str = "0"
    whole: bool = False
    unfit: str = "false"
    wrong: str | None = None


def oracles(query: Query) -> list[Oracle]:
    """One for each result column, in their order."""
    columns = list(query.value_columns)
    found = []
    for (_, aggregate, call), field in zip(
        AggregatePlan.of(query).outputs, AggregatePlan.of(query).output_schema, strict=True
    ):
        at = columns.index(call.column) if call.column else -1
        found.append(_MAKERS[aggregate.name](at, call.type, call.options, field.type))
    return found


def sql_type(kind: pa.DataType) -> str:
    """DuckDB's type for values of a result column. Whole numbers are wider, so that any can be read."""
    return "HUGEINT" if pa.types.is_integer(kind) else _sql_type(kind)


def is_number(kind: pa.DataType) -> bool:
    """Whether a tolerance has a meaning."""
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def _sql_type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"{_sql_type(kind.value_type)}[]"
    if pa.types.is_struct(kind):
        return f"STRUCT({', '.join(f'{field.name} {_sql_type(field.type)}' for field in kind)})"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    names = {pa.int64(): "BIGINT", pa.float64(): "DOUBLE", pa.string(): "VARCHAR", pa.bool_(): "BOOLEAN"}
    return "DATE" if pa.types.is_date(kind) else names[kind]


def _count(at: int, type_: pa.DataType, options: tuple[Any, ...], kind: pa.DataType) -> Oracle:
    return Oracle(value="rows::HUGEINT" if at < 0 else f"n{at}::HUGEINT", kind=kind)


def _sum(at: int, type_: pa.DataType, options: tuple[Any, ...], kind: pa.DataType) -> Oracle:
    if pa.types.is_integer(type_):
        fits = _FITS.format(at)
        value = f"CASE WHEN n{at} > 0 AND {fits} THEN s{at} END"
        return Oracle(value=value, kind=kind, unfit=f"(n{at} > 0 AND NOT {fits})")
    bound = f"{FLOAT_BOUND!r} * m{at}" if pa.types.is_floating(type_) else "0"
    return Oracle(value=f"CASE WHEN n{at} > 0 THEN s{at} END", kind=kind, tolerance=bound)


def _mean(at: int, type_: pa.DataType, options: tuple[Any, ...], kind: pa.DataType) -> Oracle:
    value = f"CASE WHEN n{at} > 0 THEN s{at}::DOUBLE / n{at} END"
    return Oracle(value=value, kind=kind, tolerance=f"{FLOAT_BOUND!r} * m{at} / n{at}")


def _spread(at: int, options: tuple[Any, ...], kind: pa.DataType, *, root: bool) -> Oracle:
    x, ends = f"v{at}::DOUBLE", "pop" if "population" in options else "samp"
    small = f"CASE WHEN abs({x}) < {_SQUARES!r} THEN {x} END"
    mean = f"abs(avg({small}))"
    if root:
        value = f"stddev_{ends}({small})"
        bound = f"{value} + {mean}"
    else:
        value = f"var_{ends}({small})"
        bound = f"{value} + {mean} * sqrt({value}) + {FLOAT_BOUND!r} * {mean} * {mean}"
    large = f"max(abs({x})) >= {_SQUARES!r}"
    return Oracle(
        value=value,
        kind=kind,
        tolerance=f"CASE WHEN {large} THEN 'inf'::DOUBLE ELSE {FLOAT_BOUND!r} * ({bound}) END",
        whole=True,
    )


def _count_distinct(at: int, type_: pa.DataType, options: tuple[Any, ...], kind: pa.DataType) -> Oracle:
    exact = f"count(DISTINCT v{at})"
    return Oracle(
        value=exact, kind=kind, tolerance="0" if options else f"{exact} / 10.0::DOUBLE + 4", whole=True
    )


def _quantile(at: int, type_: pa.DataType, options: tuple[Any, ...], kind: pa.DataType) -> Oracle:
    q, exact = options
    rank = f"greatest(1, ceil({q!r}::DOUBLE * count(v{at}))::BIGINT)"
    value = f"list_sort(list(v{at}) FILTER (v{at} IS NOT NULL))[{rank}]"
    bound = "0" if exact else f"abs(({value})::DOUBLE) / 256 * (1 + 1e-12) + 1e-305"
    return Oracle(value=value, kind=kind, tolerance=bound, whole=True)


def _in_time(at: int) -> str:
    return f"(list(v{at} ORDER BY time, v{at}) FILTER (v{at} IS NOT NULL))"


def _top_k(at: int, type_: pa.DataType, options: tuple[Any, ...], kind: pa.DataType) -> Oracle:
    k, counters = options
    entries = f"map_entries(histogram(v{at}))"
    if counters:
        value = f"list_transform({entries}, lambda e: {{'value': e.key, 'count': e.value::BIGINT}})"
        return Oracle(value=value, kind=kind, whole=True, wrong=_beyond_bounds(k, counters))
    pairs = f"list_sort(list_transform({entries}, lambda e: {{'n': -e.value::BIGINT, 'v': e.key}}))"
    value = f"list_transform({pairs}[1:{k}], lambda p: {{'value': p.v, 'count': -p.n}})"
    return Oracle(value=value, kind=kind, whole=True)


def _beyond_bounds(k: int, counters: int) -> str:
    """SQL: that a list of counters breaks a promise of docs/aggregates.md. `e` are all values with their counts."""
    mine = "list_transform(g, lambda x: x.value)"
    true = "coalesce(list_filter(e, lambda y: y.value = x.value)[1].count, 0)"
    inside = f"list_bool_and(list_transform(g, lambda x: {true} BETWEEN x.count - x.error AND x.count))"
    others = f"list_filter(e, lambda y: NOT list_contains({mine}, y.value))"
    left_out = f"coalesce(list_max(list_transform({others}, lambda y: y.count)), 0)"
    most = f"list_sum(list_transform(e, lambda y: y.count)) // {counters + 1}"
    counts = "list_transform(g, lambda x: x.count)"
    last = f"CASE WHEN len(g) = {k} THEN greatest(g[-1].count, g[-1].error) WHEN len(g) > 0 THEN g[-1].error ELSE {most} END"
    fine = [
        f"len(g) <= {k}",
        f"len(list_distinct({mine})) = len(g)",
        f"{counts} = list_reverse_sort({counts})",
        f"coalesce({inside}, true)",
        f"coalesce(list_max(list_transform(g, lambda x: x.error)), 0) <= {most}",
        f"{left_out} <= {last}",
    ]
    return f"((e IS NULL) <> (g IS NULL) OR e IS NOT NULL AND NOT coalesce({' AND '.join(fine)}, false))"


def _clusters(at: int, type_: pa.DataType, options: tuple[Any, ...], kind: pa.DataType) -> Oracle:
    value = f"list_transform(map_entries(histogram(v{at})), lambda e: {{'value': e.key, 'count': e.value::BIGINT}})"
    longest = "greatest(strlen(x.value), strlen(y.value), 1)"
    alike = f"(1 - 2.0::DOUBLE * levenshtein(x.value, y.value) / {longest}) * x.count * y.count"
    pairs = f"list_sum(list_transform(list_filter(c, lambda y: y.value > x.value), lambda y: {alike}))"
    total = f"list_sum(list_transform(g, lambda c: list_sum(list_transform(c, lambda x: {pairs}))))"
    fine = f"list_sort(flatten(g)) = list_sort(e) AND coalesce({total}, 0) >= -{FLOAT_BOUND!r}"
    wrong = f"((e IS NULL) <> (g IS NULL) OR e IS NOT NULL AND NOT coalesce({fine}, false))"
    return Oracle(value=value, kind=kind, whole=True, wrong=wrong)


_MAKERS: dict[str, Callable[..., Oracle]] = {
    "count": _count,
    "sum": _sum,
    "mean": _mean,
    "min": lambda at, type_, options, kind: Oracle(value=f"lo{at}", kind=kind),
    "max": lambda at, type_, options, kind: Oracle(value=f"hi{at}", kind=kind),
    "variance": lambda at, type_, options, kind: _spread(at, options, kind, root=False),
    "stddev": lambda at, type_, options, kind: _spread(at, options, kind, root=True),
    "count_distinct": _count_distinct,
    "quantile": _quantile,
    "first": lambda at, type_, options, kind: Oracle(value=f"{_in_time(at)}[1]", kind=kind, whole=True),
    "last": lambda at, type_, options, kind: Oracle(value=f"{_in_time(at)}[-1]", kind=kind, whole=True),
    "top_k": _top_k,
    "clusters": _clusters,
    "collect": lambda at, type_, options, kind: Oracle(
        value=f"{_in_time(at)}[1:{options[0]}]", kind=kind, whole=True
    ),
}

FUNCTIONS = frozenset(_MAKERS)
"""The aggregates that can be recomputed."""
