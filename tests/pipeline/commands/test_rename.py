"""A query that goes on under another name: the real services before and after, and every result computed
anew.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from evenflow.errors import ConfigError, DataLossError, IncompatibleStateError
from evenflow.settings import Settings
from partitioner_service.kafka.committed_state import all_states
from tests.patience import PATIENCE, wait_for
from tests.pipeline.end_to_end import Pipeline, Stream, assert_exact, batches_done, make_settings
from tests.pipeline.planes import began, run, start_thread, wait_until
from tests.pipeline.routed import records
from topics import admin, clients
from topics.admin import describe
from workbench.lifetime.remains import find
from workbench.lifetime.removal import remove
from workbench.lifetime.rename import COPIED, carry_out, examine
from workbench.verify.shell import verify

pytestmark = pytest.mark.pipeline


def later() -> float:
    """A clock by which the Spark application stopped long ago."""
    return time.time() + 60


def renamed(settings: Settings, name: str) -> Settings:
    """As the user sets it after the renaming."""
    query = settings.query.model_copy(update={"name": name})
    kept = settings.input.model_copy(update={"topic": settings.topic("input")})
    return settings.model_copy(update={"query": query, "input": kept})


def rename(before: Settings, after: Settings) -> None:
    carry_out(examine(before, after, now=later), progress=lambda records: None)


@pytest.mark.long
def test_a_query_goes_on_under_another_name_and_every_result_is_exact(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(kafka_settings, query_name, tmp_path, input={"partitions": 2})
    stream = Stream(settings)
    stream.write(1_500)
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.start("partition")
        pipeline.wait_until(lambda: sum(s.read for s in all_states(settings).values()) == 1_500)
        pipeline.stop("partition")
    after = renamed(settings, f"{query_name}-new")
    before = all_states(settings)
    file = str(tmp_path / "evenflow.toml")
    said = CliRunner().invoke(app, ["--config", file, "rename", after.query.name, "--yes"])
    assert said.exit_code == 0, said.output
    assert said.stdout == f'[query]\nname = "{after.query.name}"\n[input]\ntopic = "{query_name}.input"\n'
    again = CliRunner().invoke(app, ["--config", file, "rename", after.query.name, "--yes"])
    assert again.exit_code != 0, "there is nothing under the old name any more"
    assert {p: (s.offset, s.read, s.rejected) for p, s in all_states(after).items()} == {
        p: (s.offset, s.read, s.rejected) for p, s in before.items()
    }
    assert [name for name in admin.topic_names(settings.kafka) if name.startswith(f"{query_name}.")] == [
        settings.topic("audit"),
        settings.topic("input"),
    ]
    stream.settings = after
    stream.write(1_500)
    stream.end()
    folder = tmp_path / "new"
    folder.mkdir()
    with Pipeline(after, folder) as pipeline:
        pipeline.run_to_the_end()
    report = assert_exact(stream)
    assert report.rejected > 20


@pytest.mark.more
def test_when_all_but_kafka_is_lost_a_start_is_refused_and_rename_brings_every_result_again(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(kafka_settings, query_name, tmp_path)
    stream = Stream(settings)
    stream.write(1_000)
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.start("partition")
        pipeline.start("aggregate")
        pipeline.wait_until(lambda: sum(s.read for s in all_states(settings).values()) == 1_000)
        pipeline.wait_until(lambda: batches_done(settings, "fused") > 0)
        pipeline.kill("partition")
        pipeline.kill("aggregate")
    shutil.rmtree(tmp_path / "checkpoint")
    with Pipeline(settings, tmp_path) as pipeline:
        refused = pipeline.start("aggregate")
        assert refused.wait(60.0 * PATIENCE) == 2
        assert "evenflow rename" in refused.output()
        pipeline.running.clear()
    after = renamed(settings, f"{query_name}-new")
    file = str(tmp_path / "evenflow.toml")
    wait_for(
        lambda: (
            CliRunner().invoke(app, ["--config", file, "rename", after.query.name, "--yes"]).exit_code == 0
        )
    )
    stream.settings = after
    stream.write(1_000)
    stream.end()
    folder = tmp_path / "new"
    folder.mkdir()
    with Pipeline(after, folder) as pipeline:
        pipeline.run_to_the_end()
    assert_exact(stream)


@pytest.mark.long
def test_files_of_both_stages_come_anew_in_the_folder_of_the_new_name(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        spark={"wiring": "split"},
        results={"sink": "parquet", "path": str(tmp_path / "old")},
    )
    stream = Stream(settings)
    stream.write(1_500)
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.start("partition")
        pipeline.start("aggregate")
        pipeline.wait_until(lambda: batches_done(settings, "reduce") > 0)
        stream.write(1_000)
        pipeline.stop("partition")
        pipeline.stop("aggregate")
    after = renamed(settings, f"{query_name}-new")
    after = after.model_copy(
        update={"results": settings.results.model_copy(update={"path": str(tmp_path / "new")})}
    )
    rename(settings, after)
    remove(settings, find(settings, results=True))
    assert not (tmp_path / "old").exists()
    stream.settings = after
    stream.write(1_000)
    stream.end()
    folder = tmp_path / "services"
    folder.mkdir()
    with Pipeline(after, folder) as pipeline:
        pipeline.run_to_the_end()
    report = verify(after)
    assert report.exact, report.text()
    assert (report.read, report.ended) == (3_500, True)


def test_a_copy_that_was_cut_off_is_recognised_and_made_anew(kafka_settings: Any, query_name: str) -> None:
    before = began(kafka_settings, query_name)
    after = renamed(before, f"{query_name}-new")
    specs = admin.pipeline_topics(after)
    admin.ensure_topics(after.kafka, [specs[role] for role in COPIED])
    client = clients.producer(after.kafka)
    for _ in range(3):
        client.produce(after.topic("routed"), value=records(before, "routed")[0].value(), partition=0)
    clients.flush(client, after.kafka)
    rename(before, after)
    for role in ("routed", "rejected"):
        copies = [(m.partition(), m.key(), m.value(), m.headers()) for m in records(after, role)]
        assert sorted(copies, key=repr) == sorted(
            ((m.partition(), m.key(), m.value(), m.headers()) for m in records(before, role)), key=repr
        )
    run(after)


def test_what_0_1_0_noted_about_results_in_the_same_topic_does_not_go_along(
    kafka_settings: Any, query_name: str
) -> None:
    before = began(kafka_settings, query_name)
    client = clients.producer(before.kafka)
    for key in (f"spark/kafka {query_name}.results", f"spark/epoch/{query_name}/fused", "controller/policy"):
        client.produce(before.topic("snapshots"), key=key, value=b"{}")
    clients.flush(client, before.kafka)
    after = renamed(before, f"{query_name}-new")
    rename(before, after)
    keys = {message.key() for message in records(after, "snapshots")}
    assert b"controller/policy" in keys
    assert not [key for key in keys if key.startswith(b"spark/")]


def test_a_name_that_has_begun_is_refused(kafka_settings: Any, query_name: str) -> None:
    before = began(kafka_settings, query_name)
    after = renamed(before, f"{query_name}-new")
    rename(before, after)
    with pytest.raises(IncompatibleStateError, match="has begun already"):
        rename(before, after)
    with pytest.raises(ConfigError, match="is called"):
        rename(before, before)


def test_nothing_is_renamed_while_a_partitioner_runs(kafka_settings: Any, query_name: str) -> None:
    from partitioner_service.plane.data_plane import DataPlane

    before = began(kafka_settings, query_name)
    plane = DataPlane(before)
    thread, errors = start_thread(plane)
    try:
        wait_until(lambda: plane.status().get("state") == "running" and plane.status()["assignment"])
        with pytest.raises(IncompatibleStateError, match="is in the partitioners' group"):
            examine(before, renamed(before, f"{query_name}-new"), now=later)
    finally:
        plane.stop()
        thread.join(30)
    assert errors == []


def test_a_query_whose_frames_are_not_all_there_any_more_keeps_its_name(
    kafka_settings: Any, query_name: str
) -> None:
    from confluent_kafka import TopicPartition

    before = began(kafka_settings, query_name)
    trimmed = clients.admin(before.kafka).delete_records([TopicPartition(before.topic("routed"), 0, 1)])
    for future in trimmed.values():
        future.result(30)
    with pytest.raises(DataLossError, match="no longer has its first records"):
        examine(before, renamed(before, f"{query_name}-new"), now=later)
    assert describe(before.kafka, [f"{query_name}-new.routed"]) == {}


def test_a_query_that_has_not_begun_has_nothing_to_take_along(kafka_settings: Any, query_name: str) -> None:
    from tests.pipeline.routed import create_topics
    from tests.pipeline.routed import make_settings as small

    before = small(kafka_settings, query_name)
    create_topics(before)
    with pytest.raises(IncompatibleStateError, match="has not begun"):
        examine(before, renamed(before, f"{query_name}-new"), now=later)
