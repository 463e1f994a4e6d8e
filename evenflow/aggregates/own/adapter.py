"""Makes an `Aggregate` of a class of one's own, which plans and `verify` then treat as any other."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any

import pyarrow as pa

from evenflow import plugins
from evenflow.aggregates.aggregate import ANYTHING, Aggregate, Call, Documentation, Exact
from evenflow.aggregates.own.base import OwnAggregate, Result, as_result, blamed
from evenflow.aggregates.own.plain import PlainAggregate, finished, state_column
from evenflow.aggregates.own.tables import TableAggregate, finished_rows, row_column, struct_type
from evenflow.aggregates.partials.picks import fitting, unfit_texts
from evenflow.aggregates.size_limits import is_text
from evenflow.errors import ConfigError
from evenflow.grammar.aggregate_spec import AggregateSpec
from evenflow.grammar.arrow_types import arrow_type
from evenflow.grammar.column_types import PLAIN_TYPES, decimal_scale
from evenflow.numeric.arrays import one_chunk

NO_ORACLE = "not compared by `verify`, which refuses this query: it has no `oracle`"


class Adapter:
    """The functions of an `Aggregate` over a class of one's own.
    name: as in `[query.aggregates]`. aggregate_class: it.
    """

    def __init__(self, name: str, aggregate_class: type[OwnAggregate]) -> None:
        self.name, self.aggregate_class = name, aggregate_class
        self.make: Callable[..., OwnAggregate] = aggregate_class

    def read(self, written: tuple[str, ...]) -> tuple[Any, ...]:
        """The options as arguments of the class. Raises ValueError if the class does not take them."""
        options = tuple(map(_number, written))
        try:
            own = _instance(self.make, options)
        except TypeError as error:
            raise ValueError(f"it does not take the options {written}: {error}") from None
        if (
            getattr(own, "result", None) not in PLAIN_TYPES
            and decimal_scale(getattr(own, "result", "")) is None
        ):
            raise ConfigError(
                f"aggregate {self.name}: result = {getattr(own, 'result', None)!r} is no type of a column",
                hint=f"a result is one of {', '.join(PLAIN_TYPES)} or decimal(S)",
            )
        if isinstance(own, TableAggregate):
            struct_type(self.name, own)
        return options

    def own(self, call: Call) -> OwnAggregate:
        """The user's object of a call."""
        return _instance(self.make, call.options)

    def label(self, call: Call) -> str:
        """Name of the partial column."""
        return str(
            AggregateSpec(function=self.name, column=call.column, options=tuple(map(str, call.options)))
        )

    def partials(self, call: Call) -> tuple[Any, ...]:
        """The one partial column: the state."""
        own = self.own(call)
        if isinstance(own, TableAggregate):
            return (row_column(own, self.name, self.label(call), call),)
        assert isinstance(own, PlainAggregate)
        return (state_column(own, self.name, self.label(call), call),)

    def result_type(self, call: Call) -> pa.DataType:
        """Arrow type of the results."""
        return arrow_type(self.own(call).result)

    def finish(self, partials: pa.Table, call: Call) -> pa.Array:
        """The result of each row. One that does not fit is null."""
        results = self._results(partials, call)
        if isinstance(results, pa.Array):
            return fitting(results, call.room.result)
        return pa.array([result.value for result in results], self.result_type(call))

    def unfit(self, partials: pa.Table, call: Call) -> int:
        """How many results do not fit."""
        type_ = self.result_type(call)
        narrow = is_text(type_) or pa.types.is_integer(type_) or pa.types.is_decimal(type_)
        if issubclass(self.aggregate_class, PlainAggregate) and not narrow:
            # Only a state can be too large, so nothing need be finished twice.
            return one_chunk(partials[self.label(call)]).null_count
        results = self._results(partials, call)
        if isinstance(results, pa.Array):
            return unfit_texts(results, call.room.result)
        return sum(not result.fits for result in results)

    def exact(self, values: list[Any], call: Call) -> Exact:
        """The oracle's result over these values, and how far another may be from it."""
        own = self.own(call)
        with blamed(self.name, "oracle"):
            result = as_result(self.name, own.oracle(values), self.result_type(call), call.room.result)
            if isinstance(own, PlainAggregate) and not self._has_room(own, values, call):
                return Exact(None, 0.0, fits=False)
            tolerance = 0.0
            if _is_finite_number(result.value):
                tolerance = abs(float(own.tolerance(result.value, values)))
            return Exact(result.value, tolerance, result.fits)

    def _has_room(self, own: PlainAggregate, values: list[Any], call: Call) -> bool:
        state = own.init()
        for value in values:
            state = own.add(state, value)
        return len(own.dump(state)) <= call.room.state

    def _results(self, partials: pa.Table, call: Call) -> pa.Array | list[Result]:
        own, states = self.own(call), partials[self.label(call)]
        if isinstance(own, TableAggregate):
            return finished_rows(own, self.name, states, self.result_type(call))
        assert isinstance(own, PlainAggregate)
        return finished(own, self.name, states, self.result_type(call), call.room.result)


def as_aggregate(name: str, candidate: object) -> Aggregate:
    """The `Aggregate` of a class that derives from PlainAggregate or TableAggregate.

    name: by which messages call it, and settings. Raises ConfigError for anything else, and for a class that
    lacks a function of its form.
    """
    if not (isinstance(candidate, type) and issubclass(candidate, PlainAggregate | TableAggregate)):
        raise ConfigError(
            f"{name} is {_article(candidate)}, and not an aggregate",
            hint="derive a class from evenflow.aggregates.own.PlainAggregate or TableAggregate",
        )
    form: type[OwnAggregate] = PlainAggregate if issubclass(candidate, PlainAggregate) else TableAggregate
    missing = [step for step in _steps(form) if getattr(candidate, step) is getattr(form, step)]
    if missing:
        raise ConfigError(
            f"aggregate {name} has no {' and no '.join(missing)}",
            hint=f"{form.__name__} says what {'it' if len(missing) == 1 else 'they'} must do",
        )
    unknown = sorted(set(candidate.over) - set(ANYTHING))
    if unknown:
        raise ConfigError(
            f"aggregate {name}: over has {', '.join(unknown)}, which no column is",
            hint=f"columns are {', '.join(ANYTHING)}",
        )
    adapter = Adapter(name, candidate)
    compared = candidate.oracle is not OwnAggregate.oracle
    bound = "as near to its `oracle` as its `tolerance` says" if compared else NO_ORACLE
    return Aggregate(
        name=name,
        forms=(f"{name}({', '.join(('column', *_options(candidate)))})",),
        over=candidate.over,
        read=adapter.read,
        partials=adapter.partials,
        result_type=adapter.result_type,
        finish=adapter.finish,
        unfit=adapter.unfit,
        documentation=Documentation(
            computes=inspect.cleandoc(candidate.__doc__ or plugins.summary_of(candidate)),
            nulls="left out",
            bound=bound,
            state="its own",
        ),
        oracle=adapter.exact if compared else None,
    )


def _steps(form: type[OwnAggregate]) -> tuple[str, ...]:
    return ("combine", "merge", "finish") if form is TableAggregate else ("init", "add", "merge", "finish")


@lru_cache(maxsize=256)
def _instance(make: Callable[..., OwnAggregate], options: tuple[Any, ...]) -> OwnAggregate:
    """The same object for the same options, so that equal partial columns of a query are one."""
    return make(*options)


def _options(aggregate_class: type) -> tuple[str, ...]:
    """Names of the options. A class without an `__init__` of its own has none."""
    return tuple(inspect.signature(aggregate_class).parameters)


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _is_finite_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool) and math.isfinite(value)


def _article(value: object) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"
