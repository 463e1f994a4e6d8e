"""`evenflow plan`: which plan is in force, and back to the workers of the settings."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from controller.service import Controller
from evenflow.errors import IncompatibleStateError
from evenflow.settings import KafkaSettings, Settings
from evenflow.telemetry import DecisionRecord
from partitioner_service.plane.data_plane import DataPlane
from partitioner_service.plans_by_hand import publish
from tests.pipeline.end_to_end import as_toml
from tests.pipeline.planes import some_rows, start_thread, wait_until
from tests.pipeline.routed import create_topics, make_settings, write
from topics import clients
from topics.query.audit import read_entries, who
from topics.query.plan_topic import read_plans
from workbench.assist.activity import read_activity
from workbench.assist.applied_plans import applied_plans, refuse_beside_a_controller

pytestmark = pytest.mark.pipeline

WITHIN: dict[str, Any] = {"workers": 3, "routed_partitions": 8, "name": "hashing"}


@pytest.fixture
def settings(kafka_settings: KafkaSettings, query_name: str) -> Settings:
    made = make_settings(kafka_settings, query_name, partitioner=WITHIN)
    create_topics(made)
    return made


def said(settings: Settings, folder: Path, *words: str, status: int = 0) -> str:
    """What `evenflow plan` prints."""
    file = folder / "evenflow.toml"
    file.write_text(as_toml(settings), encoding="utf-8")
    result = CliRunner().invoke(app, ["--config", str(file), "plan", *words])
    assert result.exit_code == status, (result.output, result.exception)
    return result.output


def decide(settings: Settings) -> None:
    """A controller of the query has judged an observation just now."""
    record = DecisionRecord(
        query=settings.query.name, fingerprint=settings.fingerprint, time=1, policy="fixed", step=1,
        p=3, r=1, wanted_p=3, wanted_r=1,
    )  # fmt: skip
    client = clients.producer(settings.kafka, linger_ms=0)
    client.produce(settings.topic("telemetry"), key=b"controller", value=record.encode())
    clients.flush(client, settings.kafka)


def test_the_plan_in_force_is_shown_and_clear_gives_workers_its_meaning_back(
    settings: Settings, tmp_path: Path
) -> None:
    buckets = settings.bucket_count
    assert said(settings, tmp_path).startswith("no plan has been published: 3 workers and")
    publish(settings, workers=6)
    publish(settings, workers=7, effective_from=10_000)
    shown = said(settings, tmp_path).splitlines()
    assert shown[0] == f"plan 1 is in force: 6 workers and {buckets} buckets at once (published by hand)"
    assert shown[1].startswith("plan 2 follows from 1970-01-01 00:00:10")
    assert "`evenflow plan --clear`" in shown[2]

    record = json.loads(said(settings, tmp_path, "--clear", "--because", "the spike is over"))
    assert (record["epoch"], record["p"], record["r"]) == (3, 3, settings.reducers)
    result = json.loads(said(settings, tmp_path, "--json"))
    assert (result["in_force"]["epoch"], result["in_force"]["p"], result["upcoming"]) == (3, 3, [])

    entries = [written.entry for written in read_entries(settings)[0]]
    assert [entry.what.partition(":")[0] for entry in entries] == ["plan 1", "plan 2", "plan 3"]
    assert [entry.because for entry in entries] == [
        *["published by hand"] * 2,
        "the spike is over",
    ]
    listed = CliRunner().invoke(app, ["--config", str(tmp_path / "evenflow.toml"), "audit"]).stdout
    assert f"{who()}: plan 3: 3 workers" in listed.splitlines()[2]

    write(settings, some_rows(200, partitions=settings.input_partitions), end=False)
    plane = DataPlane(settings)
    thread, errors = start_thread(plane)
    wait_until(lambda: plane.status().get("plan_epoch") == 3 or errors)
    assert plane.status()["workers"] == 3
    plane.stop()
    thread.join(30)
    assert errors == []


def test_a_plan_is_not_cleared_beside_a_controller_that_goes_on_unless_forced(
    settings: Settings, tmp_path: Path
) -> None:
    publish(settings, workers=6)
    decide(settings)
    at = read_activity(settings).parts[0].at / 1000
    waits: list[str] = []
    with pytest.raises(IncompatibleStateError, match="is at work") as refused:
        refuse_beside_a_controller(
            settings, now=lambda: at, sleep=lambda _: decide(settings), waiting=waits.append
        )
    assert "--force" in (refused.value.hint or "")
    assert len(waits) == 1
    assert waits[0].startswith("a controller decided just now: waiting up to 25 s")
    assert json.loads(said(settings, tmp_path, "--clear", "--force"))["epoch"] == 2


def test_a_controller_that_has_stopped_is_waited_for_and_then_refuses_nothing(settings: Settings) -> None:
    decide(settings)
    (controller,) = read_activity(settings).parts
    ahead = [0.0]

    def sleep(seconds: float) -> None:
        ahead[0] += seconds

    refuse_beside_a_controller(settings, now=lambda: controller.at / 1000 + ahead[0], sleep=sleep)
    assert ahead[0] == pytest.approx(25)


def test_a_controller_that_stops_says_which_plan_stays_in_force(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="controller")
    controller = Controller(settings)
    controller.tell_end()
    assert "stopped: no plan was published, so `workers` (3) holds" in caplog.messages
    plan = publish(settings, workers=6)

    def adopted() -> bool:
        controller.turn(0.1)
        return any("is adopted" in text for text in caplog.messages)

    wait_until(adopted)
    controller.tell_end()
    controller.close()
    assert (
        caplog.messages[-1]
        == "stopped: the plan of epoch 1 with 6 workers stays in force; `evenflow plan --clear` gives"
        " `workers` its meaning back"
    )
    assert applied_plans(settings).current == plan
    assert read_plans(settings) == [plan]


@pytest.mark.parametrize(
    "words",
    [("--reducers", "2"), ("--effective-from", "1000"), ("--clear", "--workers", "2"), ("--force",)],
    ids=" ".join,
)
def test_options_that_have_no_place_beside_each_other_are_refused(
    settings: Settings, tmp_path: Path, words: tuple[str, ...]
) -> None:
    file = tmp_path / "evenflow.toml"
    file.write_text(as_toml(settings), encoding="utf-8")
    assert CliRunner().invoke(app, ["--config", str(file), "plan", *words]).exit_code != 0
    assert read_plans(settings) == []
