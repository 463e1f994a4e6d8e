"""Every aggregate again, in DuckDB: SQL of the exact value, and of how far a result may be from it.

If the totals of panes are enough for an aggregate, it is computed from them in O(result rows). Any other
aggregate is `whole`: it is computed over the tuples of each window, so a tuple is looked at once for each
window that it is in. So is an aggregate of one's own: DuckDB calls its `oracle` in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from evenflow.aggregates import AggregatePlan
from evenflow.aggregates.aggregate import Call
from evenflow.aggregates.result_expressions import Output, ResultExpression, expression_of
from evenflow.errors import ConfigError
from evenflow.expressions.oracle import derived_sql, renamed
from evenflow.grammar.aggregate_spec import EXPRESSION
from evenflow.limits import ENTRY_BYTES
from evenflow.settings import Query
from workbench.verify.report import FLOAT_BOUND
from workbench.verify.windows.result_column import Function, Oracle
from workbench.verify.windows.room_of_values import within_room

_FITS = f"(s{{0}} BETWEEN {-(2**63)} AND {2**63 - 1})"
"""Whether a sum of int64, which is 128 bits wide here, fits int64. The result is null if it does not."""
_SQUARES = 1e150
"""Doubles below this have squares that are finite doubles."""


def oracles(query: Query) -> list[Oracle]:
    """One oracle for each aggregate of the query, in the order of the result columns.

    Raises ConfigError for an aggregate of one's own without an oracle.
    """
    columns = list(query.value_columns)
    column_oracles: list[Oracle] = []
    waiting: list[tuple[int, ResultExpression, pa.DataType]] = []
    plan = AggregatePlan.of(query)
    for number, (output, field) in enumerate(zip(plan.outputs, plan.output_schema, strict=True)):
        _, aggregate, call = output
        expression = expression_of(output)
        if expression is not None:
            waiting.append((number, expression, field.type))
            column_oracles.append(Oracle(value="NULL", kind=field.type, after=True))
            continue
        at = columns.index(call.column) if call.column else -1  # count() has no column
        if aggregate.name not in _MAKERS:
            column_oracles.append(_own(number, output, at, field.type))
            continue
        oracle = _MAKERS[aggregate.name](at, call.type, call.options, field.type)
        if aggregate.name == "top_k" and call.options[1]:
            oracle = _counted(at, call, field.type)
        column_oracles.append(within_room(oracle, aggregate.name, at, call))
    places = {output.label: number for number, output in enumerate(plan.outputs)}
    for number, expression, kind in waiting:
        column_oracles[number] = _expressed(expression, places, column_oracles, kind)
    return column_oracles


def _expressed(
    expression: ResultExpression, places: Mapping[str, int], oracles: list[Oracle], kind: pa.DataType
) -> Oracle:
    """An expression over other result columns. places: label -> number among `oracles`.

    If all that it reads is known exactly, its value is, too. Otherwise it is held to what its own row holds.
    """
    read = [oracles[places[output.label]] for output in expression.reads]
    of_any = {label: f"a{number}" for label, number in places.items()}
    value, fits = derived_sql(renamed(expression.typed, of_any))
    if all(oracle.wrong is None and oracle.tolerance == "0" for oracle in read):
        return Oracle(value=value, kind=kind, after=True, unfit=f"NOT {fits}")
    of_row, _ = derived_sql(renamed(expression.typed, of_any, table="s"))
    return Oracle(
        value=value, kind=kind, after=True, unfit=f"NOT {fits}", tolerance="'-inf'::DOUBLE", of_row=of_row
    )


def sql_type(kind: pa.DataType) -> str:
    """DuckDB's type for the values of a result column.
    Whole numbers are wider, so that a wrong one can be read too.
    """
    return "HUGEINT" if pa.types.is_integer(kind) else _sql_type(kind)


def is_number(kind: pa.DataType) -> bool:
    """Whether values of this type are numbers, so that a tolerance has a meaning."""
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


def _own(number: int, output: Output, at: int, kind: pa.DataType) -> Oracle:
    """An aggregate of one's own, by the function of Python that it brings. number: of the result column."""
    label, aggregate, call = output
    recompute = aggregate.oracle
    if recompute is None:
        raise ConfigError(
            f"verify cannot recompute {label} = {aggregate.name}, which has no oracle",
            hint="give its class an `oracle(values)` that computes the value in one go",
        )

    def struct(values: list[Any] | None) -> dict[str, Any]:
        exact = recompute(values or [], call)
        return {"value": exact.value, "tolerance": exact.tolerance, "unfit": not exact.fits}

    function = Function(
        name=f"evenflow_own_{number}",
        call=struct,
        parameter=f"{_sql_type(call.type)}[]",
        result=f'STRUCT("value" {_sql_type(kind)}, tolerance DOUBLE, unfit BOOLEAN)',
    )
    call_sql = f"{function.name}({_in_time(at)}::{function.parameter})"
    return Oracle(
        value=f'{call_sql}."value"',
        kind=kind,
        tolerance=f"{call_sql}.tolerance" if is_number(kind) else "0",
        whole=True,
        unfit=f"{call_sql}.unfit",
        function=function,
    )


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
    """Variance, or its root. The tolerances are the bounds that docs/aggregates.md promises."""
    # The squares of larger values overflow. Such values are left out, and any result but null is then
    # accepted.
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
    # Without `exact` the result is HyperLogLog's. docs/aggregates.md says how far it may be off.
    exact = f"count(DISTINCT v{at})"
    return Oracle(
        value=exact, kind=kind, tolerance="0" if options else f"{exact} / 10.0::DOUBLE + 4", whole=True
    )


def _quantile(at: int, type_: pa.DataType, options: tuple[Any, ...], kind: pa.DataType) -> Oracle:
    q, exact = options
    # The nearest rank: the value below or at which a share q of the values lies.
    rank = f"greatest(1, ceil({q!r}::DOUBLE * count(v{at}))::BIGINT)"
    value = f"list_sort(list(v{at}) FILTER (v{at} IS NOT NULL))[{rank}]"
    # docs/aggregates.md promises 1/256 of the value. The rest allows for the rounding of doubles, also near
    # 0.
    bound = "0" if exact else f"abs(({value})::DOUBLE) / 256 * (1 + 1e-12) + 1e-305"
    return Oracle(value=value, kind=kind, tolerance=bound, whole=True)


def _in_time(at: int) -> str:
    """SQL: the values that are not null, by event time. Of equal times the smaller value comes first."""
    return f"(list(v{at} ORDER BY time, v{at}) FILTER (v{at} IS NOT NULL))"


def _top_k(at: int, type_: pa.DataType, options: tuple[Any, ...], kind: pa.DataType) -> Oracle:
    k, _ = options
    entries = f"map_entries(histogram(v{at}))"
    # With negative counts an ascending sort puts the most frequent first, and of equally frequent values the
    # smaller.
    pairs = f"list_sort(list_transform({entries}, lambda e: {{'n': -e.value::BIGINT, 'v': e.key}}))"
    value = f"list_transform({pairs}[1:{k}], lambda p: {{'value': p.v, 'count': -p.n}})"
    return Oracle(value=value, kind=kind, whole=True)


def _counted(at: int, call: Call, kind: pa.DataType) -> Oracle:
    """As `_top_k` with a number of counters. The value is a list of all values, by which a result is
    judged.
    """
    value = (
        f"list_transform(map_entries(histogram(v{at})), lambda e: {{'value': e.key, 'count':"
        " e.value::BIGINT})"
    )
    return Oracle(value=value, kind=kind, whole=True, wrong=_beyond_bounds(call))


def _beyond_bounds(call: Call) -> str:
    """SQL: whether the counters `g` break a promise of docs/aggregates.md.
    `e` holds every value with its exact count.
    """
    k, counters = call.options
    longest = "coalesce(list_max(list_transform(e, lambda y: strlen(y.value))), 0)"
    entry = f"({ENTRY_BYTES} + {longest if pa.types.is_string(call.type) else 0})"
    # Long texts leave room for fewer counters, and a list of long texts may have no room at all.
    counters = f"least({counters}, {call.room.state} // {entry})"
    may_be_null = f"{k} * {entry} > {call.room.result}"
    mine = "list_transform(g, lambda x: x.value)"
    true = "coalesce(list_filter(e, lambda y: y.value = x.value)[1].count, 0)"
    inside = f"list_bool_and(list_transform(g, lambda x: {true} BETWEEN x.count - x.error AND x.count))"
    others = f"list_filter(e, lambda y: NOT list_contains({mine}, y.value))"
    left_out = f"coalesce(list_max(list_transform({others}, lambda y: y.count)), 0)"
    most = f"list_sum(list_transform(e, lambda y: y.count)) // ({counters} + 1)"
    counts = "list_transform(g, lambda x: x.count)"
    # No value that is missing from the list may be more frequent than this.
    last = (
        f"CASE WHEN len(g) = {k} THEN greatest(g[-1].count, g[-1].error) WHEN len(g)"
        f" > 0 THEN g[-1].error ELSE {most} END"
    )
    fine = [
        f"len(g) <= {k}",
        f"len(list_distinct({mine})) = len(g)",
        f"{counts} = list_reverse_sort({counts})",
        f"coalesce({inside}, true)",
        f"coalesce(list_max(list_transform(g, lambda x: x.error)), 0) <= {most}",
        f"{left_out} <= {last}",
    ]
    return (
        f"CASE WHEN e IS NULL THEN g IS NOT NULL WHEN g IS NULL THEN NOT coalesce({may_be_null}, false) "
        f"ELSE NOT coalesce({' AND '.join(fine)}, false) END"
    )


def _clusters(at: int, type_: pa.DataType, options: tuple[Any, ...], kind: pa.DataType) -> Oracle:
    """There is no one right clustering. A result is accepted if it holds every text once, with its exact
    count, and if the similarities within its clusters do not sum to less than 0, which is the sum when every
    text is alone.
    """
    value = (
        f"list_transform(map_entries(histogram(v{at})), lambda e: {{'value': e.key, 'count':"
        " e.value::BIGINT})"
    )
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

FUNCTIONS = frozenset({*_MAKERS, EXPRESSION})
"""Names of the aggregates that verify recomputes in SQL, and that of an expression over results."""
