"""What a query has left is removed, so that its name begins anew: told as a user lives it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from evenflow.errors import IncompatibleStateError
from evenflow.settings import Settings
from evenflow.telemetry import HeartbeatRecord
from partitioner_service.begin.prepare import prepare
from partitioner_service.plane.data_plane import DataPlane
from tests.pipeline.end_to_end import Pipeline, Stream, as_toml, assert_exact, make_settings
from tests.pipeline.planes import began, run, start_thread, wait_until
from topics import admin, clients
from topics.admin import topic_names
from topics.groups import group_names
from topics.query.audit import read_entries
from workbench.lifetime.remains import find, own_groups, refuse_while_alive
from workbench.lifetime.removal import remove

pytestmark = pytest.mark.pipeline


def left(settings: Settings) -> list[str]:
    """Topics and groups under the query's name."""
    names = [*topic_names(settings.kafka), *group_names(settings.kafka)]
    return [name for name in names if name.startswith(f"{settings.query.name}.")]


def reset(settings: Settings, folder: Path, *words: str) -> Any:
    file = folder / "reset.toml"
    file.write_text(as_toml(settings), encoding="utf-8")
    return CliRunner().invoke(app, ["--config", str(file), "reset", *words])


@pytest.mark.more
def test_a_query_begun_wrong_is_refused_by_field_reset_and_begins_anew_exactly(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    wrong = make_settings(kafka_settings, query_name, tmp_path, query={"window": "3s"})
    stream = Stream(wrong)
    stream.write(1_000)
    stream.end()
    run(prepare(wrong))
    noted = tmp_path / "checkpoint" / query_name / "fused" / "evenflow.json"
    noted.parent.mkdir(parents=True)
    noted.write_text("{}")
    meant = wrong.model_copy(update={"query": wrong.query.model_copy(update={"window": 5_000})})
    with pytest.raises(IncompatibleStateError, match=r'query\.window: "3s" -> "5s"') as refused:
        prepare(meant)
    assert "evenflow reset" in (refused.value.hint or "")

    asked = reset(meant, tmp_path)
    assert asked.exit_code != 0, "without a terminal and without --yes nothing is removed"
    assert left(meant) != [meant.topic("input")]
    done = reset(meant, tmp_path, "--yes")
    assert done.exit_code == 0, done.output
    assert f"group   {meant.data_plane_group}" in done.stderr
    assert f"folder  {noted.parent.parent}: 1 files, 2 bytes" in done.stderr
    assert f"stays: topic {meant.topic('input')}" in done.stderr
    assert left(meant) == [meant.topic("audit"), meant.topic("input")]
    assert not (tmp_path / "checkpoint" / query_name).exists()

    stream.settings = meant
    with Pipeline(meant, tmp_path) as pipeline:
        pipeline.run_to_the_end()
    assert_exact(stream)


def test_a_reset_that_was_cut_off_is_finished_by_the_next(kafka_settings: Any, query_name: str) -> None:
    settings = began(kafka_settings, query_name)
    admin.delete_topics(settings.kafka, [settings.topic("routed"), settings.topic("telemetry")])
    remains = find(settings, results=False)
    assert settings.data_plane_group in remains.groups
    remove(settings, remains, because="ticket 12")
    assert find(settings, results=False).empty
    (gone,) = (written.entry for written in read_entries(settings)[0])
    assert (gone.action, gone.because) == ("reset", "ticket 12")
    assert f"topic {settings.topic('rejected')}: " in gone.what
    assert left(settings) == [settings.topic("audit"), settings.topic("input")]
    run(prepare(settings))


def test_nothing_is_removed_while_a_partitioner_runs(kafka_settings: Any, query_name: str) -> None:
    settings = began(kafka_settings, query_name)
    plane = DataPlane(settings)
    thread, _ = start_thread(plane)
    wait_until(lambda: plane.status().get("assignment"))
    with pytest.raises(IncompatibleStateError, match="is in the partitioners' group"):
        refuse_while_alive(settings, "removed")
    plane.stop()
    thread.join(30)


def test_a_spark_application_that_has_just_stopped_is_waited_for_and_an_idle_one_is_refused(
    kafka_settings: Any, query_name: str
) -> None:
    settings = began(kafka_settings, query_name)

    def report() -> None:
        idle = HeartbeatRecord(
            query=query_name,
            fingerprint=settings.fingerprint,
            time=1,
            stage="fused",
            batch_interval_ms=1_000,
            finished=0,
        )
        client = clients.producer(settings.kafka)
        client.produce(settings.topic("telemetry"), value=idle.encode())
        clients.flush(client, settings.kafka)

    report()
    times = iter(time.time() + second for second in (0, 5, 10, 60))
    said: list[str] = []
    refuse_while_alive(
        settings, "removed", now=lambda: next(times), sleep=lambda seconds: None, waiting=said.append
    )
    assert len(said) == 1
    assert said[0].startswith("spark fused reported just now: waiting up to 15 s")
    with pytest.raises(IncompatibleStateError, match="spark fused reports"):
        refuse_while_alive(settings, "removed", sleep=lambda seconds: report())


@pytest.mark.more
def test_a_forced_reset_ends_the_partitioner_that_runs(kafka_settings: Any, query_name: str) -> None:
    settings = began(kafka_settings, query_name)
    plane = DataPlane(settings)
    thread, errors = start_thread(plane)
    wait_until(lambda: plane.status().get("assignment"))
    remove(settings, find(settings, results=False))
    thread.join(30)
    assert "was deleted" in str(errors[0])
    assert left(settings) == [settings.topic("audit"), settings.topic("input")]


def test_results_with_a_name_of_the_users_go_only_when_asked_for(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    shared = f"{query_name}-of-many"
    settings = began(kafka_settings, query_name, results={"topic": shared})
    kept = find(settings, results=False)
    assert shared not in [topic.name for topic in kept.topics]
    assert any(line.startswith(f"results in {shared}: they go only with --results") for line in kept.stays)
    assert shared in [topic.name for topic in find(settings, results=True).topics]

    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "part-0.parquet").write_bytes(b"12345")
    files = settings.results.model_copy(update={"sink": "parquet", "path": str(folder), "topic": None})
    settings = settings.model_copy(update={"results": files})
    assert not find(settings, results=False).folders
    (result,) = find(settings, results=True).folders
    assert (result.at.place, result.files, result.bytes) == (str(folder), 1, 5)
    (folder / "thesis.txt").write_text("mine")
    with pytest.raises(IncompatibleStateError, match=r"also holds thesis.txt"):
        find(settings, results=True)


def test_a_query_that_never_began_has_left_nothing(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(kafka_settings, query_name, tmp_path)
    admin.delete_topics(settings.kafka, left(settings))
    shown = reset(settings, tmp_path)
    assert shown.exit_code == 0
    assert "has left nothing" in shown.stderr
    assert left(settings) == []


def test_groups_of_a_query_with_a_longer_name_are_not_ours() -> None:
    groups = [
        "w.partitioner",
        "w.control.0",
        "w.control.partitioner",
        "w.control.control.0",
        "ww.partitioner",
    ]
    assert own_groups("w", groups, ["w.routed"]) == groups[:4]
    assert own_groups("w", groups, ["w.routed", "w.control.routed"]) == ["w.partitioner"]
