"""Plans on a real broker: they take over on slide boundaries whoever reads them when, and results stay
exact.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest

from evenflow.aggregates import AggregatePlan
from evenflow.plans import Plan
from evenflow.settings import Settings
from evenflow.twostep import Layout, combine_task, reduce
from evenflow.wire import decode_frame
from partitioner_service import plans_by_hand
from partitioner_service.begin.prepare import prepare
from partitioner_service.kafka.committed_state import all_states
from partitioner_service.plane.data_plane import DataPlane
from partitioner_service.plans_by_hand import publish
from tests.pipeline.planes import began, some_rows, start_thread, telemetry, total, wait_until
from tests.pipeline.routed import create_topics, make_settings, read_routed, records, write, write_end
from tests.unit.twostep.pipe import Dict
from topics import admin
from topics.query.plan_topic import PlanRecords, PlanWriter, read_plans
from topics.state import TopicSpec

pytestmark = pytest.mark.pipeline


def hand_over(settings: Settings, *planes: DataPlane) -> None:
    """The newest record of the plan topic, as the plan agent hands it over."""
    newest = records(settings, "plan")[-1]
    for plane in planes:
        plane.offer(newest.offset(), newest.value())


def epochs_by_pane(settings: Settings, partitions: set[int]) -> dict[int, set[tuple[int, bool]]]:
    """Of what came from these input partitions: pane -> (epoch, whether a worker above the first four had
    some).
    """
    result: defaultdict[int, set[tuple[int, bool]]] = defaultdict(set)
    for message in records(settings, "routed"):
        frame = decode_frame(message.value(), fingerprint=settings.fingerprint)
        if partitions & set(frame.header.offsets["partition"].tolist()):
            workers = frame.row_workers(message.partition()).tolist()
            for pane, worker in zip(frame.batch.column(0).to_pylist(), workers, strict=True):
                result[pane].add((frame.header.epoch, worker >= 4))
    return dict(result)


def results(settings: Settings) -> Counter[tuple[int, bytes]]:
    """(window start, key) -> tuples, by combiner and reducer of the routed topic, in two micro-batches."""
    plan, state = AggregatePlan.of(settings.query), Dict()
    topic = admin.describe(settings.kafka, [settings.topic("routed")])[settings.topic("routed")]
    layout = Layout(
        fingerprint=settings.fingerprint, topic_id=topic.topic_id, buckets=1, max_bytes=1_000_000,
        input_partitions=settings.input_partitions, routed_partitions=settings.routed_partitions,
        shared_by=settings.workers_per_partition,
    )  # fmt: skip
    frames: defaultdict[int, list[tuple[int, bytes]]] = defaultdict(list)
    for message in records(settings, "routed"):
        frames[message.partition()].append((message.offset(), message.value()))
    result: Counter[tuple[int, bytes]] = Counter()
    for half in (0, 1):
        stretches = [
            (worker, mine[len(mine) // 2 :] if half else mine[: len(mine) // 2])
            for worker, mine in frames.items()
        ]
        table = reduce(plan, layout, state, [blob.data for blob in combine_task(plan, layout, stretches)])
        for row in table.to_pylist():
            result[row["window_start"], row["key"]] += row["n"]
    return result


@pytest.mark.parametrize("partitions", [8, 3])
def test_a_plan_that_one_of_two_instances_reads_late_changes_no_result_nor_does_4_to_8_to_4(
    kafka_settings: Any, query_name: str, partitions: int
) -> None:
    options = {
        "workers": 4,
        "max_workers": 8,
        "routed_partitions": partitions,
        "name": "shuffle",
        "block_tuples": 700,
        "instances": 2,
    }
    a, b = (
        make_settings(kafka_settings, query_name, partitioner=options | {"instance": name}) for name in "ab"
    )
    create_topics(a)
    early, late = DataPlane(a), DataPlane(b)
    threads = [start_thread(plane) for plane in (early, late)]
    wait_until(lambda: [len(p.status().get("assignment", ())) for p in (early, late)] == [2, 2])
    rows = some_rows(12_000)

    def flow(until: int) -> None:
        begin = total(all_states(a))[0]
        write(a, rows[begin:until], end=False)
        wait_until(lambda: total(all_states(a))[0] == until or any(errors for _, errors in threads))

    flow(2_500)
    publish(a, workers=8, effective_from=3_000)
    hand_over(a, early)
    flow(
        3_000
    )  # what one input partition has before the boundary may else be read after what another has behind it
    flow(6_000)
    hand_over(a, late)
    flow(8_500)
    publish(a, workers=4, effective_from=9_000)
    hand_over(a, early, late)
    flow(9_000)
    flow(12_000)
    mine = {int(p) for p in early.status()["assignment"]}
    write_end(a, Counter(p for p, _ in rows))
    wait_until(lambda: all(s.ended for s in all_states(a).values()) or any(errors for _, errors in threads))
    for plane, (thread, errors) in zip((early, late), threads, strict=True):
        plane.stop()
        thread.join(30)
        assert errors == []

    few = {(0, False)}, {(1, False), (1, True)}, {(2, False)}
    assert epochs_by_pane(a, mine) == {pane: few[(pane >= 3) + (pane >= 9)] for pane in range(12)}
    assert epochs_by_pane(a, {0, 1, 2, 3} - mine) == {
        pane: few[(pane >= 6) + (pane >= 9)] for pane in range(12)
    }
    assert total(all_states(a)) == (12_000, 12_000, 0)
    assert sum(read_routed(a).counts.values()) == 12_000
    assert results(a) == Counter(
        (window * 1_000, row["k"].encode())
        for _, row in rows
        for window in range(row["t"] // 1_000 - 3, row["t"] // 1_000 + 1)
    )


def test_an_instance_without_input_says_every_second_that_it_lives(
    kafka_settings: Any, query_name: str
) -> None:
    settings = make_settings(kafka_settings, query_name)
    create_topics(settings)
    plane = DataPlane(settings)
    thread, errors = start_thread(plane)
    wait_until(lambda: len(telemetry(settings)) >= 3 or errors)
    plane.stop()
    thread.join(30)
    assert errors == []
    first, *_, last = telemetry(settings)
    assert (first.started, first.tuples, last.tuples) == (last.started, 0, 0)
    assert (last.owned, last.lag, last.event_time, last.workers) == (4, 0, None, 3)


def test_a_plan_by_hand_that_another_writer_overtook_is_published_as_the_next_one(
    kafka_settings: Any, query_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = make_settings(kafka_settings, query_name)
    create_topics(settings)
    controller = PlanWriter(settings, identity="controller")
    ours, theirs = Plan(epoch=1, p=3, r=1), iter([Plan(epoch=2, p=2, r=1)])
    controller.write(ours)
    wait_until(lambda: read_plans(settings) == [ours])
    real = plans_by_hand._last_epoch

    def overtaken(settings: Settings, reading: PlanRecords) -> int:
        epoch = real(settings, reading)
        for plan in theirs:
            controller.write(plan)
        return epoch

    monkeypatch.setattr(plans_by_hand, "_last_epoch", overtaken)
    published = publish(settings, workers=1)
    assert (published.epoch, published.p) == (3, 1)
    assert [plan.epoch for plan in read_plans(settings)] == [1, 2, 2, 3]
    controller.write(Plan(epoch=4, p=2, r=1))  # it was not fenced


def test_a_plan_topic_of_an_earlier_version_goes_on_as_it_is(kafka_settings: Any, query_name: str) -> None:
    settings = make_settings(kafka_settings, query_name)
    former = {"cleanup.policy": "delete", "retention.ms": "-1", "message.timestamp.type": "LogAppendTime"}
    specs = admin.pipeline_topics(settings)
    admin.ensure_topics(settings.kafka, [specs["input"], TopicSpec(settings.topic("plan"), 1, former)])
    prepare(settings)
    publish(settings, workers=2)
    assert [plan.p for plan in read_plans(settings)] == [2]
    config = admin.describe(settings.kafka, [settings.topic("plan")])[settings.topic("plan")].config
    assert config["cleanup.policy"] == "delete"


def test_a_plan_that_came_while_no_instance_ran_is_in_force_before_the_first_tuple(
    kafka_settings: Any, query_name: str
) -> None:
    settings = began(kafka_settings, query_name, partitioner={"workers": 1, "routed_partitions": 4})
    publish(settings, workers=3, effective_from=0)
    publish(settings, workers=4, effective_from=60_000)
    plane = DataPlane(settings)
    thread, errors = start_thread(plane)
    wait_until(lambda: plane.status().get("assignment") or errors)
    shown = plane.status()
    plane.stop()
    thread.join(30)
    assert errors == []
    assert (shown["plan_epoch"], shown["workers"]) == (1, 3)
    assert shown["next_plan"] == {"epoch": 2, "begins": 60_000}
