"""The laws of `source.py` as functions: each is tried on the first tuples of a source.

`evenflow.testing.check_source` holds a source to them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from evenflow.contracts import CounterExample, Law, demand
from evenflow.errors import ConfigError
from evenflow.plugins import name_of
from evenflow.sources.datasets import open_source
from evenflow.sources.source import Batch, Source, SourceFormat, SourceOptions

MOST = 5_000
"""Tuples of a source that are looked at, at most."""
_SIZES = (MOST, 997, 64)
_SMALL = 100
"""Tuples that are also read one by one."""
_NO_COLUMN = "no-column-has-this-name"


@dataclass(frozen=True)
class SourceCase:
    """A source whose laws are checked."""

    text: str
    """The source as the user wrote it."""
    options: SourceOptions = field(default_factory=SourceOptions)
    """How the user asks for it to be read."""

    @cached_property
    def source(self) -> Source:
        """The source, opened once."""
        return self.opened()

    def opened(self, **changes: Any) -> Source:
        """The source, opened anew, with these fields of the options changed."""
        return open_source(self.text, replace(self.options, **changes))


class FirstTuples(NamedTuple):
    """The first tuples of a source."""

    columns: pa.Table
    """The tuples' columns, a row for each tuple."""
    keys: pa.Array
    """The record key of each tuple."""
    times: list[int]
    """The event time of each tuple, ms."""


def first_tuples(source: Source, size: int, most: int = MOST) -> FirstTuples:
    """The first tuples, at most so many, read in batches of this size.
    CounterExample for a batch that is longer.
    """
    batches: list[Batch] = []
    count = 0
    for batch in source.batches(size):
        demand(len(batch) <= size, f"batches({size})", expected=f"at most {size} tuples", got=len(batch))
        batches.append(batch.slice(0, min(len(batch), most - count)))
        count += len(batches[-1])
        if count == most:
            break
    demand(count, f"batches({size})", expected="a tuple or more", got="none")
    return FirstTuples(
        pa.concat_tables([batch.columns for batch in batches]).combine_chunks(),
        pa.concat_arrays([batch.keys for batch in batches]),
        [int(time) for batch in batches for time in batch.times],
    )


def _same(got: FirstTuples, expected: FirstTuples, example: str) -> None:
    if (
        got.columns.equals(expected.columns)
        and got.keys.equals(expected.keys)
        and got.times == expected.times
    ):
        return
    length = min(len(got.times), len(expected.times))
    at = next((row for row in range(length) if _tuple(got, row) != _tuple(expected, row)), length)
    tuples = [repr(_tuple(read, at)) if at < len(read.times) else "the end" for read in (expected, got)]
    raise CounterExample(f"{example}, tuple {at}", expected=tuples[0], got=tuples[1])


def _tuple(read: FirstTuples, row: int) -> str:
    # Not a number is equal to nothing, but its text is.
    values = {name: read.columns[name][row].as_py() for name in read.columns.column_names}
    return f"{read.keys[row].as_py()!r} at {read.times[row]}: {values}"


def _repeats(case: SourceCase) -> None:
    source = case.source
    once = first_tuples(source, _SIZES[0])
    _same(first_tuples(source, _SIZES[0]), once, "a second call of batches")
    _same(first_tuples(case.opened(), _SIZES[0]), once, "the source opened anew")


def _cut_anyhow(case: SourceCase) -> None:
    source = case.source
    whole = first_tuples(source, _SIZES[0])
    for size in _SIZES[1:]:
        _same(first_tuples(source, size), whole, f"batches({size})")
    few = FirstTuples(whole.columns.slice(0, _SMALL), whole.keys.slice(0, _SMALL), whole.times[:_SMALL])
    _same(first_tuples(source, 1, _SMALL), few, "batches(1)")


def _well_formed(case: SourceCase) -> None:
    source, rows = case.source, 0
    for number, batch in enumerate(source.batches(997)):
        example, length = f"batch {number} of batches(997)", len(batch.times)
        demand(
            (batch.columns.num_rows, len(batch.keys)) == (length, length),
            example,
            expected=f"{length} rows and keys, as there are times",
            got=f"{batch.columns.num_rows} rows and {len(batch.keys)} keys",
        )
        demand(
            isinstance(batch.times, np.ndarray) and batch.times.dtype == np.int64,
            example,
            expected="times as a numpy array of int64, ms",
            got=getattr(batch.times, "dtype", type(batch.times)),
        )
        demand(
            pa.types.is_large_binary(batch.keys.type) or pa.types.is_binary(batch.keys.type),
            example,
            expected="keys as an Arrow array of bytes",
            got=batch.keys.type,
        )
        names = list(source.column_names)
        demand(
            batch.columns.column_names == names,
            example,
            expected=f"the columns of column_names: {names}",
            got=batch.columns.column_names,
        )
        rows += length
        if rows >= MOST:
            return
    demand(
        source.rows in (None, rows), "all batches", expected=f"{source.rows} tuples, as `rows` says", got=rows
    )


def _options_win(case: SourceCase) -> None:
    chosen = list(reversed(case.source.column_names))[:3]
    names = list(case.opened(columns=tuple(chosen)).column_names)
    demand(names == chosen, f"columns={tuple(chosen)}", expected=f"column_names {chosen}", got=names)


def _missing_column_is_refused(case: SourceCase) -> None:
    try:
        next(iter(case.opened(columns=(_NO_COLUMN,)).batches(1)))
    except ConfigError:
        return
    raise CounterExample(f"columns=({_NO_COLUMN!r},)", expected="ConfigError", got="no error")


LAWS: tuple[Law[SourceCase], ...] = (
    Law("each call of `batches` gives the same tuples in the same order", _repeats),
    Law("the size of the batches changes no tuple, and no batch is longer than asked for", _cut_anyhow),
    Law("columns, keys and times of a batch fit each other, and `rows` is their number", _well_formed),
    Law("the columns that the user chooses are those that come, in this order", _options_win),
    Law("a column that is not there is a ConfigError", _missing_column_is_refused),
)


def check_source(source: str | SourceFormat | Callable[[str, SourceOptions], Source], **options: Any) -> None:
    """Hold a source to every law of the contract, by its first tuples.

    source: as the user writes it (`"own:open_letters:hello"`), or the function or SourceFormat itself, which
    is then opened with no text behind its name. options: fields of SourceOptions, such as key and time.
    Raises BrokenLawError with the law, an example, what was expected and what came instead. ConfigError if
    the source cannot be opened.
    """
    case = SourceCase(_written(source), SourceOptions(**options))
    _ = case.source
    for law in LAWS:
        law.hold(case, who=case.text)


def _written(source: object) -> str:
    if isinstance(source, str):
        return source
    function = source.open if isinstance(source, SourceFormat) else source
    if not isinstance(function, FunctionType):
        raise ConfigError(
            f"{function!r} is no function that opens a source",
            hint='name the source, as in "own:open_letters:hello"',
        )
    return name_of(function)
