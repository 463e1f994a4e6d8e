"""The sinks by name.

A new sink of evenflow is one file here and a line in `BUILT_IN_SINKS`
(evenflow/settings/sections/result_sinks.py). Any other name is a sink of the user's own: an entry point of
the group `evenflow.sinks`, or `module:SINK`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from evenflow import plugins
from evenflow.settings import BUILT_IN_SINKS, Settings
from spark_consumers.sinks.base import ResultSink

SINKS: dict[str, ResultSink] = {
    name: import_module(f"spark_consumers.sinks.{name}").SINK for name in BUILT_IN_SINKS
}


def catalogue() -> list[plugins.Entry[ResultSink]]:
    """All sinks by name, and behind evenflow's those that installed packages offer."""
    return plugins.SINKS.entries(SINKS, sink_named, lambda sink: plugins.summary_of(type(sink)))


def sink_of(settings: Settings) -> ResultSink:
    """The sink of these settings.
    Raises ConfigError if there is none, or for settings with which it cannot work.
    """
    sink = sink_named(settings.results.sink)
    sink.check(settings)
    return sink


def sink_named(name: str) -> ResultSink:
    """The sink that `results.sink` chooses by this name.
    Raises ConfigError if there is none, or if it is no sink.
    """
    return SINKS[name] if name in SINKS else _own(name)


@cache
def _own(name: str) -> ResultSink:
    sink = plugins.own_sink(name, built_in=SINKS)
    assert isinstance(sink, ResultSink)  # `own_sink` has told it by the name of its base
    return sink
