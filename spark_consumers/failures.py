"""What stopped a streaming query, in words for a person: our own error out of Spark's report, or what a machine lacks."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import evenflow.errors
from evenflow.errors import DataLossError, EvenflowError, ServiceError

_PLAN = "\n=== Streaming Query ==="
"""From here on Spark's report shows the query's plan."""
_MOST = 2_000
_OURS = re.compile(r"evenflow\.[\w.]+\.(\w+): ((?:.|\n)*?)(?=\n\s*(?:at |\n|$))")
_LOST = re.compile(r"(KAFKA_DATA_LOSS[^\n]*|Some data may have been lost[^\n]*)")
_FULL = "No space left on device"
_NO_LIBRARY = "failed to map segment from shared object"


def translated(stage: str, report: str, *, trace: str = "", places: Sequence[Path] = ()) -> EvenflowError:
    """The error that a Python worker raised, or what Java says is missing on the machine; Spark's report otherwise.

    report: what Spark says of the query. trace: Java's, with all causes. places: folders that the query writes to.
    """
    reason = _of_ours(report) or _lost(report) or _of_the_machine(trace, places)
    if reason is None:
        return ServiceError(f"{stage} stopped: {report.partition(_PLAN)[0].strip()[:_MOST]}")
    return type(reason)(f"{stage} stopped: {reason.message}", hint=reason.hint)


def _of_ours(report: str) -> EvenflowError | None:
    for name, message in _OURS.findall(report):
        kind = getattr(evenflow.errors, name, EvenflowError)
        if isinstance(kind, type) and issubclass(kind, EvenflowError):
            body, _, hint = message.partition("\n  -> ")
            return kind(body.strip(), hint=hint.strip() or None)
    return None


def _lost(report: str) -> EvenflowError | None:
    found = _LOST.search(report)
    return DataLossError(found[1], hint="rebuild the query (docs/operations.md)") if found else None


def _of_the_machine(trace: str, places: Sequence[Path]) -> EvenflowError | None:
    if _FULL in trace:
        return ServiceError(
            f"a disk is full ({', '.join(_room(place) for place in places)})",
            hint="make room and start it again: it goes on from its checkpoint",
        )
    if _NO_LIBRARY in trace:
        return ServiceError(
            f"Java may load no library from {tempfile.gettempdir()}, which is mounted noexec",
            hint=f"mount it with exec (Docker: --tmpfs {tempfile.gettempdir()}:exec)",
        )
    return None


def _room(place: Path) -> str:
    return f"{place}: {shutil.disk_usage(place).free / 1e6:,.0f} MB left"
