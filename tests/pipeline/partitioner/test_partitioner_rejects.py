"""What the partitioner rejects on a real broker: every such record, unchanged, with reason and position."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from evenflow.errors import IncompatibleStateError
from evenflow.plans import Plan
from evenflow.windows import END_MARK
from evenflow.wire.markers import HEADER
from partitioner_service.begin.prepare import prepare
from partitioner_service.kafka.committed_state import all_states
from partitioner_service.plane.data_plane import DataPlane
from tests.pipeline.planes import run, start_thread, telemetry, total, wait_until
from tests.pipeline.routed import (
    create_topics,
    make_settings,
    read_routed,
    rejections,
    write,
    write_end,
)
from tests.unit.workbench.verify.pipeline_model import windows_of
from topics import admin, clients
from workbench.verify.shell import verify

pytestmark = [pytest.mark.pipeline, pytest.mark.family, pytest.mark.usefixtures("either_reading")]


def test_late_and_unreadable_records_go_to_rejected_unchanged_with_reason_and_position(
    kafka_settings, query_name
):
    settings = make_settings(kafka_settings, query_name, input={"partitions": 1})
    create_topics(settings)
    client = clients.producer(settings.kafka)
    topic = settings.topic("input")
    client.produce(topic, value=b'{"k":"a","t":5000,"v":1}')
    client.produce(
        topic,
        value=b'{"k":"a","t":3999}',
        key=b"raw",
        timestamp=1234567,
        headers=[("mine", b"x"), ("n", None)],
    )
    client.produce(topic, value=b"\xff not json")
    client.produce(topic, value=None, key=b"tombstone")
    client.produce(topic, value=b'{"k":"a","t":4000}')
    clients.flush(client, settings.kafka)
    write_end(settings, Counter({0: 5}))
    write(settings, [(0, {"k": "after", "t": 9000})], end=False)
    write(settings, [], end=False)
    plane = DataPlane(settings)
    thread, errors = start_thread(plane)
    wait_until(lambda: total(all_states(settings))[0] == 6 or errors)
    plane.stop()
    thread.join(30)
    assert not errors
    result = rejections(settings)
    assert [(reason, source) for reason, source, _ in result] == [
        ("late", f"{topic}:0:1"),
        ("unreadable", f"{topic}:0:2"),
        ("unreadable", f"{topic}:0:3"),
        ("late", f"{topic}:0:4"),
        ("after-end", f"{topic}:0:6"),
    ]
    late = result[0][2]
    assert (late.key(), late.value(), late.timestamp()[1]) == (b"raw", b'{"k":"a","t":3999}', 1234567)
    assert late.headers()[:2] == [("mine", b"x"), ("n", None)]
    assert dict(late.headers())["evenflow-mark"] == b"5000"
    assert (result[2][2].key(), result[2][2].value()) == (b"tombstone", None)
    assert total(all_states(settings)) == (6, 1, 5)


def test_a_rejected_record_that_does_not_fit_travels_as_its_position_and_reason(kafka_settings, query_name):
    settings = make_settings(kafka_settings, query_name, input={"partitions": 1})
    specs = admin.pipeline_topics(settings)
    wide = admin.TopicSpec(specs["input"].name, 1, {**specs["input"].config, "max.message.bytes": "16000000"})
    admin.ensure_topics(settings.kafka, [wide, *(spec for role, spec in specs.items() if role != "input")])
    write(settings, [(0, random.Random(1).randbytes(9_000_000)), (0, b"bad")])
    run(settings)
    large, fits = rejections(settings)
    assert large[2].value() is None
    assert dict(large[2].headers())["evenflow-omitted-bytes"] == b"9000000"
    assert large[1].endswith(":0:0")
    assert fits[2].value() == b"bad"


def test_a_tuple_from_the_far_future_is_rejected_when_max_jump_is_on(kafka_settings, query_name):
    settings = make_settings(
        kafka_settings,
        query_name,
        input={"partitions": 1},
        query={"max_jump": "60s", "jump_confirmations": 2},
    )
    create_topics(settings)
    times = [1_000, 1_100, 10**12, 1_200, 1_300]
    write(settings, [(0, {"k": "a", "t": t, "v": 1}) for t in times])
    run(settings)
    assert [reason for reason, _, _ in rejections(settings)] == ["jump", "jump"]
    assert read_routed(settings).counts == Counter({(1, b"a"): 3})


def test_max_jump_changes_while_the_query_runs_and_verify_finds_no_difference(kafka_settings, query_name):
    accepted = []
    stints = [
        ("off", [1_000, 30_000, 1_200], [1_000, 30_000]),  # the stray makes what follows late
        ("5s", [30_500, 10**12, 31_000], [30_500, 31_000]),
        ("1m", [80_000, 81_000], [80_000, 81_000]),  # 49 s ahead
    ]
    for number, (jump, times, in_time) in enumerate(stints):
        query = {} if jump == "off" else {"max_jump": jump}
        settings = make_settings(kafka_settings, query_name, input={"partitions": 1}, query=query)
        create_topics(settings)
        write(settings, [(0, {"k": "a", "t": t, "v": 1}) for t in times], end=False)
        if number == len(stints) - 1:
            write_end(settings, Counter({0: 8}))
            run(settings)
        else:
            read_up_to(settings, sum(len(times) for _, times, _ in stints[: number + 1]))
        accepted += [(b"a", t, {"v": 1}) for t in in_time]
    assert [reason for reason, _, _ in rejections(settings)] == ["late", "jump"]
    assert all_states(settings)[0].max_jumps == ((3, 5_000), (6, 60_000))
    client = clients.producer(settings.kafka)
    for row in windows_of(settings, accepted, END_MARK):
        client.produce(settings.topic("results"), value=json.dumps(row), key=row["key"], partition=0)
    clients.flush(client, settings.kafka)
    report = verify(settings)
    assert report.exact, report.text()
    assert (report.read, report.rejected) == (8, 2)


def test_out_of_orderness_grows_while_the_query_runs_and_verify_finds_no_difference(
    kafka_settings, query_name
):
    accepted, rows = [], 0
    stints = [
        ("0s", [1_000, 9_000, 7_500], [1_000, 9_000]),
        ("3s", [9_500, 7_600, 8_200, 12_000, 9_900], [9_500, 12_000, 9_900]),  # the mark stays at 9 s
        ("5s", [13_000, 8_100, 9_950], [13_000, 9_950]),
    ]
    for number, (disorder, times, in_time) in enumerate(stints):
        settings = make_settings(
            kafka_settings, query_name, input={"partitions": 1}, query={"out_of_orderness": disorder}
        )
        create_topics(settings)
        write(settings, [(0, {"k": "a", "t": t, "v": 1}) for t in times], end=False)
        rows += len(times)
        if number == len(stints) - 1:
            write_end(settings, Counter({0: rows}))
            run(settings)
        else:
            read_up_to(settings, rows)
        accepted += [(b"a", t, {"v": 1}) for t in in_time]
    assert [reason for reason, _, _ in rejections(settings)] == ["late"] * 4
    state = all_states(settings)[0]
    assert (state.disorders, state.floor) == (((3, 3_000), (8, 5_000)), 9_000)
    smaller = make_settings(
        kafka_settings, query_name, input={"partitions": 1}, query={"out_of_orderness": "4s"}
    )
    with pytest.raises(IncompatibleStateError, match="it may only grow"):
        run(smaller)
    client = clients.producer(settings.kafka)
    for row in windows_of(settings, accepted, END_MARK):
        client.produce(settings.topic("results"), value=json.dumps(row), key=row["key"], partition=0)
    clients.flush(client, settings.kafka)
    report = verify(smaller)
    assert report.exact, report.text()
    assert (report.read, report.rejected) == (rows, 4)


def read_up_to(settings, records):
    """One instance, until it has committed so many records."""
    plane = DataPlane(prepare(settings))
    thread, errors = start_thread(plane)
    wait_until(lambda: total(all_states(settings))[0] == records or errors)
    plane.stop()
    thread.join(30)
    assert not errors


def test_a_block_of_nothing_but_bad_records_is_rejected_one_by_one_in_good_time(kafka_settings, query_name):
    settings = make_settings(
        kafka_settings,
        query_name,
        input={"partitions": 1},
        partitioner={"block_tuples": 50_000, "linger": 2_000, "transaction_timeout": 10_000},
    )
    create_topics(settings)
    bad = [b"{", b'{"k":1', b"\xff", b"[]", b'{"t":5}']
    write(settings, [(0, bad[n % len(bad)]) for n in range(50_000)], end=False)
    write(settings, [(0, {"k": "a", "t": 7, "v": 1})], end=False)
    write_end(settings, Counter({0: 50_001}))
    run(settings)
    assert total(all_states(settings)) == (50_001, 1, 50_000)
    result = rejections(settings)
    assert [message.value() for _, _, message in result] == [bad[n % len(bad)] for n in range(50_000)]
    assert {reason for reason, _, _ in result} == {"unreadable"}


def test_hostile_markers_plans_and_snapshots_end_no_partitioner_and_its_neighbours_are_routed(
    kafka_settings, query_name, caplog
):
    settings = make_settings(kafka_settings, query_name, input={"partitions": 1})
    create_topics(settings)
    client = clients.producer(settings.kafka)
    bad = [b"[" * 200_000, b'{"producer":"t","tuples":1.5}', b'{"producer":"t","tuples":true}', None]
    for body in bad:
        client.produce(settings.topic("input"), headers=[(HEADER, body)])
    plans = [b'{"v":1,"epoch":1e400,"p":1,"r":1,"effective_from":0}', b"[" * 200_000, None]
    plans += [
        Plan(epoch=8, p=1, r=1).encode("0" * 16),
        Plan(epoch=9, p=1_000, r=1).encode(settings.fingerprint),
    ]
    for body in plans:
        client.produce(settings.topic("plan"), key=b"any", value=body)
    for epoch in (b"1", b"1e400"):
        headers = [("evenflow-epoch", epoch)]
        client.produce(settings.topic("snapshots"), key="0", value=b"\xff" * 99, headers=headers)
    clients.flush(client, settings.kafka)
    write(settings, [(0, {"k": "a", "t": t, "v": 1}) for t in range(5)])
    plane = run(settings)
    assert [reason for reason, _, _ in rejections(settings)] == ["unreadable"] * len(bad)
    assert total(all_states(settings)) == (5 + len(bad), 5, len(bad))
    shown, said = plane.status(), telemetry(settings)[-1]
    assert (shown["plan_epoch"], shown["plans_ignored"]) == (0, 5)
    assert (said.epoch, said.plans_ignored, said.tuples) == (0, 5, 5)
    assert caplog.text.count("ignoring the record at offset") == 5
    assert caplog.text.count("plan epoch 9 is impossible") == 1


def test_a_record_without_a_key_that_where_drops_is_filtered(kafka_settings, query_name):
    settings = make_settings(
        kafka_settings,
        query_name,
        input={"partitions": 1},
        query={"where": "v > 1", "window": "1h", "slide": "1h"},
    )
    create_topics(settings)
    for start in range(2):
        rows = [{"t": 1, "v": 0}, {"k": None, "t": 2, "v": 0}, {"k": "a", "t": 3, "v": 5}, {"t": 4, "v": 5}]
        write(settings, [(0, row) for row in rows], end=False)
        plane = DataPlane(prepare(settings))
        thread, errors = start_thread(plane)
        read = 4 * (start + 1)
        wait_until(lambda read=read, errors=errors: total(all_states(settings))[0] == read or errors)
        plane.stop()
        thread.join(30)
        assert not errors
    report = verify(settings)
    assert (report.differences, report.first) == (0, ())
    assert (report.read, report.routed, report.rejected, report.filtered) == (8, 2, 2, 4)
