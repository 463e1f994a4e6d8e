"""The first offsets were committed together: what is left of them afterwards is nothing, all, or a loss."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from evenflow.errors import IncompatibleStateError
from evenflow.progress import PartitionState
from evenflow.settings import Query, Settings
from partitioner_service.begin import claim
from partitioner_service.kafka.watchdog import Watchdog
from topics.state import TopicState

SETTINGS = Settings(query={"name": "q"}, input={"partitions": 2})


class Began(Exception):
    """The first offsets would have been committed."""


def attempt(
    monkeypatch: pytest.MonkeyPatch,
    *,
    known: list[int],
    ends: dict[str, int],
    begun: bool = False,
    recorded: int | None = None,
) -> None:
    """One claim on a broker with these committed partitions and ends of topics.

    begun: the query's record is there. recorded: how many input partitions it names.
    """
    topics = {
        f"q.{role}": TopicState(
            name=f"q.{role}", topic_id=role, partitions=2, begin={0: 0, 1: 0}, end={0: 0, 1: end}, config={}
        )
        for role, end in {"input": 9, "routed": 0, "rejected": 0, **ends}.items()
    }

    def commit(settings: Settings, watchdog: Watchdog, producer: object, offsets: list[Any]) -> None:
        assert [(entry.partition, entry.offset) for entry in offsets] == [(0, 0), (1, 0)]
        raise Began

    monkeypatch.setattr(claim.topic_admin, "describe", lambda kafka, names: topics)
    order: list[str] = []

    def read(settings: Settings) -> Any:
        order.append("record")
        return SimpleNamespace(begin=dict.fromkeys(range(recorded or 2))) if begun else None

    def states(settings: Settings, stable: bool = False) -> Any:
        order.append("offsets")
        return {number: PartitionState(fingerprint="", topic_id="", offset=0) for number in known}

    monkeypatch.setattr(claim, "read_beginning", read)
    monkeypatch.setattr(claim, "all_states", states)
    monkeypatch.setattr(claim, "recorded_partitions", lambda settings: recorded)
    monkeypatch.setattr(claim, "lock", lambda settings, watchdog: None)
    monkeypatch.setattr(claim, "commit_first", commit)
    try:
        claim.claim(SETTINGS, Watchdog(), pause=lambda seconds: None)
    finally:
        # The first look is outside of the lock and decides nothing.
        assert order in (["offsets"], ["offsets", "record", "offsets"])


def test_a_query_of_which_nothing_is_known_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Began):
        attempt(monkeypatch, known=[], ends={})


def test_a_query_that_has_begun_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    attempt(monkeypatch, known=[0, 1], ends={"routed": 5})


@pytest.mark.parametrize(("seconds", "refused"), [("10s", True), ("20s", False), ("30s", False)])
def test_a_start_with_a_smaller_out_of_orderness_than_a_partition_has_is_refused_in_words(
    monkeypatch: pytest.MonkeyPatch, seconds: str, refused: bool
) -> None:
    query = Query(name="q", out_of_orderness=seconds).with_first_limits({"out_of_orderness": 0})
    settings = SETTINGS.model_copy(update={"query": query})
    fresh = PartitionState(fingerprint="", topic_id="", offset=9)
    states = {0: fresh, 1: replace(fresh, disorders=((4, 20_000),))}
    monkeypatch.setattr(claim, "all_states", lambda settings: states)
    if not refused:
        claim.claim(settings, Watchdog())
        return
    with pytest.raises(IncompatibleStateError, match="it may only grow") as error:
        claim.claim(settings, Watchdog())
    assert "query.out_of_orderness is 10s, but input partition 1 is judged by up to 20s" in str(error.value)


def test_a_partition_that_was_added_since_the_query_began_is_left_to_the_data_plane(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attempt(monkeypatch, known=[0], ends={"routed": 5}, begun=True, recorded=1)
    with pytest.raises(IncompatibleStateError, match=r"input partitions \[0\]"):
        attempt(monkeypatch, known=[1], ends={"routed": 5}, begun=True, recorded=1)


@pytest.mark.parametrize(
    ("known", "ends", "said"),
    [
        ([], {"routed": 5}, r"q\.routed holds .* input partitions \[0, 1\]"),
        ([], {"rejected": 5}, r"q\.rejected holds .* input partitions \[0, 1\]"),
        ([], {"routed": 5, "rejected": 5}, r"q\.routed and q\.rejected hold "),
        ([0], {"routed": 5}, r"q\.routed holds .* input partitions \[1\]"),
        ([0], {}, r"the query has begun, but .* input partitions \[1\]"),
    ],
)
def test_offsets_that_are_gone_are_refused_with_the_partitions_that_lack_them(
    monkeypatch: pytest.MonkeyPatch, known: list[int], ends: dict[str, int], said: str
) -> None:
    with pytest.raises(IncompatibleStateError, match=said):
        attempt(monkeypatch, known=known, ends=ends)


def test_a_query_whose_record_says_that_it_has_begun_does_not_begin_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing was routed or rejected, so nothing else says so."""
    with pytest.raises(
        IncompatibleStateError, match=r"the query has begun, but .* input partitions \[0, 1\]"
    ) as error:
        attempt(monkeypatch, known=[], ends={}, begun=True)
    assert "--from-routed" in (error.value.hint or "")
    assert "evenflow reset" in (error.value.hint or "")
