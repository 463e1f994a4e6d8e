"""The base of a sink of one's own that writes Spark data frames: whatever `foreachBatch` can do."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from evenflow.errors import ConfigError, IncompatibleStateError
from evenflow.settings import Settings
from spark_consumers.checkpoints.result_files import with_times
from spark_consumers.checkpoints.results_note import IF_LOST
from spark_consumers.sinks.base import Position, Start, StartFacts
from spark_consumers.sinks.typed_rows import TypedSink
from spark_consumers.stage_output import Write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class RowsSink(TypedSink):
    """Writes the data frame of each micro-batch. A class of your own gives `name`, `repeats` and `write`.

    repeats: False if a repeated micro-batch replaces what was written before, or changes nothing. True if its
    rows may be there twice, and readers recognise them by window, key and revision. Every class says which.

    `evenflow verify` and `evenflow results` work once the class has `position` and `read_back`, too.
    """

    @abstractmethod
    def write(self, rows: DataFrame, batch: int, settings: Settings) -> None:
        """Write the rows of a micro-batch. They count when this returns.

        rows: columns of `readable_schema`, the bounds of windows as timestamps. batch: number of the
        micro-batch, which Spark calls its epoch. It grows by one. A micro-batch that was cut off comes again
        with the same number and equal rows, in any order. settings: of the query, or of the view whose rows
        these are.
        """

    def check(self, settings: Settings) -> None:
        """Raise ConfigError if the class does not say what becomes of repeated rows."""
        super().check(settings)
        own = type(self).__mro__[: type(self).__mro__.index(RowsSink)]
        if not any("repeats" in vars(kind) for kind in own):
            raise ConfigError(
                f"the sink {self.name} does not say what becomes of the rows of a repeated micro-batch",
                hint=(
                    "set `repeats = False` in its class if they replace the rows before them or change"
                    " nothing, `repeats = True` if they may be there twice"
                ),
            )

    def place(self, settings: Settings) -> str:
        """The sink's name with `results.path`, or without one with the query's name."""
        return f"{self.name} {settings.results.path or settings.query.name}"

    def admit(self, settings: Settings, contents: StartFacts) -> None:
        """Refuse to start over where this query has begun to write."""
        if contents.planned is not None or contents.begun is None:
            return
        raise IncompatibleStateError(
            f"query {settings.query.name} has begun to write its results to {self.place(settings)}, but its"
            f" checkpoint is not there (it was {contents.begun}): a start from the beginning would write what"
            " is left of the input once more",
            hint=(
                f"restore the checkpoint or set spark.checkpoint to where it is; {IF_LOST}; to begin anew"
                " give the query a new name (docs/operations/refusals.md)"
            ),
        )

    def writer(self, settings: Settings, start: Start) -> Write:
        return partial(self._write, settings)

    def _write(self, settings: Settings, rows: DataFrame, batch: int) -> None:
        self.write(with_times(rows), batch, settings)

    def check_reading(self, settings: Settings) -> None:
        """Raise ConfigError if the class does not read its rows back."""
        if type(self).read_back is RowsSink.read_back or type(self).position is RowsSink.position:
            raise ConfigError(
                f"the sink {self.name} does not read results back, so there is nothing to verify or to show",
                hint=(
                    "give its class `position` and `read_back` (docs/your-own-sinks.md),"
                    " or read the rows where they are"
                ),
            )

    def position(self, settings: Settings) -> Position:
        self.check_reading(settings)
        raise NotImplementedError

    def read_back(
        self, settings: Settings, *, after: Position | None = None, until: Position | None = None
    ) -> pa.Table | pa.RecordBatchReader:
        self.check_reading(settings)
        raise NotImplementedError
