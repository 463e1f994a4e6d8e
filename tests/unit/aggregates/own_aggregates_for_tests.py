"""Aggregates of one's own that tests load by name: right ones, and some that break one law each."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa

from evenflow.aggregates.own import PlainAggregate, TableAggregate


class Total(PlainAggregate):
    """The sum of whole numbers, in plain Python."""

    result = "int64"
    over = ("int64",)

    def init(self) -> Any:
        return 0

    def add(self, state: Any, value: Any) -> Any:
        return state + value

    def merge(self, a: Any, b: Any) -> Any:
        return a + b

    def finish(self, state: Any) -> Any:
        return state


class Seen(PlainAggregate):
    """The different texts, joined. Its state grows."""

    result = "string"
    over = ("string",)

    def init(self) -> list[str]:
        return []

    def add(self, state: list[str], value: str) -> list[str]:
        return sorted({*state, value})

    def merge(self, a: list[str], b: list[str]) -> list[str]:
        return sorted({*a, *b})

    def finish(self, state: list[str]) -> str:
        return ",".join(state)


class Cents(PlainAggregate):
    """The sum of decimals, whose state is no JSON."""

    result = "decimal(2)"
    over = ("decimal(S)",)

    def init(self) -> Decimal:
        return Decimal(0)

    def add(self, state: Decimal, value: Decimal) -> Decimal:
        return state + value

    def merge(self, a: Decimal, b: Decimal) -> Decimal:
        return a + b

    def finish(self, state: Decimal) -> Decimal:
        return state

    def dump(self, state: Decimal) -> bytes:
        return str(state.quantize(Decimal("0.01"))).encode()

    def load(self, data: bytes) -> Decimal:
        return Decimal(data.decode())


class Arrays(Total):
    """`Total`, many values at once."""

    def add_all(self, state: Any, values: pa.Array) -> Any:
        return state + int(values.to_pandas().sum())


class Averaged(Total):
    """Merges means without their weights."""

    result = "float64"

    def merge(self, a: Any, b: Any) -> Any:
        return (a + b) / 2


class First(Total):
    """Depends on the order."""

    def init(self) -> Any:
        return None

    def add(self, state: Any, value: Any) -> Any:
        return value if state is None else state

    def merge(self, a: Any, b: Any) -> Any:
        return b if a is None else a


class Shared(Total):
    """All keys have one state."""

    state: list[int] = []  # noqa: RUF012 - that is the mistake

    def init(self) -> Any:
        return self.state

    def add(self, state: Any, value: Any) -> Any:
        state.append(value)
        return state

    def merge(self, a: Any, b: Any) -> Any:
        return a + b

    def finish(self, state: Any) -> Any:
        return len(state)


class Empty(Total):
    """Counts its merges, so that a state of no value is none."""

    def init(self) -> Any:
        return 1


class Tuples(Total):
    """Its state is a tuple first and a list later."""

    def init(self) -> Any:
        return ()

    def add(self, state: Any, value: Any) -> Any:
        return (*state, value)

    def merge(self, a: Any, b: Any) -> Any:
        return sorted([*a, *b])

    def finish(self, state: Any) -> Any:
        return sum(state) + isinstance(state, list)


class Words(Total):
    """Says that it gives numbers, and gives texts."""

    def finish(self, state: Any) -> Any:
        return "many"


class NoOracle(TableAggregate):
    """A sum without an oracle."""

    result = "float64"
    state = {"sum": pa.float64()}  # noqa: RUF012

    def combine(self, rows: pa.Table) -> pa.Table:
        return self.merge(rows.rename_columns(["group", "sum"]).cast(self._schema))

    def merge(self, states: pa.Table) -> pa.Table:
        sums = states.group_by("group", use_threads=False).aggregate([("sum", "sum")])
        return sums.select(["group", "sum_sum"]).rename_columns(["group", "sum"])

    def finish(self, states: pa.Table) -> pa.ChunkedArray:
        return states["sum"]

    _schema = pa.schema([("group", pa.int32()), ("sum", pa.float64())])


class TableSum(NoOracle):
    """A sum by Arrow."""

    def oracle(self, values: list[Any]) -> Any:
        return float(sum(values)) if values else None

    def tolerance(self, exact: Any, values: list[Any]) -> float:
        return 1e-9 * float(sum(map(abs, values)))


class Grows(TableSum):
    """A state without a fixed size."""

    state = {"sum": pa.string()}  # noqa: RUF012


class Unnamed(TableSum):
    """Gives the columns of group_by as they are."""

    def merge(self, states: pa.Table) -> pa.Table:
        return states.group_by("group").aggregate([("sum", "sum")])


class Half(PlainAggregate):
    """Lacks two functions."""

    result = "int64"

    def init(self) -> Any:
        return 0

    def finish(self, state: Any) -> Any:
        return state


class Fails(Total):
    """Fails where it adds."""

    def add(self, state: Any, value: Any) -> Any:
        return state + value["deep"]


class Limited(Total):
    """Takes an option."""

    def __init__(self, most: int) -> None:
        if most < 1:
            raise ValueError(f"most must be 1 or more, not {most}")
        self.most = most

    def finish(self, state: Any) -> Any:
        return min(state, self.most)


class Odd(Total):
    """A result of no type."""

    result = "number"
