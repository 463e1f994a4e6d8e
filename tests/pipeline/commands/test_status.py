"""`evenflow status` of real queries in every state: it says where they stand, and changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from cli.main import app
from cli.status import EXIT_STATUS
from evenflow.settings import Settings
from evenflow.wire.result_frames import encode_results
from partitioner_service.begin.prepare import prepare
from partitioner_service.kafka.committed_state import all_states
from partitioner_service.kafka.sink import REASON
from partitioner_service.plane.data_plane import DataPlane
from partitioner_service.plans_by_hand import publish
from tests.hostile import BYTES
from tests.pipeline.end_to_end import as_toml
from tests.pipeline.planes import run, some_rows, start_thread, total, wait_until
from tests.pipeline.routed import create_topics, make_settings, write, write_end
from topics import admin, clients
from topics.groups import group_names
from workbench.assist.status.results import newest_written

pytestmark = pytest.mark.pipeline


def status(settings: Settings, folder: Path) -> dict[str, Any]:
    """What the command says as JSON; the same on a screen must work as well."""
    file = folder / "evenflow.toml"
    file.write_text(as_toml(settings), encoding="utf-8")
    said = CliRunner().invoke(app, ["--config", str(file), "status", "--json"])
    seen = CliRunner().invoke(app, ["--config", str(file), "status"])
    assert f"query {settings.query.name}" in seen.stdout, (said.exception, seen.exception)
    result = dict(json.loads(said.stdout))
    assert said.exit_code == EXIT_STATUS[result["state"]], result["findings"]
    return result


def status_alone(settings: Settings, folder: Path) -> dict[str, Any]:
    """The same while nothing else runs: no topic and no group is made."""
    before = present(settings)
    result = status(settings, folder)
    assert present(settings) == before
    return result


def present(settings: Settings) -> list[str]:
    """Topics and groups under the query's name."""
    names = [*admin.topic_names(settings.kafka), *group_names(settings.kafka)]
    return [name for name in names if name.startswith(settings.query.name)]


def produce(settings: Settings, role: str, value: bytes, partition: int = 0) -> None:
    client = clients.producer(settings.kafka)
    client.produce(settings.topic(role), value=value, partition=partition)
    clients.flush(client, settings.kafka)


def test_a_delay_that_keeps_windows_open_for_decades_is_wrong_and_named(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(kafka_settings, query_name, query={"out_of_orderness": "20761d"})
    create_topics(settings)
    write(settings, some_rows(200), end=False)
    plane = DataPlane(prepare(settings))
    thread, errors = start_thread(plane)
    wait_until(lambda: total(all_states(settings.with_input_partitions(4)))[0] == 200)
    plane.stop()
    thread.join(30)
    assert errors == []
    named = [line for line in status_alone(settings, tmp_path)["wrong"] if "out_of_orderness" in line]
    assert len(named) == 1
    assert 'query.out_of_orderness is "20761d"' in named[0]


def test_a_query_is_shown_from_the_missing_topic_to_its_last_result(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(kafka_settings, query_name, query={"out_of_orderness": "100ms"})
    (missing,) = status_alone(settings, tmp_path)["wrong"]
    assert missing.startswith(f"there is no topic {query_name}.input")

    admin.ensure_topics(settings.kafka, [admin.input_topic(settings)])
    rows: list[Any] = [(p, row) for p, row in some_rows(3_000) if p != 3]
    rows += [(p, {"k": "late", "t": 0, "v": 1}) for p in (0, 1, 2)] + [(0, b"no JSON")] * 30
    write(settings, rows, end=False)
    result = status_alone(settings, tmp_path)
    assert result["wrong"] == ["the query has not begun: start `evenflow partition`"]
    assert result["lag"] == len(rows)

    settings = prepare(settings)
    publish(settings, workers=2)
    plane = DataPlane(settings)
    thread, errors = start_thread(plane)
    wait_until(lambda: total(all_states(settings))[0] == len(rows))
    result = status(settings, tmp_path)
    (member,) = result["members"]
    assert (member["client_id"], member["partitions"]) == (f"evenflow-{query_name}-0", [0, 1, 2, 3])
    assert result["wrong"][0].startswith("waits for partition 3 without any record")
    assert result["windows"]["due"] is None
    assert result["plan"] == {
        "epoch": 1,
        "workers": 2,
        "reducers": settings.bucket_count,
        "effective_from": None,
    }
    write_end(settings, {p: sum(1 for q, _ in rows if q == p) for p in range(4)})  # type: ignore[arg-type]
    wait_until(lambda: all(state.ended for state in all_states(settings).values()))
    plane.stop()
    thread.join(30)
    assert errors == []

    result = status_alone(settings, tmp_path)
    assert result["members"] == []
    assert [part["name"] for part in result["parts"]] == ["partitioner 0"]
    assert result["rejected"] == {"by_reason": {"unreadable": 30, "late": 3}, "whole": True}
    nothing, share = result["wrong"]
    assert nothing.startswith(
        "nothing aggregates: up to 6 windows are due and not written, and Spark has not run yet"
    )
    assert share == "1.5 % of what was read is rejected, mostly unreadable"

    create_topics(settings)
    produce(settings, "results", b'{"window_start":2000,"window_end":6000,"key":"k","n":1,"s":1}')
    produce(settings, "results", b"no result", partition=1)
    assert status(settings, tmp_path)["windows"]["written"] == 6_000
    changed = settings.model_copy(update={"query": settings.query.model_copy(update={"window": 8_000})})
    result = status(changed, tmp_path)
    assert result["changed"] == ['query.window: "4s" -> "8s"']
    assert result["begun"]


def test_what_anybody_writes_into_the_topics_of_a_query_is_passed_over(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(kafka_settings, query_name)
    create_topics(settings)
    write(settings, some_rows(200))
    run(settings)
    before = status_alone(settings, tmp_path)
    client = clients.producer(settings.kafka)
    hostile = [data for data in BYTES if len(data) < 500_000]
    hostile += [
        b'{"window_end":1e400}',
        b'{"kind":["x"],"stage":{},"v":1,"query":"\\ud800","instance":"\x1b[2J"}',
    ]
    for data in hostile:
        for role in ("telemetry", "plan", "results", "rejected"):
            client.produce(settings.topic(role), key=b"any", value=data, headers=[(REASON, data[:100])])
    clients.flush(client, settings.kafka)
    result = status(settings, tmp_path)
    assert result["rejected"] == {"by_reason": {"?": len(hostile)}, "whole": True}
    assert result["telemetry_ignored"] == before["telemetry_ignored"] + len(hostile)
    for same in ("parts", "plan", "windows", "wrong"):
        assert result[same] == before[same]


def test_the_newest_window_is_found_in_frames_and_in_files_too(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    table = pa.table(
        {"window_start": [0, 0], "window_end": [4_000, 4_000], "key": [b"a", b"b"], "n": [1, 2], "s": [1, 2]}
    )
    frames = make_settings(kafka_settings, query_name, results={"sink": "frames"})
    create_topics(frames)
    assert newest_written(frames) is None
    for value in encode_results([table], fingerprint=frames.fingerprint, bucket=0):
        produce(frames, "results", value)
    assert (newest_written(frames) or (None,))[0] == 4_000
    files = make_settings(
        kafka_settings, query_name, results={"sink": "parquet", "path": str(tmp_path / "r")}
    )
    assert newest_written(files) is None
    (tmp_path / "r").mkdir()
    stamped = table.set_column(1, "window_end", table["window_end"].cast(pa.timestamp("ms", "UTC")))
    for name, rows in (("one.parquet", table), ("two.parquet", stamped), ("_draft.parquet", table)):
        pq.write_table(rows, tmp_path / "r" / name)
    (tmp_path / "r" / "three.parquet").write_bytes(b"cut off")
    assert (newest_written(files) or (None,))[0] == 4_000


def test_a_query_that_lost_its_own_topics_is_still_shown(
    kafka_settings: Any, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(kafka_settings, query_name)
    create_topics(settings)
    write(settings, some_rows(200))
    run(settings)
    admin.delete_topics(
        settings.kafka,
        [settings.topic(role) for role in ("rejected", "routed", "telemetry", "plan", "results")],
    )
    result = status_alone(settings, tmp_path)
    assert (result["ended"], result["lag"]) == (True, 0)
    admin.delete_topics(settings.kafka, [settings.topic("input")])
    create_topics(settings)
    wrong = status(settings, tmp_path)["wrong"]
    assert any("was deleted and created again" in one or "offsets are gone" in one for one in wrong), wrong
