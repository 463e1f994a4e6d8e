import pytest

from controller.collect import Collector, PipelineFigures
from controller.evaluate import stale
from evenflow.plans import Plan
from evenflow.settings import Settings
from evenflow.telemetry import PartWork
from tests.unit.controller.parts import Pipeline, batch, heartbeat, partitioner, settings_of

HOUR_MS = 3_600_000


def fused(**sections: object) -> tuple[Pipeline, Settings]:
    settings = settings_of(**sections)  # type: ignore[arg-type]
    return Pipeline(settings), settings


def test_each_finished_micro_batch_makes_one_observation_and_steps_grow_by_one() -> None:
    pipeline, settings = fused()
    pipeline.hear(partitioner(settings))
    assert not pipeline.seen
    pipeline.hear(batch(settings), partitioner(settings), batch(settings, batch=2))
    assert [seen.observation.step for seen in pipeline.seen] == [1, 2]


@pytest.mark.parametrize(
    ("executors", "settling"), [(7, True), (8, False), (9, False), (10, False), (11, True)]
)
def test_a_plan_is_realised_with_any_part_of_the_reserve(executors: int, settling: bool) -> None:
    pipeline, settings = fused(spark={"partitions_per_slot": 1, "reserve_executors": 2})
    pipeline.hear(partitioner(settings), batch(settings, executors=6))
    pipeline.publish(Plan(epoch=1, p=8, r=4, effective_from=61_000))
    pipeline.now += 5
    pipeline.hear(
        partitioner(settings, workers=8, event_time=61_005), batch(settings, executors=executors, epoch=1)
    )
    assert pipeline.seen[-1].observation.settling == settling


def test_loads_of_a_fused_stage_are_the_parts_shares_of_busy_time() -> None:
    pipeline, settings = fused()
    pipeline.hear(partitioner(settings), batch(settings))
    (seen,) = (seen.observation for seen in pipeline.seen)
    assert (seen.p, seen.r, seen.interval_ms, seen.wiring) == (4, 4, 5_000, "fused")
    assert seen.load == pytest.approx(0.8)
    combine, reduce = seen.stage("combine"), seen.stage("reduce")
    assert combine.load == pytest.approx(0.6)
    assert reduce.load == pytest.approx(0.2)
    assert combine.arrivals == 1_000
    assert combine.capacity == pytest.approx((5_000 / 5) / 0.6), "taken in per second, over its load"
    assert combine.longest == pytest.approx(2_000 / 1_500)
    assert reduce.arrivals == pytest.approx(80)
    assert combine.queue == 0
    assert not seen.stale
    assert not seen.settling


def test_two_applications_have_loads_of_their_own_and_the_worse_is_the_pipelines() -> None:
    pipeline, settings = fused(wiring="split")
    work = batch(settings).parts
    pipeline.hear(
        partitioner(settings),
        batch(settings, stage="combine", duration_ms=1_000, parts={"combine": work["combine"]}),
    )
    assert not pipeline.seen, "the reducer has said nothing yet"
    pipeline.hear(batch(settings, stage="reduce", duration_ms=6_000, parts={"reduce": work["reduce"]}))
    (seen,) = (seen.observation for seen in pipeline.seen)
    assert seen.load == pytest.approx(1.2)
    assert seen.stage("combine").load == pytest.approx(0.2)
    assert seen.stage("reduce").load == pytest.approx(1.2)
    assert seen.worst == "reduce"


def test_an_idle_stage_has_a_known_load_of_zero_and_makes_an_observation_a_batch_interval() -> None:
    pipeline, settings = fused()
    for _ in range(12):
        pipeline.now += 1
        pipeline.hear(partitioner(settings, rate=0.0, keys=0.0), heartbeat(settings, batch=None))
    assert [seen.observation.step for seen in pipeline.seen] == [1, 2]
    seen = pipeline.seen[-1].observation
    assert seen.load == 0
    assert seen.stage("combine").queue == 0
    assert not seen.stale


def test_a_stage_between_two_micro_batches_is_not_idle() -> None:
    pipeline, settings = fused()
    pipeline.hear(partitioner(settings), batch(settings))
    pipeline.now += 5.5
    pipeline.hear(heartbeat(settings))
    assert pipeline.seen[-1].observation.load == pytest.approx(0.8)
    pipeline.now += 5.5
    pipeline.hear(heartbeat(settings))
    assert pipeline.seen[-1].observation.load == 0


def test_a_stage_in_a_long_micro_batch_has_at_least_the_load_that_it_has_by_now() -> None:
    pipeline, settings = fused()
    pipeline.hear(partitioner(settings), batch(settings))
    pipeline.now += 5
    pipeline.hear(heartbeat(settings, running_ms=4_000))
    assert pipeline.seen[-1].observation.load == pytest.approx(0.8)
    pipeline.now += 10
    pipeline.hear(heartbeat(settings, running_ms=14_000))
    assert pipeline.seen[-1].observation.load == pytest.approx(2.8)


def test_a_micro_batch_after_a_long_silence_has_no_load_until_it_is_over_or_long() -> None:
    pipeline, settings = fused()
    pipeline.hear(partitioner(settings), batch(settings, duration_ms=9_000))
    pipeline.now += 3_600
    pipeline.hear(partitioner(settings), heartbeat(settings, running_ms=None))
    pipeline.now += 5
    pipeline.hear(heartbeat(settings, running_ms=1_000))
    assert pipeline.seen[-1].observation.load is None


def test_rates_keys_and_lags_of_instances_add_up_and_the_busiest_counts() -> None:
    pipeline, settings = fused(instances=2)
    pipeline.hear(
        partitioner(settings, instance="0", owned=2, busy=0.2, lag=5, mark=59_000),
        partitioner(settings, instance="1", owned=2, busy=0.9, lag=7, event_time=70_000),
        batch(settings),
    )
    seen = pipeline.seen[0].observation
    assert (seen.rate, seen.keys, seen.lag, seen.busy) == (2_000, 200, 12, 0.9)
    assert pipeline.seen[0].reached == 70_000


def test_what_one_instance_does_not_know_is_not_known() -> None:
    pipeline, settings = fused(instances=2)
    pipeline.hear(
        partitioner(settings, instance="0", owned=2),
        partitioner(settings, instance="1", owned=2, rate=None, lag=None),
        batch(settings),
    )
    seen = pipeline.seen[0].observation
    assert (seen.rate, seen.lag) == (None, None)
    assert seen.keys == 200


def test_clocks_that_are_an_hour_apart_change_nothing() -> None:
    seen = []
    for skew in (-HOUR_MS, 0, HOUR_MS):
        pipeline, settings = fused()
        for second in range(0, 20, 5):
            at = 1_700_000_000_000 + second * 1_000
            pipeline.now += 5
            pipeline.hear(
                partitioner(settings, time=at, event_time=60_500 + second * 1_000),
                batch(settings, time=at + skew, windows_closed=1, last_window_end=60_000),
            )
        seen.append(pipeline.seen)
    assert seen[0] == seen[1] == seen[2]
    assert not seen[0][-1].observation.stale


def test_what_waits_is_event_time_by_the_speed_at_which_it_comes() -> None:
    pipeline, settings = fused()
    for number in range(4):  # a replay sixty times as fast as the clock
        pipeline.now += 5
        reached = 600_000 + number * 300_000
        pipeline.hear(
            partitioner(settings, event_time=reached, mark=reached),
            batch(settings, mark=reached - 301_000),
        )
    assert pipeline.seen[-1].batch_ms == pytest.approx(300_000)
    seen = pipeline.seen[-1].observation
    assert seen.backlog_ms == pytest.approx(5_000)
    assert not seen.draining


def test_a_gap_in_event_time_is_no_speed_that_a_plan_is_put_off_by() -> None:
    pipeline = Pipeline(settings_of())
    live = pipeline.settings
    for night in (0, 0, 0, 28_800_000, 28_800_000):
        pipeline.now += 5
        time = round(1_000 * pipeline.now) + night
        pipeline.hear(partitioner(live, event_time=time), batch(live))
    assert [seen.batch_ms for seen in pipeline.seen] == [None, 5_000, 5_000, 5_000, 5_000]


def test_marks_within_one_slide_say_nothing_of_a_backlog_and_waiting_frames_do() -> None:
    pipeline, settings = fused()
    for number in range(2):
        pipeline.now += 5
        pipeline.hear(
            partitioner(settings, event_time=60_900 + 5_000 * number, mark=60_900 + 5_000 * number),
            batch(settings, mark=60_000 + 5_000 * number, backlog=200),
        )
    seen = pipeline.seen[-1].observation
    assert seen.stage("combine").queue == 20_000
    assert seen.backlog_ms == pytest.approx(20_000)
    assert seen.draining


@pytest.mark.parametrize(
    ("read", "lag", "draining"),
    [
        (1_000_000, 900_000, False),
        (1_000_000, 1_100_000, True),
        (100, 90, False),
        (100, 110, True),
    ],
)
def test_unread_records_are_held_against_those_that_are_read(read: int, lag: int, draining: bool) -> None:
    """10,000 tuples at 1,000/s came of so many records: of a filter more, of lists fewer."""
    pipeline, settings = fused()
    for _ in range(2):
        pipeline.now += 5
        pipeline.hear(partitioner(settings, read=read, lag=lag), batch(settings))
    assert pipeline.seen[-1].observation.draining is draining


def test_latency_is_known_where_event_time_is_live() -> None:
    pipeline, settings = fused()
    end = round(pipeline.wall * 1000) - 3_000
    pipeline.hear(partitioner(settings), batch(settings, windows_closed=1, last_window_end=end))
    assert pipeline.seen[-1].observation.latency_ms == 3_000
    pipeline.hear(batch(settings, windows_closed=1, last_window_end=4_000))
    assert pipeline.seen[-1].observation.latency_ms is None


def test_a_record_of_a_batch_interval_of_nothing_divides_nothing() -> None:
    pipeline, settings = fused()
    nothing = PartWork(tasks=0, busy_ms=0, longest_ms=0, rows=0)
    pipeline.hear(
        partitioner(settings, rate=0.0),
        batch(settings, batch_interval_ms=0, duration_ms=0, rows=0, parts={"combine": nothing}, backlog=3),
    )
    assert pipeline.seen[-1].observation.load == 0


# ---- what is missing


def test_a_capacity_and_a_queue_beyond_what_telemetry_may_say_are_not_known() -> None:
    pipeline = Pipeline(settings_of())
    work = {
        "combine": PartWork(tasks=1, busy_ms=1e-289, longest_ms=0, rows=2**62),
        "reduce": PartWork(tasks=1, busy_ms=1, longest_ms=1, rows=1),
    }
    pipeline.hear(partitioner(pipeline.settings), batch(pipeline.settings, parts=work, rows=1, backlog=2**62))
    combine = pipeline.seen[-1].observation.stage("combine")
    assert (combine.capacity, combine.queue) == (None, None)


def test_a_part_that_has_never_spoken_is_named() -> None:
    pipeline, settings = fused(wiring="split", instances=2)
    pipeline.now += 20
    pipeline.hear(batch(settings, stage="combine"))
    (seen,) = (seen.observation for seen in pipeline.seen)
    assert seen.stale == ("2 of 2 partitioners have never spoken", "the reduce stage has never spoken")


def test_where_somebody_scales_the_partitioners_those_that_are_there_are_enough() -> None:
    settings = settings_of(instances=4, control={"replicas_of": "statefulset/p"})
    assert stale(settings, PipelineFigures(), 20.0)[0] == "1 of 1 partitioners has never spoken"
    collector = Collector(settings, clock=lambda: 20.0)
    collector.take(partitioner(settings).encode())
    assert not [word for word in stale(settings, collector.known, 20.0) if "partitioner" in word]


def test_a_part_that_is_silent_for_longer_than_patience_is_named_with_its_silence() -> None:
    pipeline, settings = fused(wiring="split")
    pipeline.hear(partitioner(settings), batch(settings, stage="combine"), batch(settings, stage="reduce"))
    for _ in range(8):
        pipeline.now += 5
        pipeline.hear(partitioner(settings), batch(settings, stage="combine"))
    assert [seen.observation.stale for seen in pipeline.seen] == [
        (),
        ("no record of the reduce stage for 20 s",),
        ("no record of the reduce stage for 40 s",),
    ]


def test_what_was_there_before_the_controller_began_is_not_fresh() -> None:
    pipeline, settings = fused()
    pipeline.hear(partitioner(settings), batch(settings), fresh=False)
    assert not pipeline.seen
    pipeline.now += 20
    pipeline.look()
    assert pipeline.seen[0].observation.stale == (
        "no record of partitioner 0 since the controller began, or was cut off",
        "no record of the fused stage since the controller began, or was cut off",
    )


def test_patience_is_a_setting() -> None:
    pipeline, settings = fused(control={"patience": "2s"})
    pipeline.hear(partitioner(settings), batch(settings))
    pipeline.now += 3
    pipeline.hear(batch(settings))
    assert pipeline.seen[-1].observation.stale == ("no record of partitioner 0 for 3 s",)


def test_an_instance_that_is_gone_counts_no_more_once_others_own_its_partitions() -> None:
    pipeline, settings = fused()
    pipeline.hear(partitioner(settings, instance="old", rate=500.0))
    pipeline.now += 1
    pipeline.hear(partitioner(settings, instance="new"), batch(settings))
    seen = pipeline.seen[-1].observation
    assert seen.rate == 1_000
    assert not seen.stale


def test_input_partitions_that_nobody_owns_are_said() -> None:
    pipeline, settings = fused()
    pipeline.hear(partitioner(settings, owned=1), batch(settings))
    assert pipeline.seen[0].observation.stale == ("3 input partitions belong to no partitioner that speaks",)


# ---- plans that are being realised


def test_a_published_plan_settles_until_partitioners_and_stages_follow_it() -> None:
    pipeline, settings = fused()
    pipeline.hear(partitioner(settings), batch(settings, executors=4, epoch=0))
    pipeline.publish(Plan(epoch=1, p=8, r=4, effective_from=62_000))

    def observed(workers: int, event_time: int, *, epoch: int) -> tuple[int, bool]:
        pipeline.now += 5
        pipeline.hear(
            partitioner(settings, workers=workers, event_time=event_time),
            batch(settings, executors=4, epoch=epoch),
        )
        seen = pipeline.seen[-1].observation
        return seen.p, seen.settling

    assert observed(4, 61_000, epoch=0) == (4, True), "published and not begun"
    assert observed(8, 62_000, epoch=0) == (8, True), "the stage follows the old one"
    assert observed(8, 63_000, epoch=1) == (8, False)


def test_a_plan_that_changes_nothing_settles_nothing() -> None:
    pipeline, settings = fused()
    pipeline.publish(Plan(epoch=1, p=4, r=4, effective_from=10**9))
    pipeline.hear(partitioner(settings), batch(settings, executors=4))
    assert not pipeline.seen[-1].observation.settling


def test_without_a_cluster_manager_a_plan_waits_for_partitioners_only() -> None:
    pipeline, settings = fused()
    pipeline.hear(partitioner(settings), batch(settings))
    pipeline.publish(Plan(epoch=1, p=8, r=2, effective_from=61_000))
    pipeline.hear(partitioner(settings, workers=8, event_time=61_500), batch(settings))
    assert not pipeline.seen[-1].observation.settling


def test_a_plan_by_hand_for_tomorrow_neither_settles_nor_is_late_today() -> None:
    pipeline, settings = fused()
    pipeline.publish(Plan(epoch=1, p=8, r=4, effective_from=24 * HOUR_MS))
    for _ in range(30):
        pipeline.now += 5
        pipeline.hear(partitioner(settings), batch(settings))
    seen = pipeline.seen[-1]
    assert (seen.observation.p, seen.observation.settling, seen.overdue) == (4, False, ())


def test_executors_that_never_come_are_reported_after_a_time_and_settle_no_longer() -> None:
    pipeline, settings = fused(spark={"partitions_per_slot": 1})
    pipeline.hear(partitioner(settings), batch(settings, executors=4))
    pipeline.publish(Plan(epoch=1, p=32, r=4, effective_from=61_000))
    for second in range(5, 130, 5):
        pipeline.now += 5
        pipeline.hear(
            partitioner(settings, workers=8, event_time=61_000 + second),
            batch(settings, executors=4, epoch=1),
        )
        seen = pipeline.seen[-1]
        assert seen.observation.settling == (second <= 105)
    assert seen.overdue == ("the fused stage has 4 executors of the 8 it needs",)
