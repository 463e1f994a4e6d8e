"""A query that is joined with a lookup file: what a start refuses, and what a running instance does not
notice. (`test_joins.py` has TPC-H Q3.)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evenflow.errors import ConfigError, IncompatibleStateError
from evenflow.settings import KafkaSettings, Settings
from partitioner_service.begin.prepare import prepare
from partitioner_service.kafka.committed_state import all_states
from partitioner_service.plane.data_plane import DataPlane
from tests.pipeline.planes import run, start_thread, total, wait_until
from tests.pipeline.routed import create_topics, make_settings, rejections, write, write_end
from topics.admin import ensure_topics, input_topic, topic_names
from topics.query.input_topic import admitted

pytestmark = pytest.mark.pipeline


def joined(kafka: KafkaSettings, name: str, folder: Path, **parts: Any) -> tuple[Settings, Path]:
    """Settings of a query by region, and its lookup file: regions of the keys key0 to key4."""
    file = folder / "regions.csv"
    file.write_text("k,region\n" + "".join(f"key{i},r{i % 2}\n" for i in range(5)))
    lookup = {"file": str(file), "key": "k", "columns": {"region": "string"}}
    return make_settings(kafka, name, query={"key": "region", "lookup": lookup}, **parts), file


def rows(first: int, count: int) -> list[tuple[int, dict[str, Any]]]:
    """One a millisecond. Of six, one has no row in the file."""
    return [(i % 4, {"k": f"key{i % 6}", "t": i, "v": 1}) for i in range(first, first + count)]


def test_a_file_that_changes_stops_no_running_instance_but_every_start(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings, file = joined(kafka_settings, query_name, tmp_path)
    create_topics(settings)
    write(settings, rows(0, 600), end=False)
    known = prepare(settings)
    plane = DataPlane(known)
    thread, errors = start_thread(plane)
    wait_until(lambda: total(all_states(known))[0] == 600 or errors)
    assert total(all_states(known)) == (600, 500, 100)  # one of six is unmatched
    content = file.read_text()
    file.write_text(content.replace("r0", "r1"))
    later = settings.model_copy(
        update={"partitioner": settings.partitioner.model_copy(update={"instance": "1"})}
    )
    with pytest.raises(IncompatibleStateError, match=r'query\.lookup\.sha256: "[0-9a-f]{64}" -> '):
        prepare(later)
    write(settings, rows(600, 60), end=False)
    wait_until(
        lambda: total(all_states(known))[0] == 660 or errors
    )  # the running one has the rows of its start
    assert errors == []
    plane.stop()
    thread.join(30)
    file.write_text(content)
    prepare(later)
    # A part without the file, such as Spark's driver, goes by the content with which the query began.
    file.rename(file.with_suffix(".away"))
    assert admitted(settings).fingerprint == known.fingerprint
    with pytest.raises(ConfigError, match="there is no lookup file"):
        prepare(settings)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(None, "there is no lookup file", id="missing"),
        pytest.param("k,region\nkey0,r0\nkey0,r1\n", "1 rows whose key another row has", id="key-twice"),
        pytest.param("k,region\nkey0\n", "cannot be read", id="damaged"),
    ],
)
def test_an_unusable_file_stops_the_start_and_the_same_query_begins_once_it_is_put_right(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path, content: str | None, words: str
) -> None:
    settings, file = joined(kafka_settings, query_name, tmp_path)
    ensure_topics(settings.kafka, [input_topic(settings)])
    write(settings, rows(0, 600))
    usable = file.read_text()
    if content is None:
        file.unlink()
    else:
        file.write_text(content)
    with pytest.raises(ConfigError, match=words):
        prepare(settings)
    made = [name for name in topic_names(settings.kafka) if name.startswith(f"{query_name}.")]
    assert made == [settings.topic("input")]
    file.write_text(usable)
    run(settings)
    assert total(all_states(settings)) == (600, 500, 100)
    assert [reason for reason, _, _ in rejections(settings)] == ["unmatched"] * 100


def test_before_the_query_begins_a_part_without_the_file_is_told_what_to_do(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings, file = joined(kafka_settings, query_name, tmp_path)
    create_topics(settings)
    write_end(settings, dict.fromkeys(range(4), 0))  # type: ignore[arg-type]
    digest = admitted(settings).query.lookup.sha256  # type: ignore[union-attr]
    file.unlink()
    with pytest.raises(ConfigError, match="nothing tells the content") as raised:
        _ = admitted(settings).fingerprint
    assert "query.lookup.sha256" in str(raised.value.hint)
    assert digest is not None
    assert admitted(settings.with_lookup_sha256(digest)).fingerprint


def test_a_query_whose_stream_finds_no_rows_does_not_begin(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings, _ = joined(kafka_settings, query_name, tmp_path)
    create_topics(settings)
    write(settings, [(0, {"k": f"other{i}", "t": i, "v": 1}) for i in range(200)], end=False)
    with pytest.raises(ConfigError, match=r"200 of the first 200 .* would be rejected .*unmatched 200"):
        prepare(settings, trial=True)
