"""What each of evenflow's result sinks asks of the settings, and how its rows lie.

So settings are judged, and rows are read, where no sink can be imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

RowForm: TypeAlias = Literal["json", "avro", "frames", "parquet", "delta"]
"""How rows lie: as JSON, Avro or Arrow records of a topic, as Parquet files of a folder, or as a Delta
table.
"""


@dataclass(frozen=True, kw_only=True)
class ReadElsewhere:
    """Says that `evenflow.spark.results` does not read the rows of a sink."""

    reason: str
    """Why not. Follows the name of the sink in the error."""
    hint: str
    """What reads them."""


@dataclass(frozen=True, kw_only=True)
class SinkForm:
    """What a sink asks of `[results]`, and how its rows lie."""

    rows: RowForm | ReadElsewhere
    """How `evenflow.spark.results` reads the rows: its `_READERS` has a reader for each `RowForm`."""
    path: Literal["folder", "server"] | None = None
    """What `results.path` names, which the sink needs: a folder, or a table on a server.
    None: it needs no path.
    """
    suffixes: tuple[str, ...] = ()
    """How the names of the files end that it writes to its folder.
    `evenflow reset` deletes no folder with others.
    """
    registry: bool = False
    """Whether it takes a schema registry."""
    dated: bool = False
    """Whether it holds dates of the years 1 to 9999 alone. Then event times are of the years 100 to 9899."""


BUILT_IN_SINKS = {
    "kafka": SinkForm(rows="json"),
    "frames": SinkForm(rows="frames"),
    "parquet": SinkForm(rows="parquet", path="folder", suffixes=(".parquet",)),
    "delta": SinkForm(rows="delta", path="folder", suffixes=(".parquet",)),
    "postgres": SinkForm(
        rows=ReadElsewhere(
            reason="Spark reads tables of Postgres by its own source",
            hint=(
                'spark.read.format("jdbc"), with the jar of Postgres\'s driver. Rows are there once'
                " (docs/results.md)"
            ),
        ),
        path="server",
        dated=True,
    ),
    "avro": SinkForm(rows="avro", registry=True),
}
"""The result sinks that evenflow brings: the files of `spark_consumers/sinks` that export a `SINK`."""
