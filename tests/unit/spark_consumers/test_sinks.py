"""Every registered result sink keeps the contract of `sinks/base.py`; a new one is taken in by its name."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import spark_consumers.sinks
from evenflow.aggregates import AggregatePlan
from evenflow.errors import ConfigError, DataLossError, IncompatibleStateError, ServiceError
from evenflow.settings import ResultSinkName, Settings, load_settings
from spark_consumers.sinks import SINKS, ResultSink, sink_of
from spark_consumers.sinks.base import Found, spark_types
from spark_consumers.sinks.parquet import committed_files, read_parquet_results
from topics.admin import pipeline_topics

ALL = {"n": "count", "total": "sum(i)", "avg": "mean(f)", "lo`w": "min(i)", "hi": "max(f)"}
KEYS = [b"", b"a", b"\xff\x00", "Zürich".encode(), b'q"uo\\te', b"a"]
EVERY_SINK = pytest.mark.parametrize("sink", SINKS.values(), ids=SINKS)


def settings_for(sink: ResultSink, folder: Path, **results: Any) -> Settings:
    """A query that writes to this sink; what the sink needs is something below the folder."""
    fields = {"sink": sink.name} | {name: str(folder / name) for name in sink.needs} | results
    query = {"name": "q", "types": {"i": "int64"}, "aggregates": ALL}
    return load_settings(folder / "none.json", query=query, results=fields, input={"partitions": 4})


@pytest.fixture(autouse=True)
def _file(tmp_path: Path) -> None:
    (tmp_path / "none.json").write_text("{}")


def rows(plan: AggregatePlan) -> pa.Table:
    """Results with every kind of key and value."""
    values = {
        pa.int64(): [1, None, -(2**62), 0, 5, 6],
        pa.float64(): [0.5, None, float("nan"), float("-inf"), 1e300, 6.0],
    }
    columns = {field.name: pa.array(values[field.type], field.type) for field in plan.output_schema}
    bounds = {"window_start": [0, 0, 0, 0, 0, 10], "window_end": [10, 10, 10, 10, 10, 20]}
    return pa.table({**bounds, "key": pa.array(KEYS, pa.binary()), **columns}, schema=plan.result_schema)


def large_window(plan: AggregatePlan, size: int = 50_000) -> pa.Table:
    """Rows of one window that no compression makes small."""
    drawn = np.random.default_rng(1).integers(-(2**62), 2**62, size)
    columns = {field.name: pa.array(drawn).cast(field.type, safe=False) for field in plan.output_schema}
    keys = pa.array([b"%d" % number for number in drawn], pa.binary())
    bounds = {"window_start": np.zeros(size, np.int64), "window_end": np.full(size, 10)}
    return pa.table({**bounds, "key": keys, **columns}, schema=plan.result_schema)


def test_a_sink_is_a_file_of_its_own_and_its_name_is_a_value_of_the_setting() -> None:
    folder = Path(spark_consumers.sinks.__file__).parent
    files = {file.stem for file in folder.glob("*.py")} - {"__init__", "base", "registry", "topic"}
    assert files == set(SINKS) == set(get_args(ResultSinkName))
    assert all(sink.name == name for name, sink in SINKS.items())


@EVERY_SINK
def test_settings_that_lack_what_the_sink_needs_are_refused(sink: ResultSink, tmp_path: Path) -> None:
    settings = settings_for(sink, tmp_path)
    assert sink_of(settings) is sink
    for name in sink.needs:
        lacking = settings.results.model_copy(update={name: None})
        with pytest.raises(ConfigError, match=rf"results\.sink = '{sink.name}' needs results\.{name}"):
            sink_of(settings.model_copy(update={"results": lacking}))


@EVERY_SINK
def test_the_topics_that_a_sink_writes_are_topics_of_the_query(sink: ResultSink, tmp_path: Path) -> None:
    assert sink.topics <= set(pipeline_topics(settings_for(sink, tmp_path)))


@EVERY_SINK
def test_the_shape_has_the_schema_loses_no_row_and_gives_equal_tables_for_equal_ones(
    sink: ResultSink, tmp_path: Path
) -> None:
    settings = settings_for(sink, tmp_path)
    plan = AggregatePlan.of(settings.query)
    table = rows(plan)
    shape = pickle.loads(pickle.dumps(sink.shaper(settings)))  # as it travels to Spark's Python workers

    def shaped(*windows: pa.Table) -> str:
        found = list(shape(iter(windows), 1))
        assert all(one.schema == sink.schema(plan) for one in found)
        return repr([one.to_pylist() for one in found])

    first, second = table.slice(0, 5), table.slice(5)
    whole = shaped(first, second)
    assert shaped(rows(plan).slice(0, 5), rows(plan).slice(5)) == whole
    lacking = [pa.concat_tables([first.slice(0, at), first.slice(at + 1)]) for at in range(5)]
    assert len({whole, shaped(first), shaped(second), *(shaped(one, second) for one in lacking)}) == 8
    assert list(shape(iter([]), 0)) == []
    assert spark_types(sink.schema(plan)).count("`") >= 2 * len(sink.schema(plan))


@EVERY_SINK
def test_a_shape_holds_a_few_tables_at_a_time(sink: ResultSink, tmp_path: Path) -> None:
    settings = settings_for(sink, tmp_path)
    window = large_window(AggregatePlan.of(settings.query))
    taken = 0

    def windows() -> Iterator[pa.Table]:
        nonlocal taken
        for _ in range(12):
            taken += 1
            yield window

    taken_at = [0, *(taken for _ in sink.shaper(settings)(windows(), 0))]
    assert taken == 12
    assert max(np.diff(taken_at)) <= 5, "tables that were taken and not given on"


@EVERY_SINK
def test_spark_is_told_a_format_and_options_in_words(sink: ResultSink, tmp_path: Path) -> None:
    name, options = sink.writer(settings_for(sink, tmp_path))
    assert name
    assert all(isinstance(word, str) for item in options.items() for word in item)


@EVERY_SINK
def test_the_place_is_told_apart_from_every_other(sink: ResultSink, tmp_path: Path) -> None:
    settings = settings_for(sink, tmp_path)
    assert sink.place(settings) == sink.place(settings_for(sink, tmp_path))
    for name in sink.needs:
        other = settings_for(sink, tmp_path, **{name: str(tmp_path / "other")})
        assert sink.place(other) != sink.place(settings)
    places = {other.place(settings_for(other, tmp_path)) for other in SINKS.values()}
    assert len(places) == len(SINKS)


@EVERY_SINK
@pytest.mark.parametrize("planned", [None, 0, 7])
def test_a_place_where_nothing_lies_is_admitted(
    sink: ResultSink, planned: int | None, tmp_path: Path
) -> None:
    for begun in (None, "/elsewhere"):
        sink.admit(settings_for(sink, tmp_path), found(planned=planned, begun=begun))


@pytest.mark.parametrize("name", ["kafka", "frames"])
def test_results_are_not_written_into_another_topic_of_the_query(name: str, tmp_path: Path) -> None:
    sink = SINKS[name]
    for role in ("input", "routed", "partials", "rejected"):
        with pytest.raises(ConfigError, match=f"the query's own {role} topic"):
            sink_of(settings_for(sink, tmp_path, topic=f"q.{role}"))
    elsewhere = settings_for(sink, tmp_path, topic="elsewhere")
    assert sink_of(elsewhere).place(elsewhere) == f"{name} elsewhere"
    assert sink.writer(elsewhere)[1]["topic"] == "elsewhere"


@pytest.mark.parametrize(
    ("log", "planned", "lost"),
    [
        (["0"], None, "0 to 0"),
        (["0", "1", "2.compact", "3", ".4.crc"], None, "0 to 3"),
        (["9.compact", "10"], 7, "8 to 10"),
    ],
)
def test_a_commit_log_that_the_checkpoint_did_not_write_is_refused(
    log: list[str], planned: int | None, lost: str, tmp_path: Path
) -> None:
    sink, settings = SINKS["parquet"], settings_for(SINKS["parquet"], tmp_path)
    held = {f"{tmp_path / 'path'}/_spark_metadata": log}
    with pytest.raises(
        IncompatibleStateError, match=f"would drop the results of micro-batches {lost}\n"
    ) as e:
        sink.admit(settings, found(names=lambda place: held.get(place, []), planned=planned))
    assert "a folder that is new" in (e.value.hint or "")


@pytest.mark.parametrize("planned", [3, 4])
def test_a_commit_log_that_the_checkpoint_wrote_is_admitted(planned: int, tmp_path: Path) -> None:
    sink = SINKS["parquet"]
    log = ["2.compact", "3", ".3.crc", "_tmp"]
    sink.admit(settings_for(sink, tmp_path), found(names=lambda place: log, planned=planned))


def found(**fields: Any) -> Found:
    """A start that finds nothing, but for these fields."""
    nothing: dict[str, Any] = {
        "names": lambda place: [],
        "written": lambda topic: 0,
        "planned": None,
        "begun": None,
    }
    return Found(**nothing | fields)


@pytest.mark.parametrize(
    ("topic", "planned", "begun", "refused"),
    [
        (None, None, None, True),
        (None, None, "/lost", True),
        (None, 0, None, False),
        ("shared", None, None, False),
        ("shared", None, "/lost", True),
        ("shared", 3, "/lost", False),
    ],
)
def test_results_without_a_checkpoint_are_no_start(
    topic: str | None, planned: int | None, begun: str | None, refused: bool, tmp_path: Path
) -> None:
    sink = SINKS["kafka"]
    settings = settings_for(sink, tmp_path, topic=topic)
    start = found(written=lambda name: 7 * (name == (topic or "q.results")), planned=planned, begun=begun)
    if not refused:
        sink.admit(settings, start)
        return
    with pytest.raises(IncompatibleStateError, match="already holds results of query q") as caught:
        sink.admit(settings, start)
    assert begun is None or begun in caught.value.message
    for way_out in ("restore the checkpoint", "new name", "results.topic"):
        assert way_out in (caught.value.hint or "")


def test_a_relative_folder_is_one_place_and_a_uri_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = SINKS["parquet"]
    monkeypatch.chdir(tmp_path)
    for path in ("out", "./out/", str(tmp_path / "out")):
        assert sink.place(settings_for(sink, tmp_path, path=path)) == f"parquet {tmp_path}/out"
    assert sink.place(settings_for(sink, tmp_path, path="s3a://b/out")) == "parquet s3a://b/out"


def test_parquet_results_are_those_of_the_newest_compacted_entry_and_of_all_after_it(tmp_path: Path) -> None:
    settings = settings_for(SINKS["parquet"], tmp_path)
    table, folder = rows(AggregatePlan.of(settings.query)), tmp_path / "path"
    with pytest.raises(ServiceError, match="has no commit log"):
        SINKS["parquet"].read_back(settings)
    log = folder / "_spark_metadata"
    log.mkdir(parents=True)

    def entry(name: str, *files: int) -> None:
        lines = [json.dumps({"path": f"file://{folder}/{file}%20.parquet"}) for file in files]
        (log / name).write_text("\n".join(["v1", *lines]))

    for number in range(5):
        pq.write_table(table.slice(number, 1), folder / f"{number} .parquet")
    entry("0", 4)
    entry("1.compact", 0, 1)
    entry("1", 4)
    entry("2", 2)
    entry("3")
    assert [file.name[0] for file in committed_files(folder)] == ["0", "1", "2"]
    found = read_parquet_results(folder)
    assert found.schema == table.schema
    assert repr(found.to_pylist()) == repr(table.slice(0, 3).to_pylist())
    (folder / "1 .parquet").unlink()
    with pytest.raises(DataLossError, match="1 committed result files are gone"):
        SINKS["parquet"].read_back(settings)
