"""What a start finds, and the starts that every sink must refuse which knows whose results it holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from evenflow.errors import DataLossError, IncompatibleStateError, ServiceError
from evenflow.settings import Settings
from spark_consumers.sinks.base import ResultSink, StartFacts


def found(**fields: Any) -> StartFacts:
    """A start that finds nothing, but for these fields."""
    nothing: dict[str, Any] = {
        "names": lambda place: [],
        "written": lambda topic: 0,
        "planned": None,
        "begun": None,
        "text": lambda file: None,
        "run": None,
    }
    return StartFacts(**nothing | fields)


def texts(table: pa.Table) -> list[str]:
    """The rows of a table, to be compared in any order."""
    return sorted(map(repr, table.to_pylist()))


def refuses_to_lose_or_mix_results(
    sink: ResultSink, settings: Settings, write: Callable[[], None], *, gone: str, missing: str
) -> None:
    """Starts at a place without results, and at one with the micro-batches 0 and 1 of the checkpoint "ours".

    write: writes these. gone, missing: what is said where the checkpoint's results are not there, and where a
    reader finds none.
    """
    sink.admit(settings, found())
    with pytest.raises(DataLossError, match=gone):
        sink.admit(settings, found(planned=3, run="ours"))
    with pytest.raises(ServiceError, match=missing):
        sink.read_back(settings)
    write()
    sink.admit(settings, found(planned=1, run="ours"))
    with pytest.raises(IncompatibleStateError, match=r"micro-batches up to 1, .* begun only those up to 0"):
        sink.admit(settings, found(planned=0, run="ours"))
    with pytest.raises(IncompatibleStateError, match=r"micro-batches up to 1, .* begun none yet"):
        sink.admit(settings, found(run="ours"))
    with pytest.raises(IncompatibleStateError, match="the results of this query with another checkpoint"):
        sink.admit(settings, found(run="theirs", planned=1))
    other = settings.model_copy(update={"query": settings.query.model_copy(update={"name": "other"})})
    with pytest.raises(IncompatibleStateError, match=r"the results of query q \("):
        sink.admit(other, found())
