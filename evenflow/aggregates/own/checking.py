"""`check_aggregate`: holds an aggregate to the laws that two-step aggregation rests on, without a
pipeline.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from evenflow.aggregates.aggregate import Aggregate, Call
from evenflow.aggregates.own.adapter import as_aggregate
from evenflow.aggregates.own.plain import PlainAggregate
from evenflow.aggregates.partials.grouping import Grouping
from evenflow.aggregates.partials.reductions import reduce_column
from evenflow.aggregates.registry import AGGREGATES, aggregate
from evenflow.contracts import BrokenLawError
from evenflow.errors import ConfigError, EvenflowError
from evenflow.grammar.aggregate_spec import AggregateSpec
from evenflow.grammar.column_types import ColumnType

LAWS = {
    "any split": (
        "values that are split among workers in any way, combined there and merged in any order, give what"
        " the oracle says of all of them"
    ),
    "associative": "merging a with b and the result with c is merging a with what b and c give",
    "commutative": "merging a with b is merging b with a",
    "nulls": "a null changes nothing, and a key that has nulls alone has the oracle's result of no value",
    "type": "the result has the type that is declared",
    "repeatable": "the same rows in the same order give the same state, whatever other keys there are",
    "bytes": "a state that was dumped and loaded has the same bytes and the same result",
    "new state": (
        "`init` gives a new state each time, which does not share anything with one that was changed"
    ),
}
"""The laws by name, in words."""
_DRAWS: dict[str, Callable[[random.Random], Any]] = {
    "int64": lambda chance: chance.choice((0, 1, -1, 7, chance.randint(-(10**6), 10**6))),
    "float64": lambda chance: chance.choice(
        (0.0, -1.5, 1.0, chance.uniform(-1e3, 1e3), chance.lognormvariate(0, 3))
    ),
    "string": lambda chance: chance.choice(
        ("", "a", "ab", "\u00e9", "\U0001f600", f"w{chance.randint(0, 9)}")
    ),
    "bool": lambda chance: chance.random() < 0.5,
    "date": lambda chance: date(2000, 1, 10) + timedelta(chance.randint(-9, 9)),
    "decimal(S)": lambda chance: Decimal(chance.choice((0, 1, chance.randint(-(10**8), 10**8)))).scaleb(-2),
}
_KEYS = 3
_NEAR = 1e-9


class BrokenAggregateLawError(BrokenLawError):
    """An aggregate breaks a law. law: its name in `LAWS`. example: what was tried, and what came."""

    def __init__(self, law: str, name: str, example: str) -> None:
        EvenflowError.__init__(self, f"{name} breaks the law {law!r} ({LAWS[law]}): {example}")
        self.law, self.example, self.expected, self.got = law, example, LAWS[law], example


def check_aggregate(
    aggregate: str | type,
    *,
    options: Sequence[Any] = (),
    values: Sequence[Any] | None = None,
    column_type: ColumnType | None = None,
    rounds: int = 30,
) -> None:
    """Hold an aggregate to `LAWS`, over values that are drawn with fixed seeds. BrokenAggregateLawError says
    how it fails.

    aggregate: a class, or what stands in `[query.aggregates]`, such as 'module:Class' or
    'module:Class(column, 3)'. options: those of the class, if `aggregate` has none. values: to draw from,
    None among them or not. By default they are of every type that the aggregate takes. column_type: of the
    values. rounds: how many samples of each type, each larger than the one before.

    Raises ConfigError, as a pipeline would, if the aggregate cannot be loaded or one of its functions fails.
    A built-in aggregate has no oracle here, so what it computes is not compared.
    """
    function, written = _loaded(aggregate, options)
    own = function.name not in AGGREGATES
    if own and function.oracle is None:
        raise ConfigError(
            f"aggregate {function.name} has no oracle, so there is nothing to compare it with",
            hint="give the class an `oracle(values)` that computes the value in one go",
        )
    for kind in (column_type,) if column_type is not None else function.over:
        declared: ColumnType = "decimal(2)" if kind == "decimal(S)" else kind
        spec = AggregateSpec(function=function.name, column="column", options=written)
        check = _LawCheck(function, function.call("checked", spec, declared))
        check.states(_rows(random.Random(rounds), kind if values is None else None, values, most=rounds))
        for number in range(rounds):
            chance = random.Random(number)
            rows = _rows(chance, kind if values is None else None, values, most=number)
            check.splits(rows, chance)
            check.merges(rows, chance)
            check.without_nulls(rows)
            check.repeats(rows)


def _loaded(reference: str | type, options: Sequence[Any]) -> tuple[Aggregate, tuple[str, ...]]:
    written = tuple(map(str, options))
    if not isinstance(reference, str):
        return as_aggregate(getattr(reference, "__qualname__", repr(reference)), reference), written
    spec = AggregateSpec.parse(reference)
    return aggregate(spec.function), spec.options or written


@dataclass(frozen=True)
class _Sample:
    """Rows of several keys."""

    keys: list[int]
    """The key of each row."""
    values: list[Any]
    """The value of each row, None among them."""
    times: list[int]
    """The event time of each row, ms."""

    def picked(self, places: Sequence[int]) -> _Sample:
        return _Sample(
            [self.keys[i] for i in places], [self.values[i] for i in places], [self.times[i] for i in places]
        )

    def in_order(self, key: int) -> list[Any]:
        """The values of a key that are not null, as an oracle gets them."""
        rows = zip(self.keys, self.times, self.values, strict=True)
        timed = [(time, value) for row_key, time, value in rows if row_key == key and value is not None]
        return [value for _, value in sorted(timed)]


def _rows(chance: random.Random, kind: str | None, values: Sequence[Any] | None, *, most: int) -> _Sample:
    draw = _DRAWS["decimal(S)" if kind is not None and kind.startswith("decimal") else kind or "int64"]
    rows = chance.randint(most // 2, most)
    drawn = [
        chance.choice(values) if values else None if chance.random() < 0.15 else draw(chance)
        for _ in range(rows)
    ]
    return _Sample([chance.randrange(_KEYS) for _ in drawn], drawn, [chance.randint(0, rows) for _ in drawn])


class _LawCheck:
    """One aggregate, called for one type of column."""

    def __init__(self, function: Aggregate, call: Call) -> None:
        self.function, self.call = function, call
        self.partials = function.partials(call)
        self.name = f"{function.name} over {call.type}"

    def splits(self, rows: _Sample, chance: random.Random) -> None:
        """Law "any split"."""
        if self.function.oracle is None:
            return
        workers = [chance.randrange(4) for _ in rows.keys]
        parts = [rows.picked([i for i, worker in enumerate(workers) if worker == w]) for w in range(4)]
        chance.shuffle(parts)
        merged = self.merged([self.combined(part) for part in parts])
        for way, states in (("in one part", self.combined(rows)), (f"in parts {workers}", merged)):
            results = self.results(states)
            for key in sorted(set(rows.keys)):
                values = rows.in_order(key)
                exact = self.function.oracle(list(values), self.call)
                if not _is_near(results[key], exact.value, exact.tolerance):
                    raise BrokenAggregateLawError(
                        "any split",
                        self.name,
                        f"{_shown(values)} {way} gave {results[key]!r}, and the oracle says {exact.value!r} "
                        f"(tolerance {exact.tolerance:g})",
                    )

    def merges(self, rows: _Sample, chance: random.Random) -> None:
        """Laws "associative" and "commutative"."""
        thirds = [chance.randrange(3) for _ in rows.keys]
        samples = [rows.picked([i for i, part in enumerate(thirds) if part == p]) for p in range(3)]
        a, b, c = map(self.combined, samples)
        values = " and ".join(_shown(sample.values) for sample in samples)
        left, right = self.merged([self.merged([a, b]), c]), self.merged([a, self.merged([b, c])])
        self._alike("associative", left, right, rows, values)
        self._alike("commutative", self.merged([a, b]), self.merged([b, a]), rows, values)

    def without_nulls(self, rows: _Sample) -> None:
        """Laws "nulls" and "type"."""
        present = rows.picked([i for i, value in enumerate(rows.values) if value is not None])
        # The same values, and one null more for each key.
        more = _Sample(
            [*rows.keys, *range(_KEYS)], [*rows.values, *[None] * _KEYS], [*rows.times, *[0] * _KEYS]
        )
        results, others = self.results(self.combined(more)), self.results(self.combined(present))
        for key in range(_KEYS):
            values = rows.in_order(key)
            if values and not _is_near(results[key], others[key], self.tolerance(values)):
                example = (
                    f"{_shown(values)} gave {others[key]!r}, and with a null among them {results[key]!r}"
                )
                raise BrokenAggregateLawError("nulls", self.name, example)
            if not values and self.function.oracle is not None:
                exact = self.function.oracle([], self.call)
                if not _is_near(results[key], exact.value, exact.tolerance):
                    example = (
                        f"nulls alone gave {results[key]!r}, and the oracle says {exact.value!r} of no value"
                    )
                    raise BrokenAggregateLawError("nulls", self.name, example)

    def repeats(self, rows: _Sample) -> None:
        """Law "repeatable"."""
        whole, again = self.combined(rows), self.combined(rows)
        alone = [
            self.combined(rows.picked([i for i, row_key in enumerate(rows.keys) if row_key == key]))
            for key in sorted(set(rows.keys))
        ]
        each = {key: state for part in alone for key, state in part.items()}
        if not (whole == again == each):
            raise BrokenAggregateLawError(
                "repeatable", self.name, f"{_shown(rows.values)} gave {whole}, and {again}, and {each}"
            )

    def states(self, rows: _Sample) -> None:
        """Laws "bytes" and "new state", which only a plain aggregate can break."""
        own = getattr(self.partials[0].combine, "own", None)
        if not isinstance(own, PlainAggregate):
            return
        before = own.dump(own.init())
        values = [value for value in rows.values if value is not None]
        state = own.init()
        for value in values:
            state = own.add(state, value)
        if own.dump(own.init()) != before:
            example = (
                f"after {_shown(values)} were added to a first state, a second one is"
                f" {own.dump(own.init())!r}"
            )
            raise BrokenAggregateLawError("new state", self.name, example)
        data = own.dump(state)
        if not isinstance(data, bytes):
            raise BrokenAggregateLawError("bytes", self.name, f"dump returned a {type(data).__name__}")
        loaded = own.load(data)
        if own.dump(loaded) != data or not _is_near(own.finish(own.load(data)), own.finish(state), 0.0):
            example = f"the state {state!r} became {loaded!r} by way of {data!r}"
            raise BrokenAggregateLawError("bytes", self.name, example)

    def combined(self, rows: _Sample) -> dict[int, dict[str, Any]]:
        """The state of each key: its partial columns, as Python values."""
        if not rows.keys:
            return {}  # as in a plan, which calls no reduction for no rows
        column = pa.array(rows.values, self.call.type)
        timed = pa.StructArray.from_arrays([pa.array(rows.times, pa.int64()), column], ["time", "value"])
        keys, groups = _grouped(rows.keys)
        arrays = {
            partial.name: reduce_column(partial.combine, timed if partial.timed else column, groups)
            for partial in self.partials
        }
        return self._as_states(keys, arrays)

    def merged(self, parts: Sequence[dict[int, dict[str, Any]]]) -> dict[int, dict[str, Any]]:
        """The states of each key merged, in the order of the parts."""
        flat = [(key, state) for part in parts for key, state in part.items()]
        if not flat:
            return {}
        keys, groups = _grouped([key for key, _ in flat])
        arrays = {
            partial.name: reduce_column(
                partial.merge, pa.array([state[partial.name] for _, state in flat], partial.type), groups
            )
            for partial in self.partials
        }
        return self._as_states(keys, arrays)

    def results(self, states: dict[int, dict[str, Any]]) -> dict[int, Any]:
        """The result of each key."""
        table = pa.table(
            {
                partial.name: pa.chunked_array(
                    [pa.array([state[partial.name] for state in states.values()], partial.type)]
                )
                for partial in self.partials
            }
        )
        column = self.function.finish(table, self.call)
        declared = self.function.result_type(self.call)
        if _narrow(column.type) != _narrow(declared):
            raise BrokenAggregateLawError(
                "type", self.name, f"finish gave {column.type}, and {declared} is declared"
            )
        return dict(zip(states, column.to_pylist(), strict=True))

    def tolerance(self, values: list[Any]) -> float:
        """How far apart two right results over these values may be. A built-in aggregate may round."""
        if self.function.oracle is None:
            return math.nan
        return 2 * self.function.oracle(list(values), self.call).tolerance

    def _alike(self, law: str, a: Any, b: Any, rows: _Sample, values: str) -> None:
        mine, other = self.results(a), self.results(b)
        for key, result in mine.items():
            if not _is_near(result, other[key], self.tolerance(rows.in_order(key))):
                raise BrokenAggregateLawError(
                    law, self.name, f"of {values} it gave {result!r} and {other[key]!r}"
                )

    def _as_states(self, keys: list[int], arrays: dict[str, pa.Array]) -> dict[int, dict[str, Any]]:
        columns = {}
        for partial in self.partials:
            array = arrays[partial.name]
            if array.type != partial.type:
                raise BrokenAggregateLawError(
                    "type", self.name, f"a state is {array.type}, and {partial.type} is declared"
                )
            columns[partial.name] = array.to_pylist()
        return {key: {name: column[i] for name, column in columns.items()} for i, key in enumerate(keys)}


def _grouped(keys: list[int]) -> tuple[list[int], Grouping]:
    """The different keys in the order of their first rows, and the groups of the rows."""
    first: dict[int, int] = {}
    for row, key in enumerate(keys):
        first.setdefault(key, row)
    number = {key: group for group, key in enumerate(first)}
    groups = Grouping(
        np.array([number[key] for key in keys], np.int32), np.array(list(first.values()), np.int64)
    )
    return list(first), groups


def _is_near(a: Any, b: Any, tolerance: float) -> bool:
    """Whether two results are equal within a tolerance. If it is NaN, floats may be rounded."""
    if a == b or (a != a and b != b):
        return True
    if not all(isinstance(number, int | float | Decimal) for number in (a, b)):
        return False
    if math.isnan(tolerance):
        return isinstance(a, float) and math.isclose(a, b, rel_tol=_NEAR, abs_tol=_NEAR)
    return abs(float(a) - float(b)) <= tolerance


def _narrow(type_: pa.DataType) -> str:
    return str(type_).replace("large_", "")


def _shown(values: Sequence[Any]) -> str:
    return repr(list(values)) if len(values) <= 12 else f"{list(values)[:12]!r} and {len(values) - 12} more"
