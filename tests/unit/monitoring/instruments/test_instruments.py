"""What a scrape of each part says: names of the catalogue, values as told, nothing where nothing is known."""

from __future__ import annotations

import re
import threading
import urllib.request
from typing import Any, get_args

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from evenflow.errors import ConfigError
from evenflow.settings import Settings, load_settings
from evenflow.telemetry import (
    BatchesState,
    BatchRecord,
    BatchState,
    DecisionRecord,
    HeartbeatRecord,
    HotKey,
    PartitionerRecord,
    PartWork,
)
from monitoring.instruments.catalogue import METRICS
from monitoring.instruments.controller import ControllerInstruments, outcome
from monitoring.instruments.partitioner import PartitionerInstruments
from monitoring.instruments.sheet import Instruments, Sheet
from monitoring.instruments.spark import SparkInstruments
from monitoring.serving import served
from partitioner_service.exchange.figures import REASONS
from partitioner_service.reports.rejections import EVERY_REASON
from partitioner_service.routing.gate import Why

COMMON: dict[str, Any] = {"query": "q", "fingerprint": "0123456789abcdef", "time": 1_700_000_000_000}
LABELS = {
    "part",
    "setting",
    "version",
    "python",
    "reason",
    "partition",
    "worker",
    "rank",
    "stage",
    "work",
    "outcome",
    "cause",
    "kind",
    "direction",
    "clock",
}


def settings() -> Settings:
    return load_settings(
        query={"name": "q", "window": "4s", "slide": "1s", "out_of_orderness": "500ms"},
        input={"partitions": 2},
    )


def scraped(instruments: Instruments) -> dict[tuple[str, tuple[str, ...]], float]:
    """Samples of evenflow's own metrics, by name and label values besides `query`."""
    result = {}
    for family in text_string_to_metric_families(generate_latest(instruments.registry).decode()):
        for sample in family.samples:
            if sample.name.startswith("evenflow_"):
                assert sample.labels["query"] == "q"
                labels = tuple(value for name, value in sorted(sample.labels.items()) if name != "query")
                result[sample.name, labels] = sample.value
    return result


def partition(**changed: Any) -> dict[str, Any]:
    return {"lag": 5, "watermark": 9_500, "ended": False, "idle": False} | changed


STATUS: dict[str, Any] = {
    "state": "running",
    "seconds_since_progress": 0.25,
    "assignment": {
        "0": partition(),
        "1": partition(lag=None, watermark=None, idle=True),
        "2": partition(lag=0, ended=True),
    },
    "read": 1_204,
    "filtered": 200,
    "tuples": 1_000,
    "rejected_by_reason": {"late": 3, "unreadable": 1},
    "busy_seconds": 1.5,
    "rebalances": 2,
    "reading": "queues",
    "rhythm": {"block_tuples": 50_000, "linger": 50, "commit_interval": 500},
    "workers": 2,
    "routed_partitions": 2,
    "worker_tuples": [600, 400],
    "worker_costs": [6_000, 9_000],
    "costs_below": 5,
    "costs_above": 2,
    "plan_epoch": 7,
    "plans_ignored": 1,
    "learning_since": 1_600.0,
    "learned_at": None,
}
TOLD = PartitionerRecord(
    **COMMON, instance="0", started=1, owned=2, inputs=2, epoch=7, workers=2, tuples=1_000, rejected=4,
    read=1_004, filtered=0, period_ms=5_000,
    rate=100.0, keys=40.0, busy=0.5, imbalance=0.1, window_imbalance=0.2, head_keys=1,
    hottest=[HotKey(key="secret", length=6, share=0.9, holders=2, workers=[0, 1], parts=[0.6, 0.4])],
)  # fmt: skip


EXCHANGE: dict[str, Any] = {
    "elected": True,
    "instances": 3,
    "round": 7,
    "members": [0, 2],
    "table_at": 1_700.0,
    "unanswered": 1,
    "bytes_in": 300,
    "bytes_out": 200,
    "lost": 2,
    "ignored": {"corrupt": 4},
}


def test_an_instance_that_tells_others_says_its_exchange_and_one_that_does_not_says_nothing_of_it() -> None:
    instruments = PartitionerInstruments(settings())
    instruments.watch(lambda: STATUS | {"exchange": EXCHANGE}, lambda: None)
    seen = scraped(instruments)
    result = {
        name.removeprefix("evenflow_exchange_"): value
        for (name, _), value in seen.items()
        if "exchange" in name
    }
    assert result["elected"] == 1
    assert (result["round"], result["members"], result["unanswered"]) == (7, 2, 1)
    assert (result["table_timestamp_seconds"], result["lost_total"]) == (1_700, 2)
    assert seen["evenflow_exchange_bytes_total", ("out",)] == 200
    assert seen["evenflow_exchange_ignored_total", ("corrupt",)] == 4
    assert {labels[0] for name, labels in seen if name == "evenflow_exchange_ignored_total"} == set(REASONS)
    for alone in (STATUS, STATUS | {"exchange": None}):
        instruments.watch(lambda alone=alone: alone, lambda: None)
        assert not [name for name, _ in scraped(instruments) if "exchange" in name]


BATCHES = BatchesState(
    interval_ms=2_000,
    clock="processing",
    count=9,
    cut_short={"memory": 3},
    held=70,
    held_bytes=4_096,
    release_ms=60.0,
    last=BatchState(
        tuples=900, keys=40, split=2, bsi=4.0, bci=3.0, ksr=1.05, mpi=2.7, reduce_bsi=5.0, reduce_bci=6.0,
        reduce_ksr=1.0,
        reduce_mpi=4.0, took_ms=250.0, late=0.04,
    ),
)  # fmt: skip


def said_of_batches(batches: BatchesState | None) -> dict[tuple[str, tuple[str, ...]], float]:
    shown = batches and batches.model_dump(mode="json")
    instruments = PartitionerInstruments(settings())
    instruments.watch(lambda: STATUS | {"batches": shown}, lambda: None)
    prefix = "evenflow_partitioner_"
    return {
        (name.removeprefix(prefix), labels): value
        for (name, labels), value in scraped(instruments).items()
        if name.startswith(prefix)
    }


def test_an_instance_says_how_it_cuts_batches_and_what_the_last_one_was_like() -> None:
    seen = said_of_batches(BATCHES)
    short = {labels[0]: value for (name, labels), value in seen.items() if name == "batches_cut_short_total"}
    assert short == dict.fromkeys(get_args(Why), 0) | {"memory": 3}, "each reason from the start"
    assert {key: value for key, value in seen.items() if key[0] != "batches_cut_short_total"} == {
        ("batches_total", ()): 9,
        ("batch_interval_seconds", ("processing",)): 2,
        ("held_tuples", ()): 70,
        ("held_bytes", ()): 4_096,
        ("batch_early_release_seconds", ()): 0.06,
        ("batch_tuples", ()): 900,
        ("batch_keys", ()): 40,
        ("batch_split_keys", ()): 2,
        ("batch_size_imbalance", ("map",)): 4,
        ("batch_size_imbalance", ("reduce",)): 5,
        ("batch_cardinality_imbalance", ("map",)): 3,
        ("batch_cardinality_imbalance", ("reduce",)): 6,
        ("batch_key_split_ratio", ("map",)): 1.05,
        ("batch_key_split_ratio", ("reduce",)): 1,
        ("batch_index", ("map",)): 2.7,
        ("batch_index", ("reduce",)): 4,
        ("batch_seconds", ()): 0.25,
        ("batch_lateness_ratio", ()): 0.04,
    }


def test_an_instance_whose_partitioner_has_a_fallback_says_how_often_it_planned() -> None:
    assert (
        said_of_batches(BATCHES.model_copy(update={"by_fallback": 2}))["batches_by_fallback_total", ()] == 2
    )


def test_batches_of_event_time_are_never_late_and_before_the_first_one_nothing_is_said_of_it() -> None:
    by_event = BATCHES.model_copy(update={"clock": "event", "release_ms": None, "last": None})
    names = {name for name, _ in said_of_batches(by_event)}
    assert names == {
        "batches_total",
        "batches_cut_short_total",
        "batch_interval_seconds",
        "held_tuples",
        "held_bytes",
    }
    assert said_of_batches(None) == {}


def test_a_partitioner_says_its_work_its_partitions_and_its_skew() -> None:
    instruments = PartitionerInstruments(settings())
    instruments.watch(lambda: STATUS, lambda: TOLD)
    instruments.block(0.004)
    instruments.commit(0.02)
    seen = scraped(instruments)
    assert seen["evenflow_tuples_routed_total", ()] == 1_000
    assert seen["evenflow_records_read_total", ()] == 1_204
    assert seen["evenflow_records_filtered_total", ()] == 200
    assert seen["evenflow_tuples_rejected_total", ("late",)] == 3
    assert (seen["evenflow_block_seconds_count", ()], seen["evenflow_commit_seconds_sum", ()]) == (1, 0.02)
    assert seen["evenflow_input_watermark_timestamp_seconds", ("0",)] == 9.5
    assert [seen["evenflow_worker_tuples_total", (worker,)] for worker in "01"] == [600, 400]
    assert [seen["evenflow_worker_cost_total", (worker,)] for worker in "01"] == [6_000, 9_000]
    assert seen["evenflow_costs_out_of_range_total", ("below",)] == 5
    assert seen["evenflow_costs_out_of_range_total", ("above",)] == 2
    assert (seen["evenflow_hot_key_share_ratio", ("1",)], seen["evenflow_hot_key_workers", ("1",)]) == (
        0.9,
        2,
    )
    assert (seen["evenflow_imbalance_ratio", ()], seen["evenflow_window_imbalance_ratio", ()]) == (0.1, 0.2)
    assert seen["evenflow_plan_epoch", ("partitioner",)] == 7


@pytest.mark.parametrize(("reading", "shown"), [("queues", 1), ("consume", 0)])
def test_a_partitioner_says_whether_its_records_come_from_queues(reading: str, shown: int) -> None:
    instruments = PartitionerInstruments(settings())
    instruments.watch(lambda: STATUS | {"reading": reading}, lambda: None)
    assert scraped(instruments)["evenflow_reading_from_queues", ()] == shown


def test_what_a_partitioner_does_not_know_is_not_there() -> None:
    instruments = PartitionerInstruments(settings())
    instruments.watch(lambda: STATUS, lambda: None)
    seen = scraped(instruments)
    for absent in (
        ("evenflow_input_lag_records", ("1",)),
        ("evenflow_input_watermark_timestamp_seconds", ("1",)),
        ("evenflow_input_watermark_timestamp_seconds", ("2",)),
        ("evenflow_snapshot_timestamp_seconds", ()),
        ("evenflow_imbalance_ratio", ()),
    ):
        assert absent not in seen
    instruments.watch(lambda: {"state": "starting", "seconds_since_progress": 1.0}, lambda: None)
    starting = scraped(instruments)
    assert starting["evenflow_since_progress_seconds", ()] == 1
    assert ("evenflow_tuples_routed_total", ()) not in starting


def test_only_a_partitioner_that_learns_has_a_time_to_save() -> None:
    instruments = PartitionerInstruments(settings())
    instruments.watch(lambda: STATUS, lambda: None)
    seen = scraped(instruments)
    assert seen["evenflow_learning_begin_timestamp_seconds", ()] == 1_600
    assert seen["evenflow_snapshot_interval_seconds", ()] == 30
    instruments.watch(lambda: STATUS | {"learning_since": None}, lambda: None)
    assert not {name for name, _ in scraped(instruments)} & {
        "evenflow_learning_begin_timestamp_seconds",
        "evenflow_snapshot_interval_seconds",
    }


def test_every_reason_of_the_partitioner_is_said_from_the_start() -> None:
    instruments = PartitionerInstruments(settings())
    instruments.watch(lambda: STATUS | {"rejected_by_reason": {}}, lambda: None)
    said = {labels[0] for name, labels in scraped(instruments) if name == "evenflow_tuples_rejected_total"}
    assert said == set(EVERY_REASON)


def test_nothing_is_exported_that_the_catalogue_does_not_name() -> None:
    instruments = PartitionerInstruments(settings())
    instruments.watch(lambda: STATUS, lambda: TOLD)
    instruments.block(0.004)
    known = {series for metric in METRICS.values() for series in metric.series}
    assert {name for name, _ in scraped(instruments)} <= known


def test_no_metric_has_a_key_in_it() -> None:
    instruments = PartitionerInstruments(settings())
    instruments.watch(lambda: STATUS, lambda: TOLD)
    assert b"secret" not in generate_latest(instruments.registry)


LATENCIES = [(400, 100), (2_000, 300), (400_000, 1)]


def batch(**changed: Any) -> BatchRecord:
    combine = PartWork(
        tasks=4,
        busy_ms=2_000.0,
        longest_ms=1_000.0,
        rows=500,
        keys=30.0,
        replication=1.2,
        latencies=LATENCIES,
    )
    reduce = PartWork(
        tasks=2, busy_ms=100.0, longest_ms=50.0, rows=60, keys=30.0, repeated=7, result_latencies=[(900, 30)]
    )
    fields: dict[str, Any] = {
        "stage": "fused", "batch": 3, "rows": 8, "duration_ms": 4_500, "batch_interval_ms": 5_000,
        "load": 0.9,
        "backlog": 2, "parts": {"combine": combine, "reduce": reduce}, "slots": 2, "executors": 1, "epoch": 7,
        "mark": COMMON["time"] - 3_000, "tuples": 500, "rows_out": 30, "windows_closed": 2, "unfit": 1,
        "last_window_end": COMMON["time"] - 4_000, "open_windows": 3, "open_panes": 2, "reducers": 4,
        "finished": 2,
    }  # fmt: skip
    return BatchRecord(**COMMON, **fields | changed)


def test_a_spark_application_adds_up_its_micro_batches() -> None:
    instruments = SparkInstruments(settings())
    instruments.batch(batch())
    instruments.batch(batch(batch=4, load=0.5, windows_closed=0))
    seen = scraped(instruments)
    assert seen["evenflow_load_ratio", ("fused",)] == 0.5
    assert seen["evenflow_batch_seconds_count", ("fused",)] == 2
    assert seen["evenflow_batch_rows_total", ("fused",)] == 16
    assert (
        seen["evenflow_part_rows_total", ("combine",)],
        seen["evenflow_part_seconds_total", ("combine",)],
    ) == (1_000, 4)
    assert seen["evenflow_task_spread_ratio", ("combine",)] == 2
    assert (seen["evenflow_result_rows_total", ()], seen["evenflow_windows_closed_total", ()]) == (60, 2)
    # The window ended 4 s before the record, and was due 0.5 s later.
    assert seen["evenflow_window_close_delay_seconds_count", ()] == 1
    assert seen["evenflow_window_close_delay_seconds_sum", ()] == 3.5
    assert (seen["evenflow_executors", ()], seen["evenflow_open_windows", ()]) == (1, 3)
    assert (seen["evenflow_reducers", ()], seen["evenflow_open_panes", ()]) == (4, 2)
    assert seen["evenflow_result_latency_seconds_bucket", ("1.0",)] == 60
    assert seen["evenflow_result_latency_seconds_sum", ()] == 54


def test_the_limits_of_a_micro_batch_are_exported_as_set_or_chosen() -> None:
    instruments = SparkInstruments(settings(), ("combine", "reduce"))
    instruments.batch(batch(stage="combine", frames_per_batch=400, combine_tasks=4))
    beat = HeartbeatRecord(
        **COMMON, stage="reduce", batch_interval_ms=5_000, finished=0, frames_per_batch=700, buckets=2
    )
    instruments.heartbeat(beat)
    seen = scraped(instruments)
    frames, tasks = "evenflow_max_frames_per_batch", "evenflow_combine_tasks"
    assert (seen[frames, ("combine",)], seen[frames, ("reduce",)]) == (400, 700)
    assert seen[tasks, ("combine",)] == 4
    assert (tasks, ("reduce",)) not in seen, "a stage that does not combine has no tasks for it"
    assert seen["evenflow_buckets", ("reduce",)] == 2
    assert ("evenflow_buckets", ("combine",)) not in seen
    instruments.batch(batch(stage="combine", batch=4))  # as an older application says it
    assert (frames, ("combine",)) not in scraped(instruments)


def test_repeated_rows_of_the_first_micro_batch_are_an_increase() -> None:
    instruments = SparkInstruments(settings())
    assert scraped(instruments)["evenflow_duplicates_dropped_total", ()] == 0
    instruments.batch(batch())
    assert scraped(instruments)["evenflow_duplicates_dropped_total", ()] == 7


def test_latencies_count_once_for_each_tuple() -> None:
    instruments = SparkInstruments(settings())
    instruments.batch(batch())
    instruments.batch(batch(batch=4, stage="reduce"))
    instruments.batch(batch(batch=5, parts={}))
    seen = scraped(instruments)
    latency = "evenflow_end_to_end_latency_seconds"
    by_bound = {
        bound: seen[f"{latency}_bucket", (bound, "fused")]
        for bound in ("0.25", "0.5", "2.0", "300.0", "+Inf")
    }
    assert by_bound == {"0.25": 0, "0.5": 100, "2.0": 400, "300.0": 400, "+Inf": 401}
    assert seen[f"{latency}_count", ("fused",)] == 401
    assert seen[f"{latency}_sum", ("fused",)] == 40 + 600 + 400
    assert seen[f"{latency}_count", ("reduce",)] == 0, "its blobs said nothing"
    assert (seen["evenflow_duplicates_dropped_total", ()], seen["evenflow_replication_factor", ()]) == (
        14,
        1.2,
    )


def test_a_heartbeat_says_how_long_the_present_micro_batch_runs() -> None:
    instruments = SparkInstruments(settings())
    beat = HeartbeatRecord(
        **COMMON, stage="fused", batch=3, running_ms=12_000, batch_interval_ms=5_000, finished=2, epoch=8
    )
    instruments.heartbeat(beat)
    assert scraped(instruments)["evenflow_batch_running_seconds", ("fused",)] == 12
    assert scraped(instruments)["evenflow_plan_epoch", ("spark",)] == 8
    instruments.heartbeat(beat.model_copy(update={"running_ms": None}))
    assert scraped(instruments)["evenflow_batch_running_seconds", ("fused",)] == 0


def test_the_combine_stage_alone_has_no_results() -> None:
    instruments = SparkInstruments(settings(), ("combine",))
    instruments.batch(batch(stage="combine", windows_closed=0, rows_out=0))
    assert ("evenflow_result_rows_total", ()) not in scraped(instruments)


def decision(**changed: Any) -> DecisionRecord:
    fields: dict[str, Any] = {"policy": "fixed", "step": 1, "p": 2, "r": 2, "wanted_p": 2, "wanted_r": 2}
    return DecisionRecord(**COMMON, **fields | changed)


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({}, "none"),
        ({"wanted_p": 3}, "out"),
        ({"wanted_r": 1}, "in"),
        ({"wanted_p": 3, "wanted_r": 1}, "mixed"),
        ({"wanted_p": 3, "held": True}, "held"),
    ],
)
def test_decisions_are_counted_by_what_they_do(changed: dict[str, Any], name: str) -> None:
    assert outcome(decision(**changed)) == name


def test_a_controller_says_whom_it_hears_and_what_it_decides() -> None:
    instruments = ControllerInstruments(settings())
    instruments.watch(
        record_count=lambda: 9,
        ignored=lambda: {"of another query": 2},
        silence=lambda: {"fused": 1.5},
        patience=20.0,
    )
    assert ("evenflow_zone", ()) not in scraped(instruments)
    instruments.decided(decision(wanted_p=4, zone=3, observation={"load": 1.2}))
    seen = scraped(instruments)
    assert (seen["evenflow_zone", ()], seen["evenflow_observed_load_ratio", ()]) == (3, 1.2)
    assert (seen["evenflow_planned_workers", ()], seen["evenflow_wanted_workers", ()]) == (2, 4)
    assert seen["evenflow_telemetry_ignored_total", ("of another query",)] == 2
    assert seen["evenflow_part_silence_seconds", ("fused",)] == 1.5
    assert seen["evenflow_patience_seconds", ()] == 20


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_names_follow_prometheus(metric: Any) -> None:
    assert re.fullmatch(r"evenflow_[a-z]+(_[a-z]+)*", metric.name)
    assert not metric.name.endswith("_total"), "the library adds it"
    assert metric.help.endswith((".", "held."))
    assert set(metric.labels) <= LABELS
    assert (metric.kind == "histogram") == bool(metric.bounds)


def test_a_label_that_a_metric_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="has the labels"):
        Sheet("q").put(METRICS["evenflow_zone"], 1, key="a")


def test_metrics_are_served_and_a_port_in_use_is_named() -> None:
    instruments, before = SparkInstruments(settings()), set(threading.enumerate())
    with served(instruments, "127.0.0.1", 0, setting="spark.web_port") as port:
        text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics/", timeout=10).read().decode()
        assert 'evenflow_build_info{part="spark"' in text
        assert "process_cpu_seconds_total" in text
        again = served(instruments, "127.0.0.1", port, setting="spark.web_port")
        with pytest.raises(ConfigError, match=f":{port}: ") as refused, again:
            pass
        assert "set spark.web_port" in str(refused.value.hint)
    left = set(threading.enumerate()) - before
    assert not [thread for thread in left if "serve_forever" in thread.name]


def test_what_views_do_is_said_under_their_names_and_each_metric_is_declared_once() -> None:
    query = {"name": "q", "window": "4s", "slide": "1s", "views": {"v": {"aggregates": {"n": "count"}}}}
    instruments = SparkInstruments(load_settings(query=query, input={"partitions": 2}))
    instruments.batch(batch())
    instruments.batch(batch(rows_out=7).model_copy(update={"query": "q.v"}))
    instruments.heartbeat(
        HeartbeatRecord(**COMMON | {"query": "q.v"}, stage="fused", batch_interval_ms=5_000, finished=1)
    )
    text = generate_latest(instruments.registry).decode()
    rows = {
        sample.labels["query"]: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "evenflow_result_rows_total"
    }
    assert rows == {"q": 30, "q.v": 7}
    declared = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(declared) == len(set(declared))
