"""The first records of a query, judged before anything is committed."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Self

import pytest
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, TIMESTAMP_NOT_AVAILABLE
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evenflow.errors import ConfigError
from evenflow.partitioners import create
from evenflow.progress import PartitionState
from evenflow.settings import Settings, load_settings
from evenflow.settings.sections.input import InputSettings
from partitioner_service.begin import trial
from partitioner_service.begin.trial import refuse_mostly_rejected, tried
from partitioner_service.block import Slice
from partitioner_service.fetch import bounded_records
from partitioner_service.reading.registered.sample_schemas import MOST_SCHEMAS
from partitioner_service.reading.registered.schemas import Schemas
from partitioner_service.routing.ahead import LiveClock
from partitioner_service.routing.router import Router
from tests.examples import examples
from tests.unit.partitioner_service import small_kafka as kafka
from tests.unit.partitioner_service.reading.registered_records import Kept, avro, make, prefix, record_of
from tests.unit.topics.test_bombs import built
from topics.batches.raw_batches import RawFetch, batches_of
from topics.state import TopicState

NOW, HOUR = 1_780_000_000_000, 3_600_000


class Record(kafka.Record):
    """A record with the timestamp of its append. None: without one."""

    stamp: int | None = None

    def timestamp(self) -> tuple[int, int]:
        return (
            (TIMESTAMP_NOT_AVAILABLE, -1) if self.stamp is None else (TIMESTAMP_LOG_APPEND_TIME, self.stamp)
        )


LONG = b'{"k":"%s","t":1}' % (b"k" * 2_000_000)


def settings(**query: Any) -> Settings:
    return load_settings(query={"key": "k", "time": "t", "window": "10s"} | query, input={"partitions": 2})


def records(times: list[Any], *, partition: int = 0) -> list[Record]:
    values = [
        time if isinstance(time, bytes) else json.dumps({"k": "a", "t": time}).encode() for time in times
    ]
    return [Record((partition, offset), (value, [])) for offset, value in enumerate(values)]


@pytest.mark.parametrize(
    ("times", "query", "reasons", "example"),
    [
        ([NOW, NOW + 1, NOW + 2], {}, {}, None),
        (
            [NOW, b"{", b"}", None],
            {},
            {"unreadable": 3},
            "offset 1 of partition 0: the record is not valid JSON",
        ),
        (
            [NOW, NOW - HOUR, NOW],
            {},
            {"late": 1},
            "offset 1 of partition 0, event time 2026-05-28 19:26:40 UTC: {",
        ),
        ([NOW, NOW - HOUR, NOW], {"out_of_orderness": "2h"}, {}, None),
        ([NOW, LONG, b"{"], {}, {"too-large": 1, "unreadable": 1}, "offset "),
        (
            [NOW, NOW + 2 * HOUR],
            {},
            {"ahead": 1},
            "offset 1 of partition 0, event time 2026-05-28 22:26:40 UTC: {",
        ),
        ([NOW, NOW + 2 * HOUR], {"max_ahead_of_clock": "off"}, {}, None),
        (
            [NOW, NOW + 1],
            {"time_unit": "s"},
            {"ahead": 2},
            "offset 0 of partition 0, event time the year 58,",
        ),
        ([NOW, NOW, NOW, NOW + HOUR], {"max_jump": "1m"}, {"jump": 3}, "offset 0 of partition 0"),
    ],
)
def test_first_records_are_rejected_as_the_service_would(
    times: list[Any], query: dict[str, Any], reasons: dict[str, int], example: str | None
) -> None:
    result = tried(settings(**query), {0: records(times), 1: []}, wall=lambda: NOW / 1000)
    assert (result.records, dict(result.by_reason)) == (len(times), reasons)
    assert set(result.examples) == set(reasons)
    assert all(shown.startswith(example or "none") for shown in result.examples.values())


@examples(60)
@given(
    times=st.lists(
        st.one_of(
            st.integers(NOW - HOUR, NOW + 3 * HOUR), st.integers(-(2**40), 2**60), st.just(b"{"), st.none()
        ),
        min_size=1,
        max_size=40,
    ),
    query=st.sampled_from(
        [{}, {"max_jump": "10m"}, {"out_of_orderness": "30m"}, {"max_ahead_of_clock": "off"}]
    ),
)
def test_a_trial_rejects_what_the_router_rejects(times: list[Any], query: dict[str, Any]) -> None:
    of = settings(**query)
    first = records(times)
    router = Router(of, create("hashing", workers=2), clock=LiveClock(of, wall=lambda: NOW / 1000))
    state = PartitionState(fingerprint=of.fingerprint, topic_id="t", offset=0)
    values = [record.value() for record in first]
    (piece,) = router.pieces([Slice(0, 0, len(values) - 1, values, records=first)], {0: state})
    routed = Counter[str]()
    for group in piece.rejections:
        routed[group.reason] += len(group.positions)
    assert tried(of, {0: first}, wall=lambda: NOW / 1000).by_reason == routed


def test_partitions_are_judged_apart_and_counted_together() -> None:
    first = {0: records([NOW, NOW - HOUR]), 1: records([NOW - 9 * HOUR, NOW - 8 * HOUR, b"{"], partition=1)}
    result = tried(settings(), first, wall=lambda: NOW / 1000)
    assert (result.records, dict(result.by_reason)) == (5, {"late": 1, "unreadable": 1})


def test_the_registry_is_asked_for_the_commonest_schemas_and_records_of_others_are_not_judged() -> None:
    order = record_of(("k", "string"), ("t", "long"))
    registry = Kept("avro", json.dumps(order))
    strangers = [prefix(number) for number in range(1_000, 9_000)]
    values = [avro(order, {"k": "a", "t": NOW}), avro(order, {"k": "b", "t": NOW - HOUR}), b"x", *strangers]
    first = [Record((0, offset), (value, [])) for offset, value in enumerate(values)]
    schemas = Schemas(registry, hands_out_any=lambda: True)
    result = tried(make("avro"), {0: first}, schemas=schemas, wall=lambda: NOW / 1000)
    assert len(registry.asked) == MOST_SCHEMAS
    assert result.records == 2 + 1 + MOST_SCHEMAS - 1
    assert result.by_reason == {"late": 1, "unreadable": 1 + MOST_SCHEMAS - 1}


def test_the_limit_is_a_share_and_no_part_of_the_identity_of_a_query() -> None:
    assert InputSettings().reject_limit == 0.5
    for wrong in (-0.1, 1.1):
        with pytest.raises(ValidationError):
            InputSettings(reject_limit=wrong)
    one, other = (
        load_settings(input={"partitions": 2, "topic": "t", "reject_limit": limit}) for limit in (0.5, 1.0)
    )
    assert one.fingerprint == other.fingerprint
    assert one.changes_since(other.identity()) == []


def test_the_newest_records_before_the_start_are_judged_where_hardly_any_lie_behind_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = records([NOW] * 8_000 + [b"{"] * 12_000)

    class Raw:
        """A topic whose record at `bomb` nobody can read."""

        bomb: int | None = None

        def __init__(self, *_: Any, **__: Any) -> None: ...

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None: ...

        def close(self) -> None: ...

        def fetch(self, partition: int, offset: int, *, most: int) -> RawFetch | None:
            assert (partition, offset >= 0) == (0, True)
            step = min(1_000, self.bomb - offset) if self.bomb is not None and offset <= self.bomb else 1_000
            values = [one.value() for one in log[offset : offset + step]] or [bytes(200_000_000)]
            return RawFetch(list(batches_of(built(1, values, first=offset))), (), len(log), len(log))

    def judge(start: str, records: int) -> None:
        monkeypatch.setattr(trial, "describe", lambda kafka, names: {"in": state(records)})
        refuse_mostly_rejected(
            load_settings(
                query={"key": "k", "time": "t", "window": "10s"},
                input={"partitions": 2, "topic": "in", "start": start},
            )
        )

    def state(records: int) -> TopicState:
        ends = {0: records, 1: 7}
        return TopicState(name="in", topic_id="t", partitions=2, begin={0: 0, 1: 7}, end=ends, config={})

    monkeypatch.setattr(trial, "all_states", lambda settings: {})
    monkeypatch.setattr(trial, "read_beginning", lambda settings: None)
    monkeypatch.setattr(bounded_records, "RawReader", Raw)
    judge("earliest", len(log))
    judge("latest", 8_000)
    judge("latest", 0)
    with pytest.raises(ConfigError) as caught:
        judge("latest", len(log))
    assert caught.value.message.startswith(
        "10,000 of the newest 10,000 records of topic in (hardly any lie behind input.start = latest) would"
        " be rejected (100 %: "
    )
    monkeypatch.setattr(trial, "first_offsets", lambda kafka, topic, start: {0: 7_000, 1: 7})
    judge("2026-05-28", 8_000)  # a thousand behind the start are judged alone
    with pytest.raises(ConfigError, match=r"9,000 of the first 10,000 records of topic in would be rejected"):
        judge("2026-05-28", len(log))
    Raw.bomb = 7_090
    judge("2026-05-28", len(log))  # what stands before it is too little to judge by
    Raw.bomb = 16_990
    with pytest.raises(ConfigError, match=r"8,990 of the first 9,990 records of topic in would be rejected"):
        judge("2026-05-28", len(log))
