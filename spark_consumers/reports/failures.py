"""What stopped a streaming query, in words for a person.

The cause is an error of evenflow's that Spark's report quotes, a lack of the machine or a store, or Spark's
own report.
"""

from __future__ import annotations

import re
import tempfile

import evenflow.errors
from evenflow.errors import DataLossError, EvenflowError, ServiceError
from spark_consumers.checkpoints.storage import storage_error

_PLAN = "\n=== Streaming Query ==="
"""From here on Spark's report shows the query's plan."""
_MOST = 2_000  # characters of Spark's report that an error shows
# A class of evenflow.errors in a traceback, with its message:
# lines up to an empty one or a frame of Java's ("at ...").
_OURS = re.compile(r"evenflow\.[\w.]+\.(\w+): ((?:.|\n)*?)(?=\n\s*(?:at |\n|$))")
_LOST = re.compile(r"(KAFKA_DATA_LOSS[^\n]*|Some data may have been lost[^\n]*)")
_NO_CONNECTION = "Python worker failed to connect back"
_NO_LIBRARY = "failed to map segment from shared object"


def translated(stage: str, report: str, *, trace: str = "", folder: str = "") -> EvenflowError:
    """The error of a Python worker, else what Java says of the machine or a store, else Spark's report.

    stage: name of the stage, for the message. report: what Spark says of the query. trace: Java's stack trace
    with all causes. folder: of the checkpoints.
    """
    reason = _of_ours(report) or _lost(report)
    if reason is not None:
        return type(reason)(f"{stage} stopped: {reason.message}", hint=reason.hint)
    who = f"{stage} stopped"
    plain = ServiceError(f"{who}: {report.partition(_PLAN)[0].strip()[:_MOST]}")
    return storage_error(who, trace, folder) or _no_library(who, trace) or _no_python(who, report) or plain


def python_too_slow(report: str) -> bool:
    """Whether a Python process of Spark's driver did not start within the 10 s that Spark waits for it.

    The driver starts one for each reducer, before its first micro-batch. Spark has no setting for the 10 s.
    """
    return _NO_CONNECTION in report


def _of_ours(report: str) -> EvenflowError | None:
    for name, message in _OURS.findall(report):
        # The name comes out of a text, so it may be anything that the module holds.
        kind = getattr(evenflow.errors, name, EvenflowError)
        if isinstance(kind, type) and issubclass(kind, EvenflowError):
            body, _, hint = message.partition("\n  -> ")
            return kind(body.strip(), hint=hint.strip() or None)
    return None


def _lost(report: str) -> EvenflowError | None:
    match = _LOST.search(report)
    return DataLossError(match[1], hint="rebuild the query (docs/operations/data-loss.md)") if match else None


def _no_library(who: str, trace: str) -> EvenflowError | None:
    if _NO_LIBRARY not in trace:
        return None
    place = tempfile.gettempdir()
    return ServiceError(
        f"{who}: Java may load no library from {place}, which is mounted noexec",
        hint=f"mount it with exec (Docker: --tmpfs {place}:exec)",
    )


def _no_python(who: str, report: str) -> EvenflowError | None:
    if not python_too_slow(report):
        return None
    return ServiceError(
        f"{who}: a Python process did not start within the 10 s that Spark waits for it",
        hint=(
            "the machine is too busy or too slow: give the application more CPU. If it is not, see what the"
            " process printed. Nothing is lost: started again, the application goes on exactly where it was"
        ),
    )
