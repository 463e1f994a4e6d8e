"""The bill on paper: counts and costs of pipelines small enough to reckon by hand."""

from dataclasses import fields, replace

import pytest

from evenflow.scale.costs import (
    Side,
    Units,
    broker_partitions,
    broker_traffic,
    by_place,
    cores_of,
    furthest,
    over_budget,
    partials_a_second,
    shares,
    sync_message_bytes,
    sync_values,
    terms,
)
from evenflow.scale.law import ZipfLaw
from evenflow.scale.runs import empty_batch
from evenflow.scale.shape import Shape, StreamLoad, touched

SMALL = Shape(
    rate=8_000.0,
    inputs=4,
    routed=2,
    instances=2,
    buckets=2,
    tasks=2,
    slide=1.0,
    batch=2.0,
    commit=0.5,
    block=1_000_000,
    linger=0.25,
    replicas=2,
    brokers=2,
    broker_cores=4,
    executor_cores=8,
)
"""Blocks of 1,000 tuples, eight a second; each goes to both workers."""
LOAD = StreamLoad(law="flat", slide_keys=100, window_keys=500, ksr=1.5, imbalance=0.1, hot=3)
FREE = Units(**dict.fromkeys((entry.name for entry in fields(Units)), 0.0))


def cores(shape: Shape, topic: str, place: str, **units: float) -> float:
    """Of that term where all other unit costs are 0."""
    bill = terms(shape, LOAD, replace(FREE, **units), cooperative=True)
    return next(term.cores for term in bill if (term.topic, term.place) == (topic, place))


def test_a_block_is_what_comes_in_a_linger_and_never_more_than_a_block() -> None:
    assert SMALL.block_tuples == 1_000
    assert SMALL.blocks == 8
    assert replace(SMALL, block=100).block_tuples == 100
    assert replace(SMALL, block=100).blocks == 80


def test_few_tuples_reach_few_workers() -> None:
    assert touched(4, 0) == 0
    assert touched(4, 1) == pytest.approx(1)
    assert touched(2, 2) == pytest.approx(1.5)
    assert touched(1, 7) == 1
    assert touched(1_000, 1e6) == pytest.approx(1_000)


def test_frames_are_blocks_times_workers_and_punctuation_is_for_those_without_a_tuple() -> None:
    assert SMALL.frames == pytest.approx(16)
    assert SMALL.punctuation == pytest.approx(0, abs=1e-9)
    sparse = replace(SMALL, rate=8.0, routed=4, linger=0.25)
    assert sparse.block_tuples == 1
    assert sparse.frames == pytest.approx(8)
    assert sparse.punctuation == pytest.approx(2 * (4 - 1)), (
        "of each instance a frame to three workers a slide"
    )


def test_a_transaction_has_a_marker_for_each_worker_and_one_for_the_offsets() -> None:
    assert SMALL.transactions == 4
    assert SMALL.partitions_a_transaction == pytest.approx(2)
    assert SMALL.markers == pytest.approx(4 * 3)


def test_a_short_transaction_reaches_everybody_only_when_it_tells() -> None:
    sparse = replace(SMALL, rate=4.0, routed=4, commit=0.5)
    assert sparse.partitions_a_transaction == pytest.approx(1 + 0.5 * 3), (
        "one tuple, and told in every second one"
    )


def test_work_is_the_rate_and_replicas_are_the_brokers() -> None:
    assert cores(SMALL, "tuples", "instances", tuple_partitioned=1e-3) == pytest.approx(8)
    assert cores(SMALL, "tuples", "brokers", tuple_brokered=1e-3) == pytest.approx(16)
    assert cores(SMALL, "result rows", "executors", row_emitted=1e-3) == pytest.approx(0.5)


def test_a_pane_gives_its_partials_once_for_each_micro_batch_that_it_lies_in() -> None:
    assert partials_a_second(SMALL, LOAD) == 150
    assert partials_a_second(replace(SMALL, batch=0.5), LOAD) == 300
    assert partials_a_second(replace(SMALL, slide=10.0), replace(LOAD, slide_keys=1_000)) == 750


def test_frames_cost_at_three_places() -> None:
    assert cores(SMALL, "headers", "instances", header_packed=1e-3) == pytest.approx(0.008)
    assert cores(SMALL, "frames", "instances", frame_packed=1e-3, frame_produced=2e-3) == pytest.approx(0.048)
    assert cores(SMALL, "frames", "brokers", frame_appended=1e-3) == pytest.approx(0.032)
    read = {"frame_scanned": 1e-3, "frame_decoded": 2e-3, "header_decoded": 3e-3}
    assert cores(SMALL, "frames", "executors", **read) == pytest.approx(0.096)


def test_markers_cost_the_brokers_once_a_replica() -> None:
    assert cores(SMALL, "transactions", "brokers", marker=1e-3, transaction_broker=1e-2) == pytest.approx(
        4 * 1e-2 + 12 * 2 * 1e-3
    )
    assert cores(SMALL, "transactions", "instances", enlisted=1e-3, transaction_client=1e-2) == pytest.approx(
        0.052
    )


def test_blobs_are_tasks_times_buckets_and_their_segments_buckets_times_workers() -> None:
    shape = replace(SMALL, routed=6, tasks=3)
    assert cores(shape, "ranges", "executors", range=1.0) == 6 / 2
    assert cores(shape, "blobs", "executors", blob=1.0) == 3 * 2 / 2
    assert cores(shape, "segments", "executors", segment=1.0) == 6 * 2 / 2
    assert cores(shape, "marks in blobs", "executors", mark=1.0) == 6 * 2 * 4 / 2
    assert cores(shape, "tasks", "driver", task=1.0) == (3 + 2) / 2


def test_every_bucket_keeps_every_lane_but_each_lane_is_told_to_one() -> None:
    assert cores(SMALL, "lanes told", "executors", lane=1.0) == 4 * 2 / 2
    assert cores(SMALL, "lanes kept", "executors", lane_state=1.0) == 2 * 4 * 2 / 2
    assert cores(SMALL, "lanes kept", "executors", bucket=1.0) == 1
    assert SMALL.bucket_lanes == 8 * (2 + 2 * 4 + 1 * 4)


def test_telemetry_is_read_once_and_plans_by_everybody() -> None:
    assert cores(SMALL, "telemetry", "instances", telemetry_written=1.0) == 4
    assert cores(SMALL, "telemetry", "controller", telemetry_read=1.0) == 4 + 1
    assert cores(SMALL, "telemetry", "controller", load_read=1.0) == 4 * 2
    assert cores(SMALL, "decisions", "controller", judged=1.0) == 0.5
    assert cores(SMALL, "plans", "instances", plan_read=1.0) == pytest.approx(4 / 20)


def test_state_is_saved_by_each_instance_and_peers_are_read_by_each() -> None:
    assert cores(replace(SMALL, snapshot=4.0), "snapshots", "instances", snapshot=1.0) == 0.5
    assert cores(SMALL, "peers' progress", "instances", peer_read=1.0) == 8
    assert cores(replace(SMALL, instances=1), "peers' progress", "instances", peer_read=1.0) == 0


def test_cooperating_partitioners_send_a_row_for_each_hot_key() -> None:
    assert sync_values(SMALL, LOAD) == 2 * 3 * 2
    assert sync_message_bytes(SMALL, LOAD) == 8 * 3 * 3 + 16 * 2
    assert cores(SMALL, "sync", "table reducer", value_read=1.0, value_merged=2.0) == 36
    assert "sync" not in {term.topic for term in terms(SMALL, LOAD, FREE)}, "others exchange nothing"


def test_groups_share_everything_but_the_brokers() -> None:
    part = Shape().part(10)
    assert (part.rate, part.inputs, part.routed, part.instances, part.executor_cores) == (
        1e6,
        10,
        100,
        10,
        100,
    )
    assert part.brokers == Shape().brokers
    assert 10 * part.markers == pytest.approx(Shape().markers / 10, rel=0.1), "a tenth of the markers in all"


def test_a_broker_moves_what_is_written_once_for_each_replica() -> None:
    shape = replace(SMALL, replicas=3)
    units = replace(FREE, frame_bytes=1_000.0)
    written = 8_000 * (60 + 32) + 16 * 1_000
    assert broker_traffic(shape, LOAD, units) == pytest.approx((3 * written / 2, (written + 2 * written) / 2))
    assert broker_partitions(shape) == (2 * 4 + 2 + 2 + 4) * 3 / 2


def test_what_exceeds_its_budget_is_named() -> None:
    bill = terms(SMALL, LOAD, replace(FREE, tuple_partitioned=1e-3, marker=0.05))
    assert by_place(bill)["instances"] == pytest.approx(8)
    assert shares(bill, cores_of(SMALL))["transactions", "brokers"] == pytest.approx(1.2 / 8)
    assert over_budget(bill, cores_of(SMALL)) == ["all at instances", "transactions at brokers"]


def test_the_furthest_value_within_a_budget() -> None:
    units = replace(FREE, marker=0.01)
    ask = ("transactions", "brokers")
    # 8 broker cores, 0.8 within the budget: 4 transactions x (workers + 1) x 2 replicas x 0.01
    assert furthest(SMALL, LOAD, units, *ask, Side(("routed",), 1, 1_000)) == 9
    result = furthest(SMALL, LOAD, units, *ask, Side(("commit",), 0.01, 60.0, whole=False))
    assert result == pytest.approx(2 * 3 * 2 * 0.01 / 0.8)
    both = Side(("routed", "tasks"), 1, 1_000, fixed=(("instances", 1),))
    assert furthest(SMALL, LOAD, units, *ask, both) == 19, "half of the transactions"
    assert furthest(SMALL, LOAD, replace(FREE, marker=9.0), *ask, Side(("routed",), 1, 1_000)) is None
    assert furthest(SMALL, LOAD, FREE, *ask, Side(("routed",), 1, 1_000)) == 1_000


def test_laws_know_their_keys() -> None:
    flat = ZipfLaw("flat", 0.0, 4, "nothing")
    assert flat.shares.tolist() == [0.25] * 4
    assert flat.distinct(1) == pytest.approx(1)
    assert flat.distinct(2) == pytest.approx(1.75)
    assert flat.hot(4) == 4
    assert flat.hot(3) == 0
    assert ZipfLaw("two", 1.0, 2, "nothing").shares.tolist() == pytest.approx([2 / 3, 1 / 3])
    assert sum(ZipfLaw("long", 1.0, 200_000).shares) == pytest.approx(1)
    many = ZipfLaw("many", 0.9, 50_000)
    alone = (1 - (1 - many.shares) ** 40_000).sum()
    assert many.distinct(40_000) == pytest.approx(alone, rel=1e-4), "blocks of ranks are as good as each rank"


def test_a_micro_batch_without_tuples_is_the_sum_of_its_parts() -> None:
    def one(**units: float) -> float:
        return empty_batch(10, 4, 3, replace(FREE, **units))

    assert one(range=1.0) == 10
    assert one(blob=1.0) == 2 * 3
    assert one(segment=1.0) == 30
    assert one(lane=1.0) == 40
    assert one(bucket=1.0) == 3
    assert one(lane_state=1.0) == 120
