"""What every aggregate of one's own says of itself, and how its Python values become those
of a result column.
"""

from __future__ import annotations

import operator
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from typing import Any, ClassVar

import pyarrow as pa

from evenflow.aggregates.aggregate import NUMBERS
from evenflow.errors import ConfigError

_FLOAT_BOUND = 1e-9
_WIDE = Context(prec=60)


class OwnAggregate:
    """What a user's aggregate declares, whatever its form.

    The options that are written behind the column are the arguments of `__init__`: whole numbers and
    fractions as numbers, everything else as text. `__init__` raises ValueError for wrong ones.
    """

    result: str
    """Type of the result: 'int64', 'float64', 'string', 'bool', 'date' or 'decimal(S)'.
    `__init__` may set it.
    """
    over: ClassVar[tuple[str, ...]] = NUMBERS
    """Types of column that are accepted, as `result` is written; 'decimal(S)' stands for every scale."""

    def oracle(self, values: list[Any]) -> Any:
        """The exact value over all values of a key in a window, in one go. `verify` compares results with it.

        values: Python values that are not null, in the order of event time, those of one time in ascending
        order. The list is empty if all values of the window are null.
        """
        raise NotImplementedError

    def tolerance(self, exact: Any, values: list[Any]) -> float:
        """How far a result may be from the oracle's value. Only numbers may have a tolerance.

        The default is 1e-9 of the value for a float64, as sums in another order are rounded otherwise. It is
        0 for all other types. exact: the oracle's value, not null. values: as in `oracle`.
        """
        return _FLOAT_BOUND * abs(exact) if self.result == "float64" else 0.0


@dataclass(frozen=True)
class Result:
    """One value of a result column."""

    value: Any
    """The value as Arrow takes it, null if it does not fit."""
    fits: bool = True
    """Whether the type and the room hold the value."""


@contextmanager
def blamed(name: str, action: str) -> Iterator[None]:
    """Say which aggregate has failed, doing what, and in which line. Raises ConfigError for any error
    within.
    """
    try:
        yield
    except ConfigError:
        raise
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        raise ConfigError(
            f"aggregate {name}: {action} raised {type(error).__name__}: {error}"
            f" ({frame.filename}, line {frame.lineno})",
            hint="evenflow.testing.check_aggregate tries it without a pipeline",
        ) from error


def as_result(name: str, value: Any, type_: pa.DataType, room: int) -> Result:
    """The value as its column holds it. room: bytes that a text may have.

    Raises ConfigError for a value of another type. A whole number beyond 64 bits, a decimal of more than 18
    digits and a text beyond its room do not fit.
    """
    if value is None:
        return Result(None)
    try:
        return _converted(value, type_, room)
    except (TypeError, ValueError, InvalidOperation):
        raise ConfigError(
            f"aggregate {name}: the result {value!r} is a {type(value).__name__}, and its column is {type_}",
            hint="return a value of the type that `result` declares, or None",
        ) from None


def _converted(value: Any, type_: pa.DataType, room: int) -> Result:
    if pa.types.is_integer(type_):
        number = operator.index(value)
        return Result(number) if -(2**63) <= number < 2**63 else Result(None, fits=False)
    if pa.types.is_floating(type_):
        if isinstance(value, str | bytes):
            raise TypeError
        return Result(float(value))
    if pa.types.is_decimal(type_):
        if isinstance(value, float):
            raise TypeError
        rounded = Decimal(value).quantize(Decimal(1).scaleb(-type_.scale), ROUND_HALF_EVEN, _WIDE)
        fits = abs(rounded) < Decimal(10) ** (type_.precision - type_.scale)
        return Result(rounded) if fits else Result(None, fits=False)
    if pa.types.is_string(type_):
        if not isinstance(value, str):
            raise TypeError
        return Result(value) if len(value.encode()) <= room else Result(None, fits=False)
    if pa.types.is_boolean(type_):
        return Result(_truth(value))
    if not isinstance(value, date) or isinstance(value, datetime):
        raise TypeError
    return Result(value)


def _truth(value: Any) -> bool:
    # numpy's truth is no bool of Python.
    if type(value).__name__ not in ("bool", "bool_"):
        raise TypeError
    return bool(value)
