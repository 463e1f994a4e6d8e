"""What each of evenflow's result sinks asks of the settings, so that these are judged where no sink can be imported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class SinkForm:
    """What a sink asks of `[results]`."""

    path: Literal["folder", "server"] | None = None
    """What `results.path` names, which the sink needs: a folder, or a table on a server. None: it needs no path."""
    registry: bool = False
    """Whether it takes a schema registry."""


BUILT_IN_SINKS = {
    "kafka": SinkForm(),
    "frames": SinkForm(),
    "parquet": SinkForm(path="folder"),
    "delta": SinkForm(path="folder"),
    "postgres": SinkForm(path="server"),
    "avro": SinkForm(registry=True),
}
"""The result sinks that evenflow brings: the files of `spark_consumers/sinks` that export a `SINK`."""
