"""Notices within seconds that the results were removed while the application runs.

The next micro-batch would notice it as well. But without input there is none, and one without rows touches no
table. Topics of results are not this module's business: `topics/watch.py` watches all topics of the query.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future

from evenflow.errors import DataLossError, EvenflowError
from evenflow.settings import Settings
from spark_consumers.poller import Question, ask_in_thread
from spark_consumers.sinks import sink_of

_LOG = logging.getLogger("evenflow.spark")
_EVERY = 8.0  # s: with the way to the live page it stays below 15


class ResultsWatch:
    """Asks the sink of a query every few seconds for a loss, from the first look on. The sink has begun to
    write by then.

    A loss counts only once the sink has missed nothing: a folder that Spark writes may be another one than
    this process sees under the same path. clock: s. ask: calls a function, and returns its answer to come.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.monotonic,
        ask: Callable[[Callable[[], str | None]], Future[str | None]] = ask_in_thread,
    ) -> None:
        self._settings = settings
        self._sink = sink_of(settings)
        self._question = Question(
            lambda: ask(lambda: self._sink.loss(settings)), every=_EVERY, first=0.0, clock=clock
        )
        self._results_seen = False
        self._trouble: str | None = None

    def look(self) -> None:
        """Look at the answer if it has come, or ask if it is time. This never waits.

        Raises the DataLossError that the next micro-batch would raise. A place that does not answer is no
        loss: the log says so, once.
        """
        answer = self._question.answer()
        if answer is None:
            return
        try:
            loss = answer.result()
        except DataLossError as error:  # the place was removed while it was looked at
            loss = error.message
        except EvenflowError as error:
            self._warn(f"whether the results are there is not known: {error.message}")
            return
        except Exception as error:  # a sink of somebody's own
            self._warn(f"whether the results are there is not known: {type(error).__name__}: {error}")
            return
        if loss is None:
            self._results_seen = True
            self._trouble = None
        elif self._results_seen:
            raise self._sink.loss_error(self._settings, loss)
        else:
            self._warn(
                f"the results are not seen from here, so a loss is noticed only by a micro-batch: {loss}"
            )

    def _warn(self, trouble: str) -> None:
        if self._trouble is None:
            _LOG.warning("%s", trouble)
        self._trouble = trouble
