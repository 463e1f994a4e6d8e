"""Whether the columns that a query reads are there, and hold what it needs."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from evenflow.grammar import paths
from evenflow.grammar.column_types import ANY_VALUE, decimal_scale
from evenflow.grammar.explosion import Explosion
from evenflow.reporting.words import share
from evenflow.settings import Query, Settings
from workbench.assist.findings import Changes, Finding, Status
from workbench.assist.sample_check.facts import SampleFacts
from workbench.assist.sample_check.propose import applied, toml_value
from workbench.assist.sample_check.shape import (
    NUMBERS,
    Column,
    Kind,
    RecordShape,
    can_be_named,
    kind_of,
    unit_of,
)
from workbench.assist.sample_check.words import counted, listed, plural

_FITTING: dict[str, tuple[str, frozenset[Kind]]] = {
    "string": ("text", frozenset({"text"})),
    "int64": ("a whole number", frozenset({"whole number"})),
    "float64": ("a number", NUMBERS),
    "bool": ("true or false", frozenset({"truth value"})),
    ANY_VALUE: (
        "text, a number, true or false",
        frozenset({"text", "whole number", "decimal", "truth value"}),
    ),
    "date": ("a date, YYYY-MM-DD", frozenset({"text"})),
    "iso": ("ISO 8601 text", frozenset({"text"})),
    "s": ("a number of seconds", NUMBERS),
    "ms": ("a whole number of milliseconds", frozenset({"whole number"})),
    "us": ("a whole number of microseconds", frozenset({"whole number"})),
}
"""Column type or time unit -> what a column must hold, in words and as kinds."""
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
"""Names that need no quotes in an expression."""
_NUMBER = re.compile(r"\s*[+-]?[0-9]+(\.[0-9]+)?\s*")
_MOST_PLACES = 4
"""Numbers with at most so many digits behind the point look like amounts,
for which a decimal type is proposed.
"""
_INSTEAD = {"string": "'none'", "int64": "-1", "bool": "false", "date": "DATE '1970-01-01'"}
"""Type of a key column -> what may stand for a key that is null, in SQL."""
_ANY: tuple[str, frozenset[Kind]] = ("text", frozenset({"text", "whole number", "decimal"}))


@dataclass(frozen=True)
class _Need:
    """What a query needs of a column."""

    role: str
    """What reads the column, in words."""
    column: Column
    """What the sample holds in that column."""
    form: str
    """What the column must hold, a key of `_FITTING` or a decimal type."""
    csv: bool
    """Whether records are CSV."""
    required: bool = True
    """Whether a record without the column is rejected."""
    without: str = "such records are rejected"
    """What is said of records without the column."""

    @property
    def fitting(self) -> tuple[str, frozenset[Kind]]:
        if decimal_scale(self.form) is not None:
            return _FITTING["float64"]
        # In csv any field is text, also if it looks like a number.
        return _ANY if self.csv and self.form in ("string", "bool", "date") else _FITTING[self.form]


def judge_columns(settings: Settings, facts: SampleFacts) -> Iterator[Finding]:
    """Findings about the columns of key, event time and aggregates, and those that expressions read."""
    if settings.query.key == "@key":
        yield from _judge_record_keys(facts)
    if facts.shape.rows:
        absent = tuple(_judge_explode(settings, facts))
        yield from absent
        if absent:
            return  # columns within elements are then absent too
        yield from _judge_key(settings, facts)
        yield from _judge_time(settings, facts)
        yield from _judge_values(settings, facts)
        yield from _judge_inputs(settings, facts)


def _judge_record_keys(facts: SampleFacts) -> Iterator[Finding]:
    if facts.keyless:
        message = f"{counted(facts.keyless, facts.records)} records have no record key "
        message += f"({share(facts.keyless, facts.records)}), and query.key is '@key'"
        do = f"set query.key to a column: {listed(facts.shape.columns)}"
        yield Finding("the key", _grade(facts.keyless, facts.records), message, do)


def _judge_explode(settings: Settings, facts: SampleFacts) -> Iterator[Finding]:
    explosion = settings.query.explosion
    if explosion is None or any(explosion.within(name) is not None for name in facts.shape.columns):
        return
    candidate = likely_name(explosion.column, facts.shape)
    changes: Changes = {}
    if candidate is not None:
        changes = {"query": _exploding(settings.query, explosion, candidate)}
    yield _absent("explode", explosion.column, facts.shape, candidate, changes)


def _exploding(query: Query, explosion: Explosion, column: str) -> dict[str, Any]:
    """What changes in the query if another column is taken apart. The columns within its elements are
    renamed with it.
    """

    def renamed(name: str) -> str:
        way = explosion.within(name)
        return name if way is None else paths.written([*paths.segments(column), *way])

    key = [renamed(name) for name in query.key_columns]
    calls = {
        label: str(spec.model_copy(update={"column": renamed(spec.column)}))
        for label, spec in query.aggregates.items()
        if spec.column is not None and renamed(spec.column) != spec.column
    }
    types = {renamed(name): kind for name, kind in query.types.items() if renamed(name) != name}
    changed: dict[str, Any] = {"explode": str(replace(explosion, column=column))}
    if key != list(query.key_columns):
        changed["key"] = key if len(key) > 1 else key[0]
    return changed | ({"aggregates": calls} if calls else {}) | ({"types": types} if types else {})


def _judge_key(settings: Settings, facts: SampleFacts) -> Iterator[Finding]:
    query = settings.query
    names = query.key_columns
    for name in names:
        if name in query.computed_columns:
            continue
        column, form = facts.shape.column(name), query.column_type(name)
        if not column.present:
            candidate = likely_name(name, facts.shape, but={*query.value_columns, *names})
            better = (
                [candidate if other == name else other for other in names] if len(names) > 1 else candidate
            )
            yield _absent("the key", name, facts.shape, candidate, {"query": {"key": better}})
            continue
        without = keyless(query, name, form)
        need = _Need("the key", column, form, settings.input.format == "csv", without=without)
        yield from _judge_content(need, facts.shape, *_better_key(settings, column, form))


def keyless(query: Query, name: str, form: str) -> str:
    """What becomes of records without this column of the key, and the expression that gives them a key."""
    fate = "such records are rejected"
    if query.where is not None:
        fate += ", unless query.where drops them"
    in_sql = name if _PLAIN.fullmatch(name) or name.startswith('"') else f'"{name}"'
    never_null = re.sub(r"\W+", "_", name).strip("_") + "_or_none"
    key = [never_null if other == name else other for other in query.key_columns]
    columns = toml_value({never_null: f"coalesce({in_sql}, {_INSTEAD[form]})"})
    return (
        f"{fate}. To keep them under a key of their own: query.columns = {columns} and "
        f"query.key = {toml_value(key if len(key) > 1 else key[0])}"
    )


def _better_key(settings: Settings, column: Column, form: str) -> tuple[str, Changes]:
    if column.mostly == "decimal":
        return (
            (
                "a key is text, a whole number, a date or true or false, never a"
                " decimal: name another column in query.key"
            ),
            {},
        )
    return _typed(settings, column, form) or ("write it so, or name another column in query.key", {})


def _judge_time(settings: Settings, facts: SampleFacts) -> Iterator[Finding]:
    name, unit = settings.query.time, settings.query.time_unit
    if name == "@timestamp":
        return
    column = facts.shape.column(name)
    if not column.present:
        candidate = likely_time(name, facts.shape)
        yield _absent(
            "the event time",
            name,
            facts.shape,
            candidate["time"] if candidate else None,
            {"query": candidate or {}},
        )
        return
    real = unit_of(column.examples)
    do, changes = f"query.time_unit is {unit!r}: write the times so, or name another column in query.time", {}
    if real == "ns" and column.filled:
        message = (
            f"column {name!r} looks like nanoseconds (e.g. {column.examples[0]!r}),"
            " of which there is no time_unit"
        )
        yield Finding(
            "the event time", "problem", message, "write microseconds, or use query.time = '@timestamp'"
        )
    elif real is not None and real != unit:
        do, changes = f'set query.time_unit = "{real}"', {"query": {"time_unit": real}}
    need = _Need("the event time", column, unit, settings.input.format == "csv")
    yield from _judge_content(need, facts.shape, do, changes)


def _judge_values(settings: Settings, facts: SampleFacts) -> Iterator[Finding]:
    for name, form in settings.query.value_columns.items():
        if name in settings.query.computed_columns:
            continue
        column = facts.shape.column(name)
        calls = {label: spec for label, spec in settings.query.aggregates.items() if spec.column == name}
        role = listed(dict.fromkeys(str(spec) for spec in settings.query.routed_for if spec.column == name))
        if not column.present:
            candidate = likely_name(name, facts.shape)
            renamed = {
                label: str(spec.model_copy(update={"column": candidate})) for label, spec in calls.items()
            }
            changes: Changes = {"query": {"aggregates": renamed}} if calls else {}
            yield _absent(role, name, facts.shape, candidate, changes)
        elif not column.filled:
            message = (
                f"column {name!r} is null in all {column.present:,} records that have it: so is every {role}"
            )
            yield Finding(role, "warning", message)
        else:
            need = _Need(role, column, form, settings.input.format == "csv", required=False)
            yield from _judge_content(need, facts.shape, *_better_value(settings, column, form))


def _judge_inputs(settings: Settings, facts: SampleFacts) -> Iterator[Finding]:
    """Findings about columns that only expressions or a lookup read."""
    query = settings.query
    known = {*query.key_columns, query.time, *query.value_columns}
    for name, form in query.read_as.items():
        if name in known:
            continue
        column = facts.shape.column(name)
        role = "the lookup" if name in query.lookup_key else "an expression"
        if not column.present:
            yield _absent(role, name, facts.shape, likely_name(name, facts.shape), {})
        else:
            need = _Need(role, column, form, settings.input.format == "csv", required=False)
            yield from _judge_content(need, facts.shape, *_better_value(settings, column, form))


def _better_value(settings: Settings, column: Column, form: str) -> tuple[str, Changes]:
    words, kinds = _FITTING["float64" if decimal_scale(form) is not None else form]
    strange = set(column.kinds) - kinds - {"null"}
    if column.mostly in kinds and column.name in settings.query.types and not strange & NUMBERS:
        # Another type would be worse for most of the values, and a decimal is read exactly.
        do = f"such records are rejected: write {words} or null there. The type {form!r} fits all others"
        return do, {}
    typed = None if form == ANY_VALUE else _typed(settings, column, form)
    return typed or (f"such records are rejected: write {words} or null there{_of_texts(column, form)}", {})


def _of_texts(column: Column, form: str) -> str:
    """The end of the advice to write a value of this type or null,
    for a column that holds texts in some records.
    """
    end = ", or name another column"
    of_numbers = form in ("float64", "int64") or decimal_scale(form) is not None
    if not of_numbers or not column.count(("text",)):
        return end
    quoted = any(isinstance(value, str) and _NUMBER.fullmatch(value) for value in column.examples)
    how = ", a number without quotes" if quoted else ""
    places = max((_places(value) for value in column.examples if isinstance(value, float)), default=0)
    exact = ""
    if decimal_scale(form) is None and 0 < places <= _MOST_PLACES:
        exact = (
            f". To read the numbers exactly: query.types = {toml_value({column.name: f'decimal({places})'})}"
        )
    return (
        f"{how}{end}. query.where is asked only of records that can be read, so it drops none of these{exact}"
    )


def _places(value: float) -> int:
    """Digits behind the point of a number as it is written."""
    return len(repr(value).partition(".")[2])


def _typed(settings: Settings, column: Column, form: str) -> tuple[str, Changes] | None:
    """The advice to declare the type that the column's values have.
    None if the query cannot have another type.
    """
    kinds = {"whole number": ("float64", "int64"), "decimal": ("float64",), "truth value": ("bool",)}
    if settings.query.key_columns.count(column.name):
        kinds["whole number"] = ("int64",)
    dated = bool(column.examples) and all(
        isinstance(example, str) and _DATE.fullmatch(example) for example in column.examples
    )
    kinds["text"] = ("date", "string") if dated else ("string",)
    for kind in kinds.get(column.mostly, ()):
        changes: Changes = {"query": {"types": {column.name: kind}}}
        if kind != form and _can_be(settings, changes):
            return f"say so: query.types = {toml_value({column.name: kind})}", changes
    return None


def _can_be(settings: Settings, changes: Changes) -> bool:
    try:
        applied(settings, changes)
    except ValueError:  # for example a sum of text
        return False
    return True


def _absent(role: str, name: str, shape: RecordShape, candidate: str | None, changes: Changes) -> Finding:
    """The finding about a column that no record has.

    candidate: the column that is likely meant. changes: put that column into the settings.
    """
    message = (
        f"none of {shape.rows:,} records has a column {name!r} ({role}); columns seen:"
        f" {listed(shape.columns)}"
    )
    if candidate is not None:
        return Finding(role, "problem", message, f"did you mean {candidate!r}?", changes)
    return Finding(role, "problem", message, "name a column that the records have")


def _judge_content(need: _Need, shape: RecordShape, do: str, changes: Changes) -> Iterator[Finding]:
    """Findings about records in which the column is missing, is null, or holds something else than needed.

    do, changes: what to do about the last of these.
    """
    column, (words, kinds) = need.column, need.fitting
    missing = shape.rows - column.filled
    if missing and need.required:
        message = (
            f"column {column.name!r} ({need.role}) is missing or null in"
            f" {counted(missing, shape.rows)} records"
        )
        message += f" ({share(missing, shape.rows)})"
        yield Finding(need.role, _grade(missing, shape.rows), message, need.without)
    wrong = [kind for kind in column.kinds if kind not in kinds and kind != "null"]
    if not wrong:
        return
    total = column.count(wrong)
    shown = next((f", e.g. {_cut(value)}," for value in column.examples if kind_of(value) in wrong), "")
    message = f"column {column.name!r} holds {listed(map(plural, wrong))}{shown} in "
    message += f"{counted(total, column.present)} records; {need.role} needs {words}"
    yield Finding(need.role, _grade(total, column.filled), message, do, changes)


def likely_name(name: str, shape: RecordShape, *, but: Container[str] = ()) -> str | None:
    """The column whose name is much like this one, or None. but: columns that do not count."""
    lower = {column.lower(): column for column in shape.columns if column not in but and can_be_named(column)}
    close = get_close_matches(name.lower(), lower, n=1)
    close += [column for column in lower if column.endswith(f".{name.lower()}")]  # within another field
    return lower[close[0]] if close else None


def likely_time(name: str, shape: RecordShape) -> dict[str, Any] | None:
    """Settings `time` and `time_unit` for the column with a name like this,
    or else for the only column of times.
    """
    units = {column.name: unit_of(column.examples) for column in shape.columns.values()}
    timed = {name: unit for name, unit in units.items() if unit not in (None, "ns") and can_be_named(name)}
    candidate = likely_name(name, shape) or (next(iter(timed)) if len(timed) == 1 else None)
    if candidate is None:
        return None
    return {"time": candidate} | ({"time_unit": timed[candidate]} if candidate in timed else {})


def _grade(wrong: int, total: int) -> Status:
    return "problem" if wrong == total else "warning"


def _cut(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
