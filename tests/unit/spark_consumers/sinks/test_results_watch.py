"""Results that are removed end a running application within seconds, without a record that it would have
to read.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from evenflow.errors import DataLossError, EvenflowError
from evenflow.settings import Settings
from spark_consumers.checkpoints.result_files import MARKER, Owner, ResultFiles
from spark_consumers.reports.results_watch import ResultsWatch
from spark_consumers.sinks import SINKS
from spark_consumers.sinks.checking import settings_for
from tests.unit.reporting.clock import Clock
from tests.unit.spark_consumers.sinks import test_delta
from workbench.local.ports import free_ports

Micro = Callable[[], None]
"""A micro-batch that writes rows."""


class Watched:
    """A watch whose clock and whose thread are told when to go on."""

    def __init__(self, settings: Settings) -> None:
        self.clock = Clock()
        self.asked: list[tuple[Callable[[], str | None], Future[str | None]]] = []
        self.watch = ResultsWatch(settings, clock=self.clock, ask=self._ask)

    def _ask(self, loss: Callable[[], str | None]) -> Future[str | None]:
        self.asked.append((loss, Future()))
        return self.asked[-1][1]

    def after(self, seconds: float) -> None:
        """Time passes, and the question that is due is answered."""
        self.clock.now += seconds
        before = len(self.asked)
        self.watch.look()
        if len(self.asked) == before:
            return
        loss, answer = self.asked[-1]
        self.watch.look()  # nobody waits for the answer
        try:
            answer.set_result(loss())
        except EvenflowError as error:
            answer.set_exception(error)
        self.watch.look()


def parquet(folder: Path) -> tuple[Settings, Micro]:
    place = folder / "table"
    place.mkdir(exist_ok=True)
    (place / MARKER).write_text("{}")

    class Local:
        location = str(place)

        def exists(self, name: str) -> bool:
            return Path(self.location, name).exists()

    local: Any = Local()
    files = ResultFiles(local, Owner(query="q", fingerprint="f", run="r"), epoch=1)
    nothing: Any = None
    return settings_for(SINKS["parquet"], path=str(place)), partial(files.write, nothing, 1)  # type: ignore[return-value]


def delta(folder: Path) -> tuple[Settings, Micro]:
    settings = test_delta.begun(folder)
    return settings, partial(test_delta.write, settings, 1)


@pytest.mark.parametrize("sink", [parquet, delta])
def test_a_place_that_was_removed_ends_the_application_with_the_words_of_the_next_micro_batch(
    tmp_path: Path, sink: Callable[[Path], tuple[Settings, Micro]]
) -> None:
    settings, micro_batch = sink(tmp_path)
    watched = Watched(settings)
    for _ in range(40):
        watched.after(1)
    assert 4 <= len(watched.asked) <= 6, "not at every turn of the application's loop"
    shutil.rmtree(tmp_path / "table")
    with pytest.raises(DataLossError) as caught:
        watched.after(10)
    with pytest.raises(DataLossError) as next_one:
        micro_batch()
    assert str(caught.value) == str(next_one.value)


def test_a_server_that_is_away_ends_nothing_and_is_in_the_log_once(caplog: pytest.LogCaptureFixture) -> None:
    (nobody,) = free_ports(1)
    watched = Watched(settings_for(SINKS["postgres"], path=f"postgresql://127.0.0.1:{nobody}/db/rows"))
    for _ in range(3):
        watched.after(10)
    assert len(watched.asked) == 3
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("whether the results are there is not known: Postgres refuses the table")


def test_a_place_that_was_never_seen_from_here_is_not_missed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As where Spark takes the path for one of HDFS."""
    settings = settings_for(SINKS["parquet"], path=str(tmp_path / "elsewhere"))
    watched = Watched(settings)
    for _ in range(3):
        watched.after(10)
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("the results are not seen from here")
