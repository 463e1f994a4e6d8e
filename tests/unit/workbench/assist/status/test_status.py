from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from cli.main import app
from evenflow.due_windows import ResultDelays
from evenflow.errors import ServiceError
from evenflow.progress import PartitionState
from evenflow.reporting import silent_after
from evenflow.settings import Settings, load_settings
from evenflow.settings.sections.query import Query
from evenflow.telemetry import (
    BatchesState,
    BatchRecord,
    BatchState,
    DecisionRecord,
    ExchangeState,
    HeartbeatRecord,
    PartitionerRecord,
    Standstill,
    Telemetry,
)
from partitioner_service.reports.rejections import EVERY_REASON
from topics.groups import Member
from workbench.assist.activity import Activity, Part, parts_of, unfit_of
from workbench.assist.status.facts import Facts, PartitionFacts, RejectedCounts, StageFacts, windows_of
from workbench.assist.status.judging import findings, state_of, wrong
from workbench.assist.status.read import _reason, leap_of, losses
from workbench.assist.status.reports import report_line
from workbench.assist.status.results import can_look
from workbench.assist.status.screen import as_json, screen
from workbench.assist.status.words import ago, moment
from workbench.verify.inputs import REASONS

NOW = 1_700_000_000_000
SILENT_MS = round(1_000 * silent_after())
QUERY = Query(window=4_000, slide=1_000, out_of_orderness=500)
MEMBER = Member("evenflow-w-0", "127.0.0.1", (0, 1))
WHO: dict[str, Any] = {"query": "w", "fingerprint": "0" * 16, "time": NOW}
STAGE: dict[str, Any] = {**WHO, "stage": "fused", "batch": 7, "batch_interval_ms": 1_000, "finished": 1}
SPARK = Part(at=NOW - 2_000, telemetry=BatchRecord(**STAGE, rows=1_200, duration_ms=400, load=0.4))
WAITING = HeartbeatRecord(**STAGE)
WAITING_PART = Part(at=NOW, telemetry=WAITING)
LAST_BATCH = BatchState(
    tuples=900, keys=40, split=2, bsi=4.0, bci=3.0, ksr=1.05, mpi=2.7, reduce_bsi=5.0, reduce_bci=6.0,
    reduce_ksr=1.0,
    reduce_mpi=4.0, took_ms=40.0, late=0.03,
)  # fmt: skip
PARTITIONER = PartitionerRecord(
    **WHO, instance="0", started=NOW, owned=2, inputs=2, epoch=3, workers=4, tuples=900, rejected=0, read=900,
    filtered=0,
    period_ms=1_000, rate=450.2, busy=0.25, lag=7,
)  # fmt: skip
DECISION = DecisionRecord(**WHO, policy="ds2", step=4, p=4, r=2, wanted_p=6, wanted_r=1, zone=3, epoch=9)


def state(largest: int | None, *, first: int = 10_000, **fields: Any) -> PartitionState:
    known = {"first_time": None if largest is None else first, "max_time": largest}
    return PartitionState(
        fingerprint="f", topic_id="t", **({"offset": 100, "read": 100, "routed": 100} | known | fields)
    )


def ended(largest: int) -> PartitionState:
    return state(largest, ended_producers=("p",), announced=1)


def partition(
    number: int, committed: PartitionState | None, *, end: int = 100, begin: int = 0
) -> PartitionFacts:
    return PartitionFacts.of(QUERY, number, (begin, end), committed)


def facts(*partitions: PartitionFacts, written: tuple[int, int] | None = None, **fields: Any) -> Facts:
    result: dict[str, Any] = {
        "query": "w", "topic": "w.input", "now": NOW, "recorded": False, "changed": (),
        "partitions": partitions,
        "rejected": RejectedCounts(by_reason={}, whole=True),
        "windows": windows_of(QUERY, partitions, written),
        "workers": 8, "plan": None, "members": (MEMBER,), "parts": (SPARK,), "ignored": 0, "stages": (),
        "troubles": (),
        "idle_timeout": None,
    }  # fmt: skip
    return Facts(**(result | fields))


def shown(found: Facts, width: int = 130) -> str:
    console = Console(width=width, file=StringIO())
    console.print(screen(found, width=width))
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_a_query_in_which_all_is_well_has_nothing_wrong() -> None:
    result = facts(partition(0, state(20_700)), partition(1, state(21_900)), written=(20_000, NOW))
    assert wrong(result) == []
    assert result.windows.due == 20_000
    assert (result.windows.missing, result.windows.next, result.windows.needs) == (0, 21_000, 21_500)
    assert shown(result).endswith("nothing is wrong\n")
    assert wrong(replace(result, ending=("kafka.ssl_ca: ca.pem ended on 2030-06-15",))) == [
        "kafka.ssl_ca: ca.pem ended on 2030-06-15: replace the file and restart what uses it"
    ]


def test_the_windows_that_are_due_follow_the_slowest_partition() -> None:
    result = windows_of(QUERY, (partition(0, state(15_600)), partition(1, state(99_000))), (14_000, NOW))
    assert (result.due, result.missing) == (15_000, 1)


@pytest.mark.parametrize(
    ("query", "largest", "said"),
    [
        (
            {"out_of_orderness": "20761d"},
            NOW,
            'd: query.out_of_orderness is "20761d", for windows of 4s; a smaller',
        ),
        ({"allowed_lateness": "2d"}, NOW, 'in 2 d: query.allowed_lateness is "2d", for windows of 4s'),
        (
            {"out_of_orderness": "2d"},
            NOW - 10 * 86_400_000,
            'query.out_of_orderness is "2d", so a window of 4s closes only',
        ),
        ({}, NOW + 86_400_000, "in 1 d: event times that were read lie ahead of the clock"),
        ({"out_of_orderness": "30m"}, NOW, None),
        ({"allowed_lateness": "2h", "late": "update"}, NOW, None),
        ({"max_ahead_of_clock": "off"}, NOW + 86_400_000, None),
    ],
)
def test_windows_that_stay_open_far_too_long_are_a_warning_and_the_setting_is_named(
    query: dict[str, Any], largest: int, said: str | None
) -> None:
    slow = Query(window=4_000, slide=1_000, **query)
    only = PartitionFacts.of(slow, 0, (0, 100), state(largest, first=largest))
    result = facts(only, windows=windows_of(slow, (only,), None), delays=ResultDelays.of(slow))
    assert (said is None) == (wrong(result) == [])
    if said is not None:
        (sentence,) = wrong(result)
        assert said in sentence
        assert level(result) == "warning"
        assert "nothing is wrong" not in shown(result)
    over = replace(result, partitions=(PartitionFacts.of(slow, 0, (0, 100), ended(largest)),))
    assert not [line for line in wrong(over) if "out_of_orderness" in line or "no window closes" in line]


def test_windows_before_the_first_tuple_are_never_due() -> None:
    result = windows_of(QUERY, (partition(0, state(10_400)),), None)
    assert (result.due, result.missing, result.next) == (None, 0, 11_000)


def test_with_updates_windows_are_due_when_the_watermark_has_passed_them() -> None:
    late = {"allowed_lateness": 3_000}
    waits, updates = (QUERY.model_copy(update={**late, "late": name}) for name in ("reject", "update"))
    states = [PartitionFacts.of(query, 0, (0, 9), state(20_500)) for query in (waits, updates)]
    result = [
        windows_of(query, (one,), (17_000, NOW)) for query, one in zip((waits, updates), states, strict=True)
    ]
    assert [(one.due, one.missing, one.needs) for one in result] == [(17_000, 0, 21_500), (20_000, 3, 21_500)]


def test_with_updates_status_says_when_windows_come_out_and_not_when_they_close() -> None:
    query = QUERY.model_copy(update={"allowed_lateness": 3_000, "late": "update"})
    one = PartitionFacts.of(query, 0, (0, 9), state(20_500))
    text = shown(facts(one, windows=windows_of(query, (one,), (20_000, NOW)), delays=ResultDelays.of(query)))
    assert "windows: due up to 1970-01-01 00:00:20" in text
    (upcoming,) = (line for line in text.splitlines() if line.startswith("next: "))
    assert "comes out when every partition is past" in upcoming
    assert "close" not in text


def test_after_the_end_the_last_window_is_the_last_that_holds_the_newest_tuple() -> None:
    result = windows_of(QUERY, (partition(0, ended(20_700)), partition(1, ended(12_000))), None)
    assert (result.due, result.missing, result.next) == (24_000, 14, None)


def test_windows_before_emit_from_are_not_waited_for() -> None:
    query = QUERY.model_copy(update={"emit_from": 15_000})
    result = windows_of(query, (PartitionFacts.of(query, 0, (0, 9), state(20_500)),), None)
    assert (result.due, result.missing) == (20_000, 2)


@pytest.mark.parametrize("sparse", [{"emit": "changes"}, {"where": "amount > 5"}])
def test_windows_that_may_have_no_row_are_not_waited_for_after_the_end(sparse: dict[str, Any]) -> None:
    """A filter keeps nothing of the last windows, or nothing changes in them; Spark has ended long ago."""
    query = QUERY.model_copy(update=sparse)
    over = (partition(0, ended(20_700)), partition(1, ended(12_000)))
    windows = windows_of(query, over, (21_000, NOW))
    assert windows.missing == 3
    told = " ".join(shown(facts(*over, windows=windows)).split())
    assert "at most 3 windows on the way or without a row" in told
    silent = facts(*over, windows=windows, parts=(), members=())
    assert not [line for line in wrong(silent) if "nothing aggregates" in line]
    plain = facts(*over, written=(21_000, NOW), parts=(), members=())
    assert [line for line in wrong(plain) if "nothing aggregates" in line]
    begun = facts(*over, windows=windows_of(query, over, None), parts=(), members=())
    assert [line for line in wrong(begun) if "nothing aggregates" in line], "Spark has not run"


def test_a_gap_that_idle_partitions_do_not_follow_is_named_with_what_to_do() -> None:
    settings = load_settings(query={"name": "q", "window": "1s"}, partitioner={"idle_timeout": "5s"})
    leapt, idle = partition(0, state(3_600_000, steady_from=3_600_000)), partition(1, state(20_000))
    words = leap_of(settings, (leapt, idle))
    assert words is not None
    assert words.startswith("input partition 0 leapt to 1970-01-01 01:00:00 UTC")
    assert "set partitioner.max_skew to more than the gap" in words
    assert words in wrong(facts(leapt, idle, leap=words, idle_timeout=5_000))
    steady = partition(0, state(3_600_000, steady_from=10_000))
    there = partition(2, state(3_600_100, steady_from=3_600_100))
    for others in ((steady, idle), (leapt, idle, there), (leapt,), (leapt, partition(1, ended(20_000)))):
        assert leap_of(settings, others) is None
    assert leap_of(settings, (leapt, partition(1, state(20_000), end=101))) is None, "it has records to read"
    assert leap_of(load_settings(query={"name": "q", "window": "1s"}), (leapt, idle)) is None


def test_values_that_did_not_fit_are_counted_once_a_micro_batch_and_named() -> None:
    def done(batch: int, unfit: int) -> Part:
        return Part(
            at=NOW, telemetry=BatchRecord(**STAGE | {"batch": batch}, rows=1, duration_ms=1, unfit=unfit)
        )

    assert unfit_of([SPARK, done(8, 2), done(9, 5), WAITING_PART, done(9, 5)]) == 7
    result = facts(partition(0, state(20_700)), unfit=7)
    assert wrong(result)[-1].startswith("7 result values are null")
    assert as_json(result)["unfit"] == 7
    assert wrong(facts(partition(0, state(20_700)), unfit=1))[-1].startswith("1 result value is null")


def test_a_partition_without_a_record_holds_everything_back_and_is_named() -> None:
    parts = [partition(0, state(20_700)), partition(1, state(None, offset=0, read=0, routed=0), end=0)]
    (concern,) = wrong(facts(*parts))
    assert (
        concern == "waits for partition 1 without any record (partitioner.idle_timeout is none, so for ever)"
    )
    assert wrong(facts(*parts, idle_timeout=5_000)) == []
    assert "no partitioner runs" in wrong(facts(*parts, idle_timeout=5_000, members=()))[-1]
    asleep = replace(parts[1], state=state(None, asleep=True), mark=20_000)
    assert wrong(facts(parts[0], asleep)) == []


def test_lag_without_a_partitioner_is_said() -> None:
    result = facts(partition(0, state(20_700), end=1_300), members=(), written=(20_000, NOW))
    assert wrong(result) == ["no partitioner is running, and 1,200 records wait to be read"]


def test_windows_that_nobody_writes_are_said_once_spark_is_silent() -> None:
    late = facts(partition(0, state(20_700)), written=(15_000, NOW))
    assert wrong(late) == []
    silent = replace(SPARK, at=NOW - 120_000)
    (concern,) = wrong(replace(late, parts=(silent,)))
    assert "up to 5 windows are due and not written, and nothing was heard of Spark for 2 min" in concern
    assert "Spark has not run yet" in wrong(replace(late, parts=()))[0]
    at_work = StageFacts(stage="fused", batches=3, last_at=NOW - 1_000)
    assert wrong(replace(late, parts=(silent,), stages=(at_work,))) == []


def test_windows_whose_results_lie_where_status_cannot_look_are_not_called_missing() -> None:
    over = (partition(0, ended(20_700)), partition(1, ended(12_000)))
    silent = {"members": (), "parts": (replace(SPARK, at=NOW - 120_000),)}
    result = facts(*over, windows=windows_of(QUERY, over, None, looked=False), **silent)
    assert wrong(result) == []
    assert "written where status cannot look" in shown(result)
    timeless = facts(*over, windows=windows_of(QUERY, over, (24_000, None)), **silent)
    assert wrong(timeless) == []
    assert "written up to 1970-01-01 00:00:24\n" in shown(timeless), "a table of Postgres does not say when"
    for results, looks in (
        ({"sink": "kafka"}, True),
        ({"sink": "parquet", "path": "/results"}, True),
        ({"sink": "parquet", "path": "s3a://bucket/results"}, False),
        ({"sink": "postgres", "path": "postgresql://evenflow@127.0.0.1:1/rows/table"}, True),
    ):
        assert can_look(load_settings(query={"name": "w"}, input={"partitions": 1}, results=results)) is looks


def level(found: Facts) -> str:
    return state_of(findings(found))


def test_a_spark_that_fell_silent_is_wrong_within_fifteen_seconds_whether_windows_are_due_or_not() -> None:
    result = facts(partition(0, state(20_700)), written=(20_000, NOW))
    silent = replace(result, parts=(replace(SPARK, at=NOW - SILENT_MS),))
    assert SILENT_MS < 15_000
    assert wrong(silent) == ["nothing was heard of spark fused for 12 s; is `evenflow aggregate` running?"]
    assert (level(result), level(silent)) == ("ok", "wrong")
    slow = Part(
        at=NOW - 50_000, telemetry=BatchRecord(**STAGE | {"batch_interval_ms": 20_000}, rows=1, duration_ms=1)
    )
    assert wrong(replace(result, parts=(slow,))) == []
    over = facts(partition(0, ended(20_700)), written=(24_000, NOW), parts=silent.parts)
    assert wrong(over) == [], "an application that has emitted all has nothing more to say"


def test_a_micro_batch_that_does_not_end_and_a_partitioner_that_hangs_are_wrong() -> None:
    result = facts(partition(0, state(20_700)), written=(20_000, NOW))
    stuck = Part(at=NOW, telemetry=WAITING.model_copy(update={"running_ms": 31_000}))
    assert wrong(replace(result, parts=(stuck,))) == ["spark fused has been in one micro-batch for 31 s"]
    hung = Part(at=NOW - SILENT_MS, telemetry=PARTITIONER)
    (text,) = wrong(replace(result, parts=(SPARK, hung)))
    assert text == "partitioner 0 is in its group, but nothing was heard of it for 12 s"
    assert wrong(replace(result, parts=(SPARK, hung), members=())) == [], "it has left"


def test_a_micro_batch_is_slow_before_it_is_stuck_and_the_first_of_a_process_may_take_longer() -> None:
    result = facts(partition(0, state(20_700)), written=(20_000, NOW))

    def running(seconds: int, **fields: Any) -> str:
        said = WAITING.model_copy(update={"running_ms": 1_000 * seconds, **fields})
        return level(replace(result, parts=(Part(at=NOW, telemetry=said),)))

    assert [running(seconds) for seconds in (11, 12, 29, 30)] == ["ok", "warning", "warning", "wrong"]
    assert [running(seconds, batch=None) for seconds in (12, 59, 60)] == ["ok", "ok", "wrong"]
    assert [running(seconds, batch_interval_ms=20_000) for seconds in (99, 100)] == ["ok", "wrong"]


def test_what_a_partitioner_calls_unhealthy_is_wrong_here_too_and_said_once() -> None:
    parts = (partition(0, state(20_700)), partition(1, state(19_000)))
    still = [
        Standstill(what="waits for newer tuples", why="input partition 1 had nothing new"),
        Standstill(what="waits for a first tuple", why="input partition 2 had no tuple yet"),
    ]
    said = Part(at=NOW, telemetry=PARTITIONER.model_copy(update={"standing": still}))
    result = facts(*parts, written=(20_000, NOW), parts=(SPARK, said))
    assert wrong(result) == [f"partitioner 0: {one.why}" for one in still]
    assert level(result) == "wrong"
    assert wrong(replace(result, members=(), parts=(SPARK, replace(said, at=NOW - SILENT_MS)))) == []
    blank = partition(2, state(None, offset=0, read=0, routed=0), end=0)
    both = wrong(facts(*parts, blank, parts=(SPARK, said)))
    assert len([one for one in both if "partition 2" in one]) == 1


def test_topics_that_are_gone_are_named() -> None:
    result = facts(partition(0, state(20_700)), written=(20_000, NOW), missing=("w.results", "w.routed"))
    assert wrong(result)[0].startswith("w.results, w.routed are gone, with all that was in it")
    assert level(result) == "wrong"


def test_results_that_are_gone_from_a_folder_are_named_where_the_query_has_written_to_it(
    tmp_path: Path,
) -> None:
    settings = load_settings(
        query={"name": "w", "key": "k", "aggregates": {"n": "count"}},
        input={"partitions": 1},
        results={"sink": "parquet", "path": str(tmp_path / "none")},
    )

    def seen(
        one: Settings = settings, *, parts: tuple[Part, ...] = (SPARK,), here: bool = True, begun: bool = True
    ) -> list[Any]:
        return list(losses([one], checkpoint=here, parts=parts, begun=lambda _: begun))

    (loss,) = seen()
    assert loss.level == "wrong"
    assert "is not there, so the results that the query has written there are gone" in loss.text
    assert wrong(facts(partition(0, state(20_700)), written=(20_000, NOW), losses=(loss,)))[0] == loss.text
    assert seen(begun=False) == [], "a relative path means another folder here"
    assert seen(here=False) == [], "Spark runs on another machine, and so is the folder"
    elsewhere = {"sink": "postgres", "path": "postgresql://evenflow@127.0.0.1:1/rows/table"}
    far = settings.model_copy(update={"results": settings.results.model_copy(update=elsewhere)})
    (unknown,) = seen(far, here=False)
    assert unknown.level == "warning"
    assert unknown.text.startswith("whether the results are there is not known: Postgres refuses the table")
    assert (
        seen(far, here=False, parts=(replace(SPARK, telemetry=WAITING.model_copy(update={"batch": None})),))
        == []
    )


def test_a_query_whose_spark_was_never_started_has_a_warning() -> None:
    assert level(facts(partition(0, state(20_700)), parts=())) == "warning"


def test_the_state_is_the_worst_finding_and_stands_in_the_json() -> None:
    few = facts(partition(0, state(20_700)), written=(20_000, NOW), unfit=1)
    gone = replace(few, members=(), partitions=(partition(0, state(20_700), end=1_300),))
    assert (level(few), level(gone)) == ("warning", "wrong")
    assert as_json(few)["state"] == "warning"
    assert [one["level"] for one in as_json(gone)["findings"]] == ["wrong", "warning"]
    assert "warning: 1 result value is null" in shown(few)
    assert "! no partitioner is running" in shown(gone)
    half = facts(partition(0, state(20_700, routed=40, rejected=60)), written=(20_000, NOW))
    assert level(half) == "wrong"


@pytest.mark.parametrize(
    ("rejected", "said"), [(0, []), (1, []), (12, ["12 % of what was read is rejected, mostly late"])]
)
def test_a_share_of_rejected_above_one_per_cent_is_said(rejected: int, said: list[str]) -> None:
    committed = state(20_700, routed=100 - rejected, rejected=rejected)
    reasons = RejectedCounts(by_reason={"late": 8, "unreadable": 4}, whole=True)
    assert wrong(facts(partition(0, committed), written=(20_000, NOW), rejected=reasons)) == said


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_for_which_a_partitioner_rejects_is_named(reason: str) -> None:
    class Record:
        def headers(self) -> list[tuple[str, bytes]]:
            return [("evenflow-reason", reason.encode())]

    assert _reason(Record()) == reason  # type: ignore[arg-type]
    assert set(EVERY_REASON) == set(REASONS), "verify has a list of its own"


def test_records_that_are_gone_before_they_were_read_are_said() -> None:
    result = facts(partition(0, state(20_700), begin=120, end=200), written=(20_000, NOW))
    assert wrong(result) == ["records 100 to 119 of partition 0 are gone before they were read (retention)"]


def test_a_query_that_has_not_begun_says_so_and_nothing_else() -> None:
    result = facts(partition(0, None, end=1_200), members=(), parts=())
    assert wrong(result) == ["the query has not begun: start `evenflow partition`"]
    assert "not begun" in shown(result)
    assert "committed offsets are gone" in wrong(replace(result, recorded=True))[0]
    assert as_json(result)["partitions"][0]["lag"] == 1_200


def test_changed_settings_are_named_and_the_query_is_shown_all_the_same() -> None:
    result = facts(
        partition(0, state(20_700)), written=(20_000, NOW), changed=('query.window: "1m" -> "4s"',)
    )
    assert "query.window" in wrong(result)[0]
    assert "windows: closed up to 1970-01-01 00:00:20" in shown(result)


def test_the_json_is_plain_and_holds_what_the_screen_shows() -> None:
    result = facts(partition(0, state(20_700)), written=(20_000, NOW))
    fields = json.loads(json.dumps(as_json(result)))
    assert fields["windows"] == {
        "due": 20_000, "written": 20_000, "written_at": NOW, "missing": 0, "next": 21_000, "needs": 21_500,
        "sparse": False, "looked": True,
    }  # fmt: skip
    assert fields["members"] == [{"client_id": "evenflow-w-0", "host": "127.0.0.1", "partitions": [0, 1]}]
    text = shown(result)
    assert "heard: spark fused, 2 s ago: micro-batch 7, 1,200 rows, W 0.4" in text
    assert "alive: evenflow-w-0 on 127.0.0.1 reads 0-1" in text


def test_what_an_instance_tells_and_hears_in_a_second_is_in_the_json_and_of_one_that_tells_nothing_none() -> (
    None
):
    telling = ExchangeState(instances=2, elected=False, rate_in=2_051.7, rate_out=683.0)
    for exchange in (telling, None):
        said = PARTITIONER.model_copy(update={"exchange": exchange})
        result = facts(partition(0, state(20_700)), parts=(Part(at=NOW, telemetry=said),))
        (part,) = json.loads(json.dumps(as_json(result)))["parts"]
        rates = part["said"]["exchange"] and [
            part["said"]["exchange"][name] for name in ("rate_in", "rate_out")
        ]
        assert rates == (exchange and [2_051.7, 683.0])
        assert ("B/s" in shown(result)) == (exchange is not None)


def test_nothing_is_cut_off_in_a_narrow_terminal() -> None:
    largest = NOW + 123
    result = facts(
        *(partition(n, state(largest, offset=10**6, read=10**6, routed=10**6), end=9 * 10**6) for n in (0, 1))
    )
    text = shown(result, width=80)
    assert "…" not in text
    assert text.count("1,000,000") == 6
    assert text.count("22:13:19.623") == 4


def test_who_is_in_the_group_is_named_and_others_are_heard_of_by_their_newest_report() -> None:
    partitioner = Part(at=NOW, telemetry=PARTITIONER)
    older = Part(at=NOW - 9_000, telemetry=HeartbeatRecord(**{**STAGE, "stage": "reduce"}))
    activity = Activity(members=(MEMBER,), parts=(SPARK, partitioner, older))
    assert activity.owners == ["evenflow-w-0 on 127.0.0.1 is in the partitioners' group"]
    assert activity.heard_last == SPARK
    controller = Part(at=NOW - 1_000, telemetry=DECISION)
    assert Activity(members=(), parts=(SPARK, controller)).heard_last == controller
    assert Activity(members=(), parts=(partitioner,)).heard_last is None


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (PARTITIONER, "450 tuples/s, busy 25 %, lag 7, 4 workers by plan epoch 3"),
        (
            PARTITIONER.model_copy(update={"rate": None, "busy": None, "lag": None, "epoch": 0,
            "plans_ignored": 2}),
            "no rate yet, 4 workers by the settings, 2 hostile records in the plan topic",
        ),
        (
            PARTITIONER.model_copy(
                update={"batches": BatchesState(interval_ms=1_500, clock="event", count=1)}
            ),
            "450 tuples/s, busy 25 %, lag 7, 4 workers by plan epoch 3, 1 micro-batch of 1.5 s of event time",
        ),
        (
            PARTITIONER.model_copy(
                update={
                    "batches": BatchesState(
                        interval_ms=1_000,
                        clock="processing",
                        count=1_204,
                        cut_short={"skew": 2, "memory": 10},
                        by_fallback=31,
                        last=LAST_BATCH,
                    )
                }
            ),
            "450 tuples/s, busy 25 %, lag 7, 4 workers by plan epoch 3, "
            "1,204 micro-batches of 1 s of processing time, "
            "cut short: memory 10, skew 2, 31 planned by the fallback, the last took 40 ms and came 3 % of "
            "its interval late",
        ),
        (
            PARTITIONER.model_copy(update={"exchange": ExchangeState(instances=3, elected=False)}),
            "450 tuples/s, busy 25 %, lag 7, 4 workers by plan epoch 3, has heard no table",
        ),
        (
            PARTITIONER.model_copy(
                update={
                    "exchange": ExchangeState(
                        instances=3,
                        elected=True,
                        round=1_204,
                        members=2,
                        age_ms=3_000,
                        unanswered=4,
                        rate_in=2_051.7,
                        rate_out=683.0,
                    )
                }
            ),
            "450 tuples/s, busy 25 %, lag 7, 4 workers by plan epoch 3, "
            "heard table 1,204 of 2 instances 3 s ago, "
            "4 messages since, tells 683 B/s, hears 2,052 B/s, makes the tables",
        ),
        (WAITING, "waits for input, micro-batch 7 was the last"),
        (
            WAITING.model_copy(update={"batch": None, "running_ms": 12_000}),
            "in a micro-batch for 12 s, none finished yet",
        ),
        (DECISION, "ds2 in zone 3 wants 6 workers and 1 bucket at once, published plan epoch 9"),
        (
            DECISION.model_copy(update={"zone": None, "epoch": None}),
            "ds2 wants 6 workers and 1 bucket at once, published nothing",
        ),
        (
            DECISION.model_copy(update={"zone": None, "epoch": None, "held": True,
            "reason": "no record of \x1b[2J"}),
            "ds2 holds: no record of \\x1b[2J",
        ),
        (PARTITIONER.model_copy(update={"rate": 1e17, "busy": None, "lag": None}),
        "? tuples/s, 4 workers by plan epoch 3"),
    ],
)  # fmt: skip
def test_each_kind_of_telemetry_is_said_in_words(said: Telemetry, words: str) -> None:
    assert report_line(said) == words


class Record:
    """A record of the telemetry topic."""

    def __init__(self, value: bytes | None, at: int) -> None:
        self._value, self._at = value, at

    def value(self) -> bytes | None:
        return self._value

    def timestamp(self) -> tuple[int, int]:
        return 1, self._at


def test_records_of_another_query_or_version_are_ignored_and_counted() -> None:
    foreign = PARTITIONER.model_copy(update={"fingerprint": "1" * 16})
    newer = PARTITIONER.encode().replace(b'"v":1', b'"v":2')
    former = b'{"part":"partitioner","instance":"0","tuples":3}'
    values = [SPARK.telemetry.encode(), foreign.encode(), WAITING.encode(), newer, former, None]
    records: Any = [Record(value, at) for at, value in enumerate(values)]
    parts, ignored = parts_of(records, fingerprint="0" * 16)
    assert [(part.name, part.at, part.telemetry) for part in parts] == [("spark fused", 2, WAITING)]
    assert ignored == 4
    text = shown(facts(partition(0, state(20_700)), parts=parts, ignored=ignored))
    assert "telemetry: 4 records of others ignored" in text


def test_times_are_said_as_a_person_reads_them() -> None:
    assert [moment(ms) for ms in (None, 0, 1_500, 10**18)] == [
        "-", "1970-01-01 00:00:00", "1970-01-01 00:00:01.500", "the year 31,690,708",
    ]  # fmt: skip
    assert [ago(ms) for ms in (-5, 1_999, 119_000, 7_000_000, 90_000_000, 10**9)] == [
        "0 ms", "2 s", "2 min", "1.9 h", "1 d", "11.6 d",
    ]  # fmt: skip


def test_without_a_broker_the_json_says_so_in_the_shape_of_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENFLOW_KAFKA__BOOTSTRAP_SERVERS", "127.0.0.1:1")
    monkeypatch.setenv("EVENFLOW_KAFKA__REQUEST_TIMEOUT", "1s")
    result = CliRunner().invoke(app, ["status", "--json"])
    assert isinstance(result.exception, ServiceError), "which ends the command with status 2"
    said = json.loads(result.stdout)
    (text,) = said["wrong"]
    assert text == result.exception.message
    assert text.startswith("no broker answers within 1 s at 127.0.0.1:1")
    assert (said["state"], said["findings"]) == ("wrong", [{"level": "wrong", "text": text}])
    assert set(said) <= set(as_json(facts(partition(0, state(20_700)))))
