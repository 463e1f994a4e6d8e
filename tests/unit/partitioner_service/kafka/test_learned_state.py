"""The configured partitioner as the service makes it: the query's window, and nothing that needs batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evenflow.errors import ConfigError
from evenflow.settings import Settings
from partitioner_service.kafka.learned_state import LearnedState, fitted_options, new_partitioner
from partitioner_service.kafka.side_records import StoredSnapshot


def settings(partitioner: dict[str, Any], **query: Any) -> Settings:
    return Settings(query={"name": "q", **query}, partitioner=partitioner)


def test_a_rule_that_knows_of_windows_gets_the_query_s_window() -> None:
    assert fitted_options(settings({"name": "pkg"}, window="60s", slide="1s")) == {
        "window": "sliding", "window_ms": 60_000, "slide_ms": 1_000,
    }  # fmt: skip
    assert fitted_options(settings({"name": "hashing"}, window="60s", slide="1s")) == {}


def test_options_that_are_given_stay_as_they_are() -> None:
    given = {"window": "cumulative", "d": 3}
    assert fitted_options(settings({"name": "pkg", "options": given}, window="60s", slide="1s")) == given


@pytest.mark.parametrize(
    ("window", "slide", "expected"),
    [("24h", "1s", 90_000), ("1009s", "1s", 1_000), ("1031s", "1s", 1_031_000)],
)
def test_of_very_many_slides_the_partitioner_sees_fewer_that_still_divide_the_window(
    window: str, slide: str, expected: int
) -> None:
    result = fitted_options(settings({"name": "d-choices"}, window=window, slide=slide))
    assert result["slide_ms"] == expected
    assert result["window_ms"] % expected == 0


def test_a_partitioner_that_cuts_intervals_gets_the_length_of_a_batch_unless_it_has_one() -> None:
    assert (
        new_partitioner(settings({"name": "time-based"})).options.interval_ms == settings({}).query.slide_ms
    )
    short = {"name": "time-based", "batch_interval": 20, "batch_clock": "processing"}
    assert new_partitioner(settings(short)).options.interval_ms == 20
    assert new_partitioner(settings({**short, "options": {"interval_ms": 7}})).options.interval_ms == 7


@pytest.mark.parametrize(
    ("instance", "instances", "source"),
    [("0", 1, 0), ("3", 2, 1), ("partitioner-3", 4, 3), ("east", 1, 0), ("east", 4, 2), ("west", 4, 2)],
)
def test_each_instance_is_one_of_the_sources(instance: str, instances: int, source: int) -> None:
    made = new_partitioner(settings({"name": "shuffle", "instance": instance, "instances": instances}))
    assert (made.source, made.sources) == (source, instances)


def test_an_unknown_option_is_refused_before_anything_starts() -> None:
    with pytest.raises(ConfigError, match="unknown option 'thetta' of d-choices"):
        new_partitioner(settings({"name": "d-choices", "options": {"thetta": 1}}))


@pytest.mark.parametrize(("name", "learns"), [("hashing", False), ("pkg", True), ("evenflow", True)])
def test_only_a_partitioner_with_state_of_its_own_learns(name: str, learns: bool) -> None:
    assert new_partitioner(settings({"name": name})).learns is learns


class OneSnapshot:
    """The records of an instance whose last run left this snapshot."""

    def __init__(self, snapshot: bytes) -> None:
        self.saved = StoredSnapshot(snapshot, epoch=3, own=True)

    def snapshot(self) -> StoredSnapshot:
        return self.saved


def test_a_snapshot_of_another_version_is_named_and_the_instance_begins_with_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    query = settings({"name": "pkg"})
    partitioner = new_partitioner(query)
    partitioner.assign(np.arange(100, dtype=np.uint64), np.zeros(100, np.int64))
    monkeypatch.setattr("evenflow.partitioners.base.VERSION", 99)
    newer = partitioner.snapshot()
    monkeypatch.undo()
    begun, epoch = LearnedState(query, OneSnapshot(newer)).restored()  # type: ignore[arg-type]  # it reads no more of it
    assert (begun.observe().tuples, epoch) == (0, 0)
    assert "learned state is not usable, starting without" in caplog.text
    assert "format 99; this evenflow reads format 1" in caplog.text
    restored, epoch = LearnedState(query, OneSnapshot(partitioner.snapshot())).restored()  # type: ignore[arg-type]
    assert (restored.observe().tuples, epoch) == (100, 3)
