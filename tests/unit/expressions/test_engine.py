"""What Polars computes for the partitioner is what DuckDB computes for verify, for every expression of the
language.
"""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError
from evenflow.expressions.columns import Columns
from evenflow.expressions.engine import Engine
from evenflow.expressions.kinds import kind_of
from evenflow.expressions.oracle import derived_sql, opened
from evenflow.expressions.parser import read, typed
from evenflow.grammar.arrow_types import arrow_type
from tests.examples import examples

TYPES = {
    "a": "int64", "b": "int64", "p": "decimal(2)", "q": "decimal(4)", "f": "float64", "g": "float64",
    "s": "string", "u": "string", "d": "date", "t": "bool",
}  # fmt: skip
_WHOLES = st.one_of(st.integers(-5, 5), st.integers(-(2**63), 2**63 - 1))
_FLOATS = st.one_of(st.integers(-4, 4).map(float), st.floats(allow_nan=False, allow_infinity=False))
_TEXTS = st.text(alphabet="aAbz9 %_'éßİ👩\t\\\u00a0\u3000", max_size=6)
_DATES = st.dates(datetime.date(1, 1, 1), datetime.date(9999, 12, 31))


def decimals(scale: int) -> st.SearchStrategy[Decimal]:
    units = st.one_of(st.integers(-300, 300), st.integers(-(10**18) + 1, 10**18 - 1))
    return units.map(lambda unit: Decimal(unit).scaleb(-scale))


CELLS: dict[str, st.SearchStrategy[Any]] = {
    "a": _WHOLES, "b": _WHOLES, "p": decimals(2), "q": decimals(4), "f": _FLOATS, "g": _FLOATS,
    "s": _TEXTS, "u": _TEXTS, "d": _DATES, "t": st.booleans(),
}  # fmt: skip


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def pairs(left: st.SearchStrategy[str], signs: str, right: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(lambda x, sign, y: f"({x} {sign} {y})", left, st.sampled_from(signs.split()), right)


def calls(pattern: str, *parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(pattern.format, *parts)


_small = st.integers(1, 4).map(str)
_pattern = st.text(alphabet="aA%_ é'", max_size=4).map(quoted)
texts = st.recursive(
    st.one_of(st.sampled_from(["s", "u"]), _TEXTS.map(quoted)),
    lambda inner: st.one_of(
        pairs(inner, "||", inner),
        calls("trim({})", inner),
        calls("substr({}, {}, {})", inner, st.integers(1, 4).map(str), _small),
        calls("left({}, {})", inner, _small),
        calls(
            "replace({}, {}, {})",
            inner,
            st.sampled_from(["'a'", "' '", "'é'"]),
            st.sampled_from(["''", "'b'"]),
        ),
        calls("coalesce({}, {})", inner, inner),
        calls("nullif({}, {})", inner, inner),
        calls("CASE WHEN t THEN {} ELSE {} END", inner, inner),
    ),
    max_leaves=4,
)
wholes = st.recursive(
    st.one_of(st.sampled_from(["a", "b"]), st.integers(0, 9).map(str), calls("length({})", texts),
              st.sampled_from(["year(d)", "month(d)", "day(d)", "extract(year from d)"])),
    lambda inner: st.one_of(
        pairs(inner, "+ - * %", inner),
        calls("(-{})", inner),
        calls("abs({})", inner),
        calls("coalesce({}, {})", inner, inner),
        calls("CASE WHEN t THEN {} WHEN f > 1 THEN {} END", inner, inner),
    ),
    max_leaves=4,
)  # fmt: skip
exacts = st.recursive(
    st.one_of(wholes, st.sampled_from(["p", "q", "0.5", "1.25"])),
    lambda inner: st.one_of(
        pairs(inner, "+ - *", inner), calls("abs({})", inner), calls("coalesce({}, {})", inner, inner)
    ),
    max_leaves=4,
)
floats = st.recursive(
    st.one_of(
        st.sampled_from(["f", "g", "1e-3", "2.5e0"]),
        calls("CAST({} AS DOUBLE)", wholes),
        pairs(exacts, "/", exacts),
    ),
    lambda inner: st.one_of(
        pairs(inner, "+ - * /", st.one_of(inner, wholes, st.sampled_from(["3", "0", "7"]))),
        calls("floor({})", inner),
        calls("ceil({})", inner),
        calls("abs({})", inner),
        calls("sqrt(abs({}))", inner),
        calls("CASE WHEN {} > 0 THEN {} ELSE 0 END", inner, inner),
    ),
    max_leaves=4,
)
_signs = "= <> < <= > >="
truths = st.recursive(
    st.one_of(
        st.just("t"),
        pairs(exacts, _signs, exacts),
        pairs(floats, _signs, floats),
        pairs(texts, _signs, texts),
        pairs(st.just("d"), _signs, _DATES.map(lambda day: f"DATE '{day.isoformat()}'")),
        calls("{} BETWEEN {} AND {}", wholes, wholes, wholes),
        calls("{} IN ({}, 3)", wholes, wholes),
        calls("{} LIKE {}", texts, _pattern),
        calls("starts_with({}, {})", texts, texts),
        calls("ends_with({}, {})", texts, texts),
        calls("{} IS NULL", st.one_of(texts, wholes, floats)),
    ),
    lambda inner: st.one_of(pairs(inner, "AND OR", inner), calls("(NOT {})", inner)),
    max_leaves=4,
)


@st.composite
def tables(draw: st.DrawFn) -> dict[str, list[Any]]:
    rows = draw(st.integers(1, 3))
    cells = {name: st.one_of(st.none(), cell) for name, cell in CELLS.items()}
    return {name: [draw(cell) for _ in range(rows)] for name, cell in cells.items()}


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return bool(one == other)


@cache
def database() -> duckdb.DuckDBPyConnection:
    """One for all examples: to open it takes as long as an example."""
    db = duckdb.connect(config={"threads": 1})
    opened(db)
    return db


def check(text: str, table: dict[str, list[Any]]) -> None:
    try:
        expression = typed(read(text, "x"), lambda name: kind_of(TYPES[name]), "x")
    except ConfigError:
        return  # more than 38 digits, or another mixture that is refused beforehand
    if expression.kind.scale > 12:
        return
    columns = {name: pa.array(cells, arrow_type(TYPES[name])) for name, cells in table.items()}
    rows = len(columns["a"])
    engine = Engine(Columns(TYPES, {"x": expression}))
    computed, wrong, _ = engine.compute({name: columns[name] for name in engine.reads}, rows)
    db = database()
    db.register("columns", pa.table({"n": pa.array(np.arange(rows)), **columns}))
    value, fits = derived_sql(expression)
    result = db.sql(f"SELECT {value} AS v, {fits} AS fits FROM columns ORDER BY n").fetchall()
    db.unregister("columns")
    for row, (value, fits) in enumerate(result):
        assert bool(wrong["x"][row]) == (not fits), (text, row, value, fits, computed["x"][row])
        if fits:
            assert same(computed["x"][row].as_py(), value), (text, row, computed["x"][row], value)


@examples(50)
@given(text=wholes, table=tables())
def test_whole_numbers_come_out_alike(text: str, table: dict[str, list[Any]]) -> None:
    check(text, table)


@examples(50)
@given(text=exacts, table=tables())
def test_decimals_come_out_alike(text: str, table: dict[str, list[Any]]) -> None:
    check(text, table)


@examples(50)
@given(text=floats, table=tables())
def test_floating_point_comes_out_alike_to_the_last_digit(text: str, table: dict[str, list[Any]]) -> None:
    check(text, table)


@examples(50)
@given(text=texts, table=tables())
def test_texts_come_out_alike(text: str, table: dict[str, list[Any]]) -> None:
    check(text, table)


@examples(100)
@given(text=truths, table=tables())
def test_conditions_come_out_alike(text: str, table: dict[str, list[Any]]) -> None:
    check(text, table)
