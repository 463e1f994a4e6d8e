"""The controller on a real broker. The test writes telemetry as the partitioners and the Spark stages
would.
"""

from __future__ import annotations

import json
import logging
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from controller.decide import Judgement
from controller.memory import snapshot_record
from controller.service import Controller
from evenflow.errors import ConfigError
from evenflow.plans import Plan
from evenflow.settings import KafkaSettings, Settings
from evenflow.telemetry import DecisionRecord, parse
from tests.pipeline.planes import wait_until
from tests.pipeline.routed import create_topics, records
from tests.pipeline.spark_stream import start
from tests.unit.controller.parts import batch, partitioner, settings_of
from topics import clients
from topics.admin import delete_topics, describe
from topics.offsets import stable_ends
from topics.query.plan_topic import PlanWriter, WriterFenced, read_plans

pytestmark = pytest.mark.pipeline

HOUR_MS = 3_600_000


@dataclass
class Pipeline:
    """What the parts of a query say, a batch interval after the other, by a clock of its own (s)."""

    settings: Settings
    now: float = 1_000.0
    before_records: Callable[[], None] = lambda: None
    judged: list[Judgement] = field(default_factory=list)

    def __post_init__(self) -> None:
        create_topics(self.settings)
        self._producer = clients.producer(self.settings.kafka, linger_ms=0)

    def controller(self, **options: Any) -> Controller:
        """One that hears this pipeline and goes by its clock."""
        return Controller(
            self.settings,
            clock=lambda: self.now,
            wall=self._wall,
            tell=lambda judgement, _: self.judged.append(judgement),
            **options,
        )

    def _wall(self) -> float:
        self.before_records()
        return 1_700_000_000.0 + self.now

    def write(self, *values: bytes, role: str = "telemetry") -> None:
        """Records as they are."""
        for value in values:
            self._producer.produce(
                self.settings.topic(role), key=b"any", value=value
            )  # plans are compacted: a key
        clients.flush(self._producer, self.settings.kafka)

    def batch(
        self, controller: Controller | None = None, *, load: float = 0.85, workers: int = 4, skew: int = 0
    ) -> None:
        """A batch interval later: a partitioner and the fused stage have said something, and that is
        judged.
        """
        self.now += 5
        time_ms, millions = round(self.now * 1000), 1_700_000_000_000
        said = partitioner(
            self.settings,
            workers=workers,
            event_time=time_ms,
            mark=time_ms - 100,
            rate=self.now * self.now,
            time=millions,
        )
        done = batch(
            self.settings, duration_ms=round(5_000 * load), mark=time_ms - 1_500, time=millions + skew
        )
        self.write(said.encode(), done.encode())
        if controller is not None:
            self.judge(controller)

    def judge(self, controller: Controller, observations: int = 1) -> Judgement:
        """Let the controller work until it has judged so many more; the last of them."""
        wanted, deadline = len(self.judged) + observations, time.monotonic() + 30
        while len(self.judged) < wanted:
            assert time.monotonic() < deadline, "nothing was judged in time"
            controller.turn(0.2)
        return self.judged[-1]

    @property
    def decisions(self) -> list[DecisionRecord]:
        """Decisions in the telemetry topic."""
        wait_for_commits(self.settings, "telemetry")
        told = []
        for message in records(self.settings, "telemetry"):
            try:
                told.append(parse(message.value()))
            except ValueError:
                continue
        return [record for record in told if isinstance(record, DecisionRecord)]

    @property
    def plans(self) -> list[Plan]:
        """Plans in the plan topic."""
        wait_for_commits(self.settings, "plan")
        return read_plans(self.settings)


def wait_for_commits(settings: Settings, role: str) -> None:
    """Until no transaction is open: a commit returns before its marker is in each of the topics."""
    topic = settings.topic(role)

    def no_open_transaction() -> bool:
        state = describe(settings.kafka, [topic])[topic]
        return stable_ends(settings.kafka, state) == state.end

    wait_until(no_open_transaction)


@pytest.fixture
def pipeline(kafka_settings: KafkaSettings, query_name: str) -> Pipeline:
    return Pipeline(settings_of(name=query_name, kafka=kafka_settings.model_dump(exclude_unset=True)))


@contextmanager
def running(pipeline: Pipeline, **options: Any) -> Iterator[Controller]:
    controller = pipeline.controller(**options)
    try:
        yield controller
    finally:
        controller.close()


def test_what_piled_up_while_the_controller_was_cut_off_decides_nothing(pipeline: Pipeline) -> None:
    with running(pipeline) as controller:
        for _ in range(4):
            pipeline.batch(controller)
        for _ in range(8):  # it does not turn meanwhile, as if its broker were away
            pipeline.batch(load=1.6)
        before = len(pipeline.judged)
        held = pipeline.judge(controller)
        assert held.decision.held
        assert pipeline.plans == []
        assert len(pipeline.judged) == before + 1
        pipeline.batch(controller)
        assert not pipeline.judged[-1].decision.held


def test_a_spike_becomes_a_plan_of_more_workers_on_a_slide_boundary_and_is_over_once_it_is_realised(
    pipeline: Pipeline,
) -> None:
    with running(pipeline) as controller:
        for _ in range(6):
            pipeline.batch(controller)
        assert pipeline.plans == []
        while pipeline.judged[-1].plan is None:
            assert len(pipeline.judged) < 15, "an overload must be noticed"
            pipeline.batch(controller, load=1.6)
        (plan,) = pipeline.plans
        assert plan == pipeline.judged[-1].plan
        assert (plan.epoch, plan.p) == (1, 5)
        assert plan.effective_from % pipeline.settings.query.slide_ms == 0
        assert pipeline.now * 1000 < plan.effective_from <= pipeline.now * 1000 + 6_000
        pipeline.batch(controller, load=1.6)
        assert pipeline.judged[-1].evaluation.observation.settling, (
            "published, and the partitioner routes to 4"
        )
        pipeline.batch(controller, load=0.85, workers=5)
        last = pipeline.judged[-1].evaluation.observation
        assert (last.p, last.settling) == (5, False)
    exported = pipeline.decisions
    assert [decision.step for decision in exported] == list(range(1, len(pipeline.judged) + 1))
    (with_plan,) = [decision for decision in exported if decision.epoch is not None]
    assert (with_plan.p, with_plan.wanted_p, with_plan.zone) == (4, 5, 3)
    assert with_plan.effective_from == plan.effective_from
    assert with_plan.observation["load"] == pytest.approx(1.6)


def test_a_stage_that_reports_nothing_is_named_and_nothing_is_decided(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    with running(pipeline) as controller:
        pipeline.batch(controller)
        pipeline.now += 19
        pipeline.write(partitioner(pipeline.settings, busy=1.0, rate=9e9).encode())
        wait_until(lambda: controller.turn(0.2) or controller.record_count == 3)
        assert len(pipeline.judged) == 1
        pipeline.now += 1
        pipeline.judge(controller)
    last = pipeline.decisions[-1]
    assert last.held
    assert "no record of the fused stage for 20 s" in last.reason
    assert pipeline.plans == []
    assert sum("nothing is decided: no record of the fused stage" in text for text in caplog.messages) == 1


def test_strangers_hostile_bytes_and_clocks_an_hour_apart_change_nothing(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    other = settings_of(name=pipeline.settings.query.name, spark={"buckets": 3})
    strangers = [
        batch(other, duration_ms=50_000).encode(),
        batch(pipeline.settings, duration_ms=50_000).model_copy(update={"query": "other"}).encode(),
        batch(pipeline.settings, duration_ms=50_000).encode().replace(b'"v":1', b'"v":9'),
        b"\xff\x00", b"[" * 100_000, b"",
    ]  # fmt: skip
    with running(pipeline) as controller, caplog.at_level(logging.WARNING):
        for number in range(8):
            pipeline.write(*strangers)
            pipeline.write(b"no plan", b'{"epoch": 1e400}', role="plan")
            pipeline.batch(controller, skew=(-1) ** number * HOUR_MS)
        wait_until(lambda: controller.turn(0.0) or sum("no plan" in text for text in caplog.messages) >= 16)
    assert len(pipeline.judged) == 8
    assert all(judged.evaluation.observation.load == pytest.approx(0.85) for judged in pipeline.judged)
    assert not any(judged.evaluation.observation.stale for judged in pipeline.judged)
    assert sum("ignored and counted" in text for text in caplog.messages) == 3


def test_what_was_there_before_is_known_and_not_fresh(pipeline: Pipeline) -> None:
    pipeline.batch(load=3.0)
    with running(pipeline) as controller:
        pipeline.now += 21
        stale = pipeline.judge(controller).evaluation.observation.stale
    assert stale == (
        "no record of partitioner 0 since the controller began, or was cut off",
        "no record of the fused stage since the controller began, or was cut off",
    )


def test_a_second_controller_takes_over_and_the_first_ends_without_having_changed_the_plan(
    pipeline: Pipeline,
) -> None:
    with running(pipeline) as first:
        while not pipeline.plans:
            pipeline.batch(first, load=1.6)
        with running(pipeline) as second:
            pipeline.batch(load=1.6, workers=5)
            pipeline.judge(second)
            before = pipeline.plans
            with pytest.raises(WriterFenced, match="another writer has taken over") as fenced:
                pipeline.judge(first)
            assert "one controller of a query is enough" in (fenced.value.hint or "")
            assert pipeline.plans == before
            while len(pipeline.plans) == 1:
                pipeline.batch(second, load=1.6, workers=5)
            with pytest.raises(WriterFenced):
                pipeline.judge(first)
    assert [(plan.epoch, plan.p) for plan in pipeline.plans] == [(1, 5), (2, 6)]


def test_a_controller_that_dies_between_writing_and_committing_leaves_no_half_plan(
    pipeline: Pipeline,
) -> None:
    settings = pipeline.settings
    dying = clients.producer(settings.kafka, transactional_id=f"{settings.query.name}.controller")
    dying.init_transactions(10)
    dying.begin_transaction()
    half = Plan(epoch=7, p=8, r=1)
    dying.produce(settings.topic("plan"), value=half.encode(settings.fingerprint), key=half.key)
    dying.flush(10)
    assert read_plans(settings) == [], "it does not wait for the open transaction either"
    with running(pipeline) as controller:
        pipeline.batch(controller)
        assert pipeline.judged[-1].evaluation.observation.p == 4
        while pipeline.judged[-1].plan is None:
            pipeline.batch(controller, load=1.6)
    assert [plan.epoch for plan in pipeline.plans] == [1]


def test_a_restarted_controller_goes_on_from_the_newest_epoch_with_what_the_policy_knew(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    with running(pipeline) as controller:
        while not pipeline.plans:
            pipeline.batch(controller, load=1.6)
        pipeline.batch(controller, load=1.6, workers=5)
        controller.keep()
        knew = controller.policy.snapshot()
    with caplog.at_level(logging.INFO), running(pipeline) as controller:
        assert controller.policy.snapshot() == knew
        assert any(
            "as an earlier controller left it: p 5 (1 to 8)" in text and "plan epoch 1" in text
            for text in caplog.messages
        )
        while len(pipeline.plans) == 1:
            pipeline.batch(controller, load=1.6, workers=5)
    assert [(plan.epoch, plan.p) for plan in pipeline.plans] == [(1, 5), (2, 6)]


def test_a_controller_goes_on_with_what_the_policy_of_0_1_0_knew(pipeline: Pipeline) -> None:
    with running(pipeline) as controller:
        for _ in range(3):
            pipeline.batch(controller, load=1.6)
        key, value = snapshot_record(controller.policy)
        knew = controller.policy.snapshot()
    client = clients.producer(pipeline.settings.kafka)
    client.produce(pipeline.settings.topic("snapshots"), key=key, value=value)
    clients.flush(client, pipeline.settings.kafka)
    delete_topics(pipeline.settings.kafka, [pipeline.settings.topic("controller")])
    create_topics(pipeline.settings)
    with running(pipeline) as controller:
        assert controller.policy.snapshot() == knew


def test_a_plan_by_hand_is_adopted_and_of_one_epoch_the_first_counts(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    by_hand = PlanWriter(pipeline.settings, identity="plan-by-hand")

    calls = []

    def between_its_look_at_the_log_and_its_write() -> None:
        calls.append(len(pipeline.judged))
        if (
            calls == [0] * 3 + [1] * 3 + [2] * 3
        ):  # a partitioner's record, the stage's, and then the third observation decides
            by_hand.write(Plan(epoch=1, p=3, r=2, reason="published by hand"))

    pipeline.before_records = between_its_look_at_the_log_and_its_write
    with caplog.at_level(logging.INFO), running(pipeline) as controller:
        for _ in range(3):
            pipeline.batch(controller, load=1.6)
        assert pipeline.judged[-1].plan is not None
        wait_until(lambda: controller.turn(0.0) or any("does not count" in text for text in caplog.messages))
        pipeline.batch(controller, workers=3)
        assert (
            pipeline.judged[-1].evaluation.observation.p,
            pipeline.judged[-1].evaluation.observation.r,
        ) == (
            3,
            2,
        )
    published = [(plan.epoch, plan.p) for plan in pipeline.plans]
    assert published == [(1, 3), (1, 5), (2, 3)], "compaction may keep the second of two with one epoch"
    assert any(
        "plan 1: p 3, r 2 at the next slide was published by somebody else" in t for t in caplog.messages
    )


def test_a_dry_run_judges_everything_writes_nothing_and_fences_nobody(pipeline: Pipeline) -> None:
    with running(pipeline) as live:
        pipeline.batch(live)
        with running(pipeline, dry_run=True) as dry:
            pipeline.judged.clear()
            while not any(judged.plan for judged in pipeline.judged):
                pipeline.batch(dry, load=1.6)
            assert pipeline.plans == []
            assert len(pipeline.decisions) == 1, "the live one's"
        pipeline.judge(live)
        assert len(pipeline.decisions) > 1


def test_the_policy_of_the_plugin_decides_a_plan_by_its_name(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "examples" / "plugin"))
    own = {"policy": "turnstile.policy:Patient", "options": {"patience": 2}}
    pipeline.settings = pipeline.settings.model_copy(
        update={"control": pipeline.settings.control.model_copy(update=own)}
    )
    with running(pipeline) as controller:
        pipeline.batch(controller)
        while pipeline.judged[-1].plan is None:
            assert len(pipeline.judged) < 15, "two busy micro-batches in a row are enough"
            pipeline.batch(controller, load=1.6)
        (plan,) = pipeline.plans
    assert plan.p == 5
    assert "W stays at" in pipeline.judged[-1].decision.reason


def test_a_mistake_in_the_settings_is_said_before_anything_is_taken_over(pipeline: Pipeline) -> None:
    with running(pipeline) as live:
        pipeline.batch(live)
        mistaken = pipeline.settings.model_copy(
            update={"control": pipeline.settings.control.model_copy(update={"policy": "nobody"})}
        )
        with pytest.raises(ConfigError, match="unknown policy"):
            Controller(mistaken)
        pipeline.batch(live)


def test_the_command_decides_ends_with_2_when_another_takes_over_and_with_0_on_sigterm(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    logs = [tmp_path / name for name in ("first.log", "second.log", "dry.log")]
    first, *others = [start(pipeline.settings, logs[0], "control")]
    try:
        wait_until(lambda: "policy 'prompt-plus'" in logs[0].read_text() or first.poll() is not None)
        others.append(start(pipeline.settings, logs[2], "control", "--dry-run", "--json"))
        wait_until(lambda: "nothing is written" in logs[2].read_text() or others[-1].poll() is not None)
        wait_until(lambda: pipeline.batch() or len(pipeline.decisions) > 0)
        others.append(start(pipeline.settings, logs[1], "control"))
        wait_until(lambda: "policy 'prompt-plus'" in logs[1].read_text() or others[-1].poll() is not None)
        wait_until(lambda: pipeline.batch() or first.poll() is not None)
        assert first.returncode == 2
        assert "another writer has taken over" in logs[0].read_text()
        for process in others:
            process.send_signal(signal.SIGTERM)
        assert [process.wait(20) for process in others] == [0, 0], [log.read_text() for log in logs]
        assert "stopped: no plan was published, so `workers` (4) holds" in logs[1].read_text()
    finally:
        for process in (first, *others):
            process.kill()
    shown = [json.loads(line) for line in logs[2].read_text().splitlines() if line.startswith("{")]
    assert shown
    assert {"kind": "decision", "epoch": None, "policy": "prompt-plus"}.items() <= shown[-1].items()
