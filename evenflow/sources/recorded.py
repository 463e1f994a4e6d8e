"""Data sets with fixed columns: a CSV file of the user,
or a seeded generator that makes rows with the same columns.

The text behind the name says which of them: `taxi:rides.csv` is a file, `taxi:tuples=1000,seed=3` and `taxi`
are generated. The file of `flights` comes with a package, and nothing is generated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from evenflow.errors import ConfigError
from evenflow.grammar.column_types import ColumnType
from evenflow.grammar.inputs import TimeUnit
from evenflow.settings.word_options import WordOptions
from evenflow.sources.formats.csv_files import read_csv
from evenflow.sources.source import SourceFormat, SourceOptions, TableSource, arrow_type, bounded

MOST_TUPLES = MOST_KEYS = 10_000_000
"""Most tuples and keys of a generated data set, which lies in memory as a whole."""


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A data set: files with fixed columns, and what a user should know of them."""

    name: str
    """The name by which a source is written."""
    summary: str
    """What the data set is, in one line."""
    layout: str
    """How its file is laid out, in words."""
    licence: str
    """The terms under which its publisher gives it."""
    columns: dict[str, ColumnType]
    """The columns of its file, in order, with their types."""
    key: str
    """The column that is the record key, if the user names no other."""
    time: str
    """The column of event times, if the user names no other."""
    time_unit: TimeUnit
    """How that column writes event times."""
    make: Callable[[WordOptions], pa.Table] | None = None
    """Generates rows from the user's options: a table with these columns. None: it cannot be generated."""
    installed: Callable[[], Path] | None = None
    """Where its file lies if a package has brought it. Raises ConfigError without the package. None: no
    package has it.
    """
    header: bool = False
    """Whether its files start with the names of the columns."""
    sha256: Mapping[str, str] = field(default_factory=dict)
    """Checksum in hexadecimal digits -> the file that has it, for the files whose publisher says one."""
    places: Mapping[str, Callable[[pa.Table], pa.Array]] = field(default_factory=dict)
    """Further columns of type string that are computed from the file's columns, if a query names them."""

    def format(self) -> SourceFormat:
        """The source format under which the data set is registered."""
        return SourceFormat(self.name, self.summary, self.open)

    def open(self, rest: str, options: SourceOptions) -> TableSource:
        """The file or the generated rows as a bounded source.
        ConfigError says what is wrong with the file or options.
        """
        name = f"{self.name}:{rest}" if rest else self.name
        rest = rest if rest or self.installed is None else str(self.installed())
        table = self._read(rest, options) if self._is_file(rest) else self._generate(rest, options)
        for column in self._computed_names(options):
            table = table.append_column(column, self.places[column](table))
        return bounded(name, table, options, key=self.key, time=self.time, time_unit=self.time_unit)

    def _read(self, path: str, options: SourceOptions) -> pa.Table:
        # A computed column needs columns that the query does not name. All columns are then read, and the
        # key, which may be a computed column, is the data set's own.
        computed_names = self._computed_names(options)
        chosen = replace(
            options,
            key=self.key if computed_names else options.key or self.key,
            time=options.time or self.time,
            columns=None if computed_names else options.columns,
            delimiter=",",
            header=self.header,
            names=None if self.header else tuple(self.columns),
            types=self.columns | options.types,
        )
        return read_csv(Path(path), chosen)

    def _generate(self, text: str, options: SourceOptions) -> pa.Table:
        if self.make is None:
            raise ConfigError(
                f"{self.name} takes no options, but got {text!r}",
                hint=f"write just: {self.name}, or {self.name}:FILE for a file of yours",
            )
        words = WordOptions(text, owner=self.name)
        table = self.make(words)
        words.done()
        kinds = self.columns | options.types
        return table.cast(pa.schema([(column, arrow_type(kinds[column])) for column in self.columns]))

    def _computed_names(self, options: SourceOptions) -> list[str]:
        return [column for column in self.places if column in (options.key, *(options.columns or ()))]

    def _is_file(self, rest: str) -> bool:
        if not rest or Path(rest).is_file():
            return bool(rest)
        if "=" in rest.partition(",")[0]:
            return False
        raise ConfigError(
            f"there is no file {rest}",
            hint=f"name a CSV file, or write {self.name}{'' if self.make is None else ':tuples=1000,seed=1'}",
        )


@dataclass(frozen=True, kw_only=True)
class Draw:
    """What generators of data sets share."""

    tuples: int
    """How many tuples to draw."""
    rate: float
    """Tuples per second of event time."""
    random: np.random.Generator
    """Where the random numbers come from."""

    @classmethod
    def of(cls, words: WordOptions, *, tuples: int, rate: float) -> Draw:
        """A draw from the options tuples, rate (tuples per second of event time) and seed,
        with these defaults.

        ConfigError for a value out of range.
        """
        count = words.integer("tuples", tuples, least=1)
        if count > MOST_TUPLES:
            raise ConfigError(f"tuples={count} exceeds {MOST_TUPLES:,}", hint="ask for fewer tuples")
        return cls(
            tuples=count,
            rate=words.number("rate", rate, above=0),
            random=np.random.default_rng(words.integer("seed", 1)),
        )

    def ranks(self, keys: int, exponent: float) -> np.ndarray:
        """A rank of 0 .. keys-1 for each tuple, by Zipf's law, shape (tuples,).
        ConfigError for too many keys.
        """
        if keys > MOST_KEYS:
            raise ConfigError(f"{keys:,} different keys exceed {MOST_KEYS:,}", hint="ask for fewer")
        weights = np.cumsum(np.arange(1, keys + 1, dtype=np.float64) ** -exponent)
        return np.searchsorted(weights, self.random.random(self.tuples) * weights[-1], side="right").clip(
            max=keys - 1
        )

    def texts(self, choices: list[str], ranks: np.ndarray) -> pa.Array:
        """The text of each rank: `choices[rank]`."""
        return pa.array(choices, pa.string()).take(pa.array(ranks))
