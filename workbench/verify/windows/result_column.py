"""One result column, as verify computes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
from duckdb.func import FunctionNullHandling

from evenflow.errors import EvenflowError


@dataclass(frozen=True, kw_only=True)
class Function:
    """A function of Python in DuckDB. It has one parameter."""

    name: str
    """Name by which the SQL of the column calls the function."""
    call: Callable[[Any], Any]
    """What DuckDB calls for each value."""
    parameter: str
    """Type of the parameter in SQL."""
    result: str
    """Type of the result in SQL."""

    @contextmanager
    def registered(self, db: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """The connection knows the function within. Null comes as None.
        An EvenflowError of the function is raised.
        """
        failures: list[EvenflowError] = []

        def call(value: Any) -> Any:
            try:
                return self.call(value)
            except EvenflowError as error:
                failures.append(error)
                raise

        special = FunctionNullHandling.SPECIAL
        db.create_function(self.name, call, [self.parameter], self.result, null_handling=special)
        try:
            yield
        except duckdb.Error as error:
            # DuckDB makes an error of its own of it, whose text is the traceback.
            raise failures[0] if failures else error from None
        finally:
            db.remove_function(self.name)


@dataclass(frozen=True, kw_only=True)
class Oracle:
    """One result column, as verify computes it."""

    value: str
    """SQL of the exact value."""
    kind: pa.DataType
    """Type of the result."""
    tolerance: str = "0"
    """SQL of how far the result may be off, 0 for not at all. If the tolerance is infinite, any result but
    null is right. If it is below 0, it counts as above 0, and null is right, too."""
    whole: bool = False
    """Whether `value` and `tolerance` are over the tuples of a window (columns `time`, `v0`, ...) and not
    over its totals."""
    unfit: str = "false"
    """SQL, whether the value is null because it does not fit int64, or its room.
    It is over what `value` is over."""
    wrong: str | None = None
    """SQL, whether result `g` is wrong beside the exact value `e`. It is for values that a tolerance cannot
    judge. None: the tolerance judges."""
    function: Function | None = None
    """The function of Python that `value` calls. None: `value` is SQL alone."""
    after: bool = False
    """Whether `value` and `unfit` are over the other values (`a0`, ...) of the same row."""
    of_row: str | None = None
    """SQL of the value over the values (`a0`, ...) that result row `s` holds, by which the row alone is
    judged. None: by `value`."""
