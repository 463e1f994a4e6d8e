"""Finished cells on disk, so that a sweep that was stopped goes on.

While a sweep runs, each finished cell is a line of JSON in `FILE.part`. When all are finished, the table is
written and `FILE.part` is removed. A sweep that begins takes what it finds in both. A cell is known by its
own description (`grid.IDENTITY`), so a sweep with longer lists only runs what is new.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import pyarrow as pa

from evenflow.errors import ConfigError
from evenflow.sweep.grid import IDENTITY, Cell, Key
from evenflow.sweep.run import CellOutcome
from evenflow.sweep.table import (
    OF_COSTS,
    ROWS,
    SERIES,
    check_target,
    key_of,
    read_table,
    rows_table,
    write_table,
)

Points = tuple[list[float], list[float]]
"""A series: where its points are, and the imbalance there."""


@dataclass(frozen=True)
class _FinishedCell:
    """What the files have of a finished cell."""

    row: Mapping[str, Any]
    """The figures and their provenance (`table.ROWS`)."""
    series: Points | None
    """The whole series of the imbalance. None if the sweep keeps none."""


class Store:
    """The finished cells of one sweep. Use it in a `with` statement, which keeps others from the same file.

    table: the file of the rows. series: the file of the whole series, or None. ConfigError for a file that
    holds another sweep, that was cut, or that another process is writing.
    """

    def __init__(self, cells: Sequence[Cell], table: Path, series: Path | None = None) -> None:
        check_target(table)
        if series is not None:
            check_target(series)
            if series.resolve() == table.resolve():
                raise ConfigError("the table and its series have the same file", hint="name two files")
        self._cells = {cell.key: cell for cell in cells}
        self._table, self._series = table, series
        self._part = table.with_name(f"{table.name}.part")
        self._finished: dict[Key, _FinishedCell] = {}
        self._journal: IO[str] | None = None

    def __enter__(self) -> Store:
        journal = self._part.open("a+", encoding="utf-8")
        try:
            # The lock goes with the process, so a killed sweep leaves none behind.
            fcntl.flock(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            journal.close()
            raise ConfigError(
                f"another sweep is writing {self._table}", hint="wait for it, or name another file"
            ) from None
        self._journal = journal
        try:
            if self._table.exists():
                self._take_table()
            self._take_journal(journal)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    @property
    def left(self) -> list[Cell]:
        """Cells that are to be run, in the order of the sweep."""
        return [cell for key, cell in self._cells.items() if not self._is_finished(key)]

    def add(self, outcome: CellOutcome) -> None:
        """Keep a finished cell. It outlives this process when this returns."""
        assert self._journal is not None, "the store is not open"
        points = None
        if self._series is not None:
            points = (outcome.at.tolist(), outcome.imbalance.tolist())
        self._journal.write(json.dumps({"row": outcome.row, "series": points}) + "\n")
        # A line at a time: of a killed sweep at most the last line is cut, and `_take_journal` drops it.
        self._journal.flush()
        self._finished[outcome.cell.key] = _FinishedCell(outcome.row, points)

    def finish(self) -> None:
        """Write the tables, in the order of the sweep, and remove `FILE.part`. All cells must be finished."""
        assert not self.left, "cells are not finished"
        ordered = [self._finished[key] for key in self._cells]
        if self._series is not None:
            write_table(self._series, _series_table(ordered))
        write_table(self._table, rows_table([cell.row for cell in ordered]))
        self._part.unlink()

    def _is_finished(self, key: Key) -> bool:
        known = self._finished.get(key)
        return known is not None and (self._series is None or known.series is not None)

    def _take_table(self) -> None:
        """The rows of the table, with their series if the file of the series has them."""
        series: dict[Key, Points] = {}
        if self._series is not None and self._series.exists():
            series = _series_by_key(read_table(self._series, SERIES))
        for row in read_table(self._table, ROWS).to_pylist():
            self._keep(row, series.get(key_of(row)), self._table)

    def _take_journal(self, journal: IO[str]) -> None:
        """The rows of `FILE.part`. A last line without an end was being written when the sweep stopped,
        and is dropped.
        """
        journal.seek(0)
        text = journal.read()
        whole = text[: text.rfind("\n") + 1]
        if len(whole) < len(text):
            journal.truncate(len(whole.encode()))
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                entry = json.loads(line)
                row = {name: entry["row"][name] for name in ROWS.names if name not in OF_COSTS}
                row |= {name: entry["row"].get(name) for name in OF_COSTS}
                points = entry["series"]
                series = None if points is None else (points[0], points[1])
            except (ValueError, KeyError, TypeError, IndexError):
                raise ConfigError(
                    f"line {number} of {self._part} is no finished cell",
                    hint="remove the file, and its cells are run again",
                ) from None
            self._keep(row, series, self._part)

    def _keep(self, row: Mapping[str, Any], series: Points | None, file: Path) -> None:
        key = key_of(row)
        if key not in self._cells:
            raise ConfigError(
                f"{file} has rows of another sweep: {self._difference(row)}",
                hint="name another file for this sweep, or remove that one",
            )
        self._finished[key] = _FinishedCell(row, series)

    def _difference(self, row: Mapping[str, Any]) -> str:
        """What of a row this sweep has not."""
        for name in IDENTITY:
            ours = {cell.identity[name] for cell in self._cells.values()}
            if row[name] not in ours:
                few = ", ".join(sorted(str(value) for value in ours)[:5])
                return f"{name} {row[name]} there, {few}{', ...' if len(ours) > 5 else ''} here"
        return f"no cell with {dict(zip(IDENTITY, key_of(row), strict=True))} here"

    def _close(self) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None
            if self._part.exists() and self._part.stat().st_size == 0:
                self._part.unlink()


def _series_table(finished: Sequence[_FinishedCell]) -> pa.Table:
    parts = []
    for cell in finished:
        assert cell.series is not None
        at, imbalance = cell.series
        arrays = [pa.repeat(pa.scalar(cell.row[name], SERIES.field(name).type), len(at)) for name in IDENTITY]
        parts.append(
            pa.Table.from_arrays(
                [*arrays, pa.array(at, pa.float64()), pa.array(imbalance, pa.float64())], schema=SERIES
            )
        )
    return pa.concat_tables(parts)


def _series_by_key(table: pa.Table) -> dict[Key, Points]:
    columns = [table.column(name).to_pylist() for name in IDENTITY]
    series: dict[Key, Points] = {}
    for *key, at, imbalance in zip(
        *columns, table.column("at").to_pylist(), table.column("imbalance").to_pylist(), strict=True
    ):
        points = series.setdefault(tuple(key), ([], []))
        points[0].append(at)
        points[1].append(imbalance)
    return series
