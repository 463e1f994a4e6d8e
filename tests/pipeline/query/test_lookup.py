"""A query that is joined with a lookup file: TPC-H Q3 through the whole pipeline, and what a start
refuses.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from evenflow.errors import ConfigError, IncompatibleStateError
from evenflow.settings import KafkaSettings, Settings
from partitioner_service.begin.prepare import prepare
from partitioner_service.kafka.committed_state import all_states
from partitioner_service.plane.data_plane import DataPlane
from tests.pipeline.planes import start_thread, total, wait_until
from tests.pipeline.routed import create_topics, make_settings, write, write_end
from topics.query.input_topic import admitted
from workbench.local.processes import ChildProcess

pytestmark = pytest.mark.pipeline


@pytest.mark.more
@pytest.mark.timeout(400)
@pytest.mark.parametrize("partitioner", ["evenflow", pytest.param("dalton", marks=pytest.mark.long)])
def test_tpch_q3_joins_lineitems_with_orders_and_ends_with_0_differences(
    tmp_path: Path, partitioner: str
) -> None:
    words = ["--query", "tpch-q3", "--input", "tpch:scale=0.001", "--partitioner", partitioner]
    child = ChildProcess(
        [sys.executable, "-m", "cli.main", "demo", *words, "--instances", "2", "--json"],
        log=tmp_path / "demo.log",
        cwd=tmp_path,
    )
    assert child.wait(380) == 0, child.tail(40)
    figures: dict[str, Any] = json.loads(child.output().splitlines()[-1])
    assert figures["differences"] == figures["rejected"] == 0
    assert figures["tuples"] == 6_005
    assert figures["rows"] > 0


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
