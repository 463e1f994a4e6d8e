import logging
from itertools import pairwise

import pytest

from controller.collect import MOST_INSTANCES, Collector
from evenflow.telemetry import DecisionRecord
from tests.hostile import BYTES
from tests.unit.controller.parts import batch, heartbeat, partitioner, settings_of

SETTINGS = settings_of()


def collector(times: list[float] | None = None) -> Collector:
    clock = iter(times or [])
    return Collector(SETTINGS, clock=lambda: next(clock, 7.0), wall=lambda: 1_000.0)


def test_the_newest_record_of_each_part_is_kept_with_its_arrival_on_our_own_clock() -> None:
    collected = collector([1.0, 2.0, 3.0, 4.0])
    for record in (
        partitioner(SETTINGS, instance="a", tuples=1, time=9_000),
        partitioner(SETTINGS, instance="b", tuples=2),
        batch(SETTINGS, batch=7),
        partitioner(SETTINGS, instance="a", tuples=3, time=1),  # its clock went backwards: no matter
    ):
        assert collected.take(record.encode())
    known = collected.known
    assert {name: (h.record.tuples, h.at) for name, h in known.partitioners.items()} == {
        "b": (2, 2.0),
        "a": (3, 4.0),
    }
    assert known.stages["fused"].word.at == 3.0


def test_a_heartbeat_is_the_newest_word_and_the_last_finished_micro_batch_stays_known() -> None:
    collected = collector()
    collected.take(batch(SETTINGS, batch=7, windows_closed=1, last_window_end=4_000).encode())
    collected.take(batch(SETTINGS, batch=8).encode())
    collected.take(heartbeat(SETTINGS, batch=8).encode())
    words = collected.known.stages["fused"]
    assert words.word.record.kind == "heartbeat"
    assert words.batch is not None
    assert words.batch.record.batch == 8
    assert words.closing is not None
    assert words.closing.record.batch == 7


def test_the_last_word_of_an_application_that_has_ended_is_no_sign_of_an_idle_stage() -> None:
    collected = collector([1.0, 2.0])
    assert collected.take(batch(SETTINGS, batch=7).encode())
    assert collected.take(heartbeat(SETTINGS, batch=7, ended="q.results was deleted").encode())
    word = collected.known.stages["fused"].word
    assert (word.record.kind, word.at) == ("batch", 1.0)


def test_what_was_there_before_the_controller_began_is_known_and_of_no_known_age() -> None:
    collected = collector()
    collected.take(batch(SETTINGS).encode(), fresh=False)
    assert collected.known.stages["fused"].word.at is None
    assert collected.known.stages["fused"].word.age(1e9) == float("inf")


def test_decisions_are_read_by_others() -> None:
    decision = DecisionRecord(
        query="q",
        fingerprint=SETTINGS.fingerprint,
        time=1,
        policy="x",
        step=1,
        p=1,
        r=1,
        wanted_p=1,
        wanted_r=1,
    )
    told: list[tuple[object, bool]] = []
    collected = Collector(SETTINGS, on_record=lambda record, fresh: told.append((record, fresh)))
    assert not collected.take(decision.encode(), fresh=False)
    assert not collected.ignored
    assert told == [(decision, False)]


def test_records_of_another_query_fingerprint_or_version_are_ignored_counted_and_said_once_each(
    caplog: pytest.LogCaptureFixture,
) -> None:
    other = settings_of(spark={"buckets": 3})
    collected = collector()
    strangers = [
        partitioner(SETTINGS, instance="0").model_copy(update={"query": "other"}).encode(),
        partitioner(other).encode(),
        partitioner(SETTINGS).encode().replace(b'"v":1', b'"v":2'),
        partitioner(SETTINGS).encode().replace(b'"v":1,', b""),
        b"no JSON",
        None,
    ]
    with caplog.at_level(logging.WARNING):
        for value in strangers * 2:
            assert not collected.take(value)
    assert not collected.known.partitioners
    assert collected.ignored == {"of another query": 4, "of another version": 2, "that cannot be read": 6}
    assert len(caplog.messages) == 3
    assert all("q.telemetry has records" in text for text in caplog.messages)


@pytest.mark.parametrize("value", BYTES)
def test_any_bytes_are_ignored_and_never_the_end(value: bytes) -> None:
    assert not collector().take(value)


def test_made_up_instances_take_no_memory_beyond_a_bound() -> None:
    collected = collector()
    for number in range(MOST_INSTANCES + 5):
        collected.take(partitioner(SETTINGS, instance=str(number)).encode())
    names = [int(name) for name in collected.known.partitioners]
    assert len(names) == MOST_INSTANCES
    assert all(a < b for a, b in pairwise(names))
    assert names[0] == 5
