"""The sinks by name.

A new sink is one file here and its name in `ResultSinkName` (evenflow/settings/model.py).
"""

from __future__ import annotations

from importlib import import_module
from typing import get_args

from evenflow.settings import ResultSinkName, Settings
from spark_consumers.sinks.base import ResultSink

SINKS: dict[str, ResultSink] = {
    name: import_module(f"spark_consumers.sinks.{name}").SINK for name in get_args(ResultSinkName)
}


def sink_of(settings: Settings) -> ResultSink:
    """The sink of these settings. Raises ConfigError for settings with which the sink cannot work."""
    sink = SINKS[settings.results.sink]
    sink.check(settings)
    return sink
