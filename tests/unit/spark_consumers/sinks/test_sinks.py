"""Every registered result sink keeps the contract of `sinks/base.py`; a new one is taken in by its name."""

from __future__ import annotations

import json
import pickle
from base64 import b64decode
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spark_consumers.sinks
from evenflow.aggregates import AggregatePlan
from evenflow.errors import ConfigError, DataLossError, IncompatibleStateError, ServiceError
from evenflow.settings import BUILT_IN_SINKS, Settings, load_settings
from evenflow.settings.sections.result_sinks import RowForm
from evenflow.spark import _READERS
from evenflow.twostep import readable_schema
from evenflow.wire.avro_rows import decode_rows, header
from evenflow.wire.result_frames import decode_results
from partitioner_service.reading.parse import Parser
from spark_consumers.checkpoints.result_files import MARKER, Owner, ResultFiles, file_name
from spark_consumers.sinks import SINKS, ResultSink, checking, sink_of
from spark_consumers.sinks.avro import avro_form, with_json
from spark_consumers.sinks.base import JSON_RECORDS
from spark_consumers.sinks.checking import LAWS, Law, check_sink, sample_rows
from spark_consumers.sinks.parquet import read_parquet_results
from spark_consumers.sinks.topic import TopicSink
from tests.hostile import BYTES
from tests.unit.spark_consumers.admitting import found

ALL = {"n": "count", "total": "sum(i)", "avg": "mean(f)", "lo`w": "min(i)", "hi": "max(f)"}
WITHOUT_SERVER = {name: sink for name, sink in SINKS.items() if name != "postgres"}
"""The sinks that keep the laws without a server. tests/pipeline/results/test_postgres.py holds the other
one to them.
"""
NEEDED = {"avro": {"registry": {"url": "http://127.0.0.1:1"}}}
"""What a sink needs that is no text."""
EVERY_SINK = pytest.mark.parametrize("sink", WITHOUT_SERVER.values(), ids=WITHOUT_SERVER)


def settings_for(sink: ResultSink, folder: Path, **results: Any) -> Settings:
    """A query that writes to this sink; what the sink needs is something below the folder."""
    fields = {"sink": sink.name} | needed(sink, folder) | results
    query = {"name": "q", "key": "@key", "types": {"i": "int64"}, "aggregates": ALL}
    return load_settings(folder / "none.json", query=query, results=fields, input={"partitions": 4})


def needed(sink: ResultSink, folder: Path) -> dict[str, Any]:
    """Fields of `[results]` that the sink needs."""
    return {name: str(folder / name) for name in sink.needs} | NEEDED.get(sink.name, {})


@pytest.fixture(autouse=True)
def _file(tmp_path: Path) -> None:
    (tmp_path / "none.json").write_text("{}")


def test_a_sink_is_a_file_of_its_own_and_its_name_is_a_value_of_the_setting() -> None:
    folder = Path(spark_consumers.sinks.__file__).parent
    shared = {"__init__", "base", "checking", "registry", "rows", "topic", "typed_rows"}
    files = {file.stem for file in folder.glob("*.py")} - shared
    assert files == set(SINKS) == set(BUILT_IN_SINKS)
    assert all(sink.name == name for name, sink in SINKS.items())


def test_the_settings_ask_for_the_path_that_a_sink_needs() -> None:
    with_a_path = {name for name, form in BUILT_IN_SINKS.items() if form.path is not None}
    assert {name for name, sink in SINKS.items() if "path" in sink.needs} == with_a_path


def test_the_form_of_a_sink_says_how_its_rows_are_read_and_which_files_are_its_own() -> None:
    assert set(_READERS) == set(get_args(RowForm)), "each form of rows has a reader"
    for name, form in BUILT_IN_SINKS.items():
        assert (form.path == "folder") == bool(form.suffixes), f"reset asks {name} for its files"
        assert (form.rows in ("json", "avro", "frames")) == ("results" in SINKS[name].topics)


@EVERY_SINK
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_a_sink_keeps_the_law(sink: ResultSink, law: Law, tmp_path: Path) -> None:
    law(sink, checking.settings_for(sink, **needed(sink, tmp_path)))


@EVERY_SINK
def test_a_sink_keeps_the_contract_wherever_it_writes(sink: ResultSink, tmp_path: Path) -> None:
    check_sink(sink, **NEEDED.get(sink.name, {}))
    check_sink(sink, **needed(sink, tmp_path))
    assert sink_of(settings_for(sink, tmp_path)) is sink


@EVERY_SINK
def test_each_part_of_a_key_is_a_column(sink: ResultSink, tmp_path: Path) -> None:
    fields = settings_for(sink, tmp_path).model_dump(include={"results"})
    query = {"name": "q", "key": ["shop.id", "n"], "types": {"n": "int64"}, "aggregates": {"tuples": "count"}}
    settings = load_settings(tmp_path / "none.json", query=query, input={"partitions": 4}, **fields)
    schema = AggregatePlan.of(settings.query).result_schema
    keys = [b'["a",1]', b'["q\\"uo",-2]']
    table = pa.table([pa.array(column) for column in ([0, 0], [10, 10], keys, [5, 6])], schema=schema)
    (found,) = pickle.loads(pickle.dumps(sink.shaper(settings)))(iter([table]), 1)
    assert found.schema == sink.schema(settings)
    rows = typed_of(settings, found)
    assert [(row["shop.id"], row["n"]) for row in rows] == [("a", 1), ('q"uo', -2)]
    assert [row["tuples"] for row in rows] == [5, 6]
    assert not any("key" in row for row in rows)


def typed_of(settings: Settings, shaped: pa.Table) -> list[dict[str, Any]]:
    """The rows in what a sink hands to Spark, as a reader reads them."""
    form = settings.results.form
    assert form is not None
    if form.rows not in ("json", "avro", "frames"):
        return shaped.to_pylist()
    if form.rows == "avro":
        table, places = decode_rows(shaped["value"].to_pylist(), avro_form(settings))
        assert places == list(range(shaped.num_rows))
        return table.to_pylist()
    rows = []
    for record in shaped.to_pylist():
        if form.rows == "json":
            rows.append(json.loads(record["value"]))
            continue
        schema, keys = readable_schema(settings.query), settings.query.result_keys
        rows += decode_results(record["value"], schema=schema, fingerprint=settings.fingerprint, keys=keys)[
            1
        ].to_pylist()
    return rows


def test_no_two_sinks_write_to_one_place(tmp_path: Path) -> None:
    places = {sink.place(settings_for(sink, tmp_path)) for sink in WITHOUT_SERVER.values()}
    assert len(places) == len(WITHOUT_SERVER)


def test_a_folder_of_results_that_was_removed_or_emptied_is_a_loss_and_one_that_others_see_is_not_judged(
    tmp_path: Path,
) -> None:
    sink, place = SINKS["parquet"], tmp_path / "results"
    settings = settings_for(sink, tmp_path, path=str(place))
    place.mkdir()
    (place / MARKER).write_text("{}")
    assert sink.loss(settings) is None
    (place / MARKER).unlink()
    assert f"results.path {place} has no {MARKER}" in (sink.loss(settings) or "")
    place.rmdir()
    said = sink.loss(settings) or ""
    assert said.startswith(
        f"results.path {place} is not there, so the results that the query has written there are gone: "
    )
    assert "Rebuild after data loss" in said
    assert sink.loss(settings_for(sink, tmp_path, path="s3a://bucket/results")) is None
    assert SINKS["kafka"].loss(settings_for(SINKS["kafka"], tmp_path)) is None, (
        "status looks at topics itself"
    )


def test_a_folder_that_was_removed_while_the_application_ran_ends_it_before_spark_makes_the_folder_anew(
    tmp_path: Path,
) -> None:
    class Local:
        location = str(tmp_path / "results")

        def exists(self, name: str) -> bool:
            return Path(self.location, name).exists()

    folder, nothing = Local(), None
    files = ResultFiles(folder, Owner(query="q", fingerprint="f", run="r"), epoch=1)  # type: ignore[arg-type]
    with pytest.raises(
        DataLossError, match="was removed or emptied, with the results that were in it"
    ) as caught:
        files.write(nothing, 3)  # type: ignore[arg-type]
    assert "restore it from a copy" in str(caught.value.hint)
    assert not (tmp_path / "results").exists()


@EVERY_SINK
def test_a_place_where_nothing_lies_is_admitted(sink: ResultSink, tmp_path: Path) -> None:
    for begun in (None, "/elsewhere"):
        sink.admit(settings_for(sink, tmp_path), found(begun=begun))


@pytest.mark.parametrize("name", ["kafka", "avro", "frames"])
def test_results_are_not_written_into_another_topic_of_the_query(name: str, tmp_path: Path) -> None:
    sink = SINKS[name]
    for role in ("input", "routed", "partials", "rejected"):
        with pytest.raises(ConfigError, match=f"the query's own {role} topic"):
            sink_of(settings_for(sink, tmp_path, topic=f"q.{role}"))
    elsewhere = settings_for(sink, tmp_path, topic="elsewhere")
    assert sink_of(elsewhere).place(elsewhere) == f"{name} elsewhere"
    assert isinstance(sink, TopicSink)
    assert sink.options(elsewhere)["topic"] == "elsewhere"
    assert all(isinstance(word, str) for option in sink.options(elsewhere).items() for word in option)


def marked(folder: Path, settings: Settings, *batches: int, **owner: str) -> dict[str, Any]:
    """What a start finds in a folder with our marker (but for these of its fields) and a file of each
    micro-batch.
    """
    right = Owner(query="q", fingerprint=settings.fingerprint, run="ours")
    texts = {f"{folder / 'path'}/{MARKER}": replace(right, **owner).text()}
    names = [MARKER, "_writing", *(file_name("q", batch, 3) for batch in batches), ".x.crc", "notes.txt"]
    return {"names": {str(folder / "path"): names}.__getitem__, "text": texts.get, "run": "ours"}


@pytest.mark.parametrize(
    ("batches", "planned", "known"),
    [([0], None, "has begun none yet"), ([3, 12, 7], 11, "has begun only those up to 11")],
)
def test_results_that_are_ahead_of_the_checkpoint_are_refused(
    batches: list[int], planned: int | None, known: str, tmp_path: Path
) -> None:
    sink, settings = SINKS["parquet"], settings_for(SINKS["parquet"], tmp_path)
    with pytest.raises(IncompatibleStateError, match=rf"micro-batches up to {max(batches)}, .* {known}") as e:
        sink.admit(settings, found(planned=planned, **marked(tmp_path, settings, *batches)))
    assert "a new folder" in (e.value.hint or "")


@pytest.mark.parametrize(("batches", "planned"), [([], None), ([], 3), ([3], 3), ([0, 2], 4)])
def test_results_that_the_checkpoint_wrote_are_admitted(
    batches: list[int], planned: int | None, tmp_path: Path
) -> None:
    sink, settings = SINKS["parquet"], settings_for(SINKS["parquet"], tmp_path)
    sink.admit(settings, found(planned=planned, **marked(tmp_path, settings, *batches)))


@pytest.mark.parametrize(
    ("owner", "whose"),
    [
        ({"run": "other"}, "this query with another checkpoint"),
        ({"query": "p", "run": "other"}, "query p "),
        ({"fingerprint": "f", "run": "other"}, r"query q \(f\)"),
    ],
)
def test_a_folder_of_results_that_another_checkpoint_writes_is_refused(
    owner: dict[str, str], whose: str, tmp_path: Path
) -> None:
    sink, settings = SINKS["parquet"], settings_for(SINKS["parquet"], tmp_path)
    for planned in (None, 5):
        with pytest.raises(IncompatibleStateError, match=f"already holds the results of {whose}"):
            sink.admit(settings, found(planned=planned, **marked(tmp_path, settings, 1, **owner)))


def test_a_folder_without_our_marker_must_hold_no_parquet_files_and_be_new(tmp_path: Path) -> None:
    sink, settings = SINKS["parquet"], settings_for(SINKS["parquet"], tmp_path)
    sink.admit(settings, found(names=lambda place: ["notes.txt", "_writing", "_x.parquet", ".x.parquet.crc"]))
    with pytest.raises(IncompatibleStateError, match=r"holds 1 Parquet files, the first is mine\.parquet"):
        sink.admit(settings, found(names=lambda place: ["mine.parquet"]))
    with pytest.raises(IncompatibleStateError, match="written through Spark's file sink") as caught:
        sink.admit(settings, found(names=lambda place: ["part-0.parquet", "_spark_metadata"], planned=3))
    assert "a new folder" in (caught.value.hint or "")
    with pytest.raises(DataLossError, match="what they wrote is gone"):
        sink.admit(settings, found(planned=3, run="ours"))


@pytest.mark.parametrize("number", range(len(BYTES)))
def test_a_damaged_marker_is_refused(number: int, tmp_path: Path) -> None:
    sink, settings = SINKS["parquet"], settings_for(SINKS["parquet"], tmp_path)
    text = BYTES[number].decode("utf-8", "replace")
    with pytest.raises(IncompatibleStateError, match="cannot be read"):
        sink.admit(settings, found(text=lambda file: text))


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


def test_parquet_results_are_all_files_that_a_reader_of_the_folder_sees(tmp_path: Path) -> None:
    sink, settings, folder = SINKS["parquet"], settings_for(SINKS["parquet"], tmp_path), tmp_path / "path"
    with pytest.raises(ServiceError, match="has no _evenflow"):
        sink.read_back(settings)
    folder.mkdir()
    owner = Owner(query="q", fingerprint=settings.fingerprint, run="r")
    (folder / MARKER).write_text(owner.text())
    assert sink.read_back(settings).read_all().num_columns == 0
    table = sample_rows(AggregatePlan.of(settings.query))
    for number in (2, 0, 1):
        pq.write_table(table.slice(number, 1), folder / file_name("q", number, 0))
    for hidden in ("_draft.parquet", ".x.parquet", "notes.txt"):
        (folder / hidden).write_bytes(b"no file of rows")
    assert repr(sink.read_back(settings).read_all().to_pylist()) == repr(table.slice(0, 3).to_pylist())
    reader = read_parquet_results(folder)
    (folder / file_name("q", 1, 0)).unlink()
    with pytest.raises(DataLossError, match="removed while the results were read"):
        reader.read_all()
    pq.write_table(table.drop_columns("n"), folder / "stray.parquet")
    with pytest.raises(IncompatibleStateError, match=r"stray\.parquet has other columns"):
        sink.read_back(settings).read_all()
    (folder / MARKER).write_text(replace(owner, fingerprint="f").text())
    with pytest.raises(IncompatibleStateError, match="holds the results of query q"):
        sink.read_back(settings)
    with pytest.raises(ConfigError, match="not a folder of this machine"):
        sink.read_back(settings_for(sink, tmp_path, path="s3a://b/out"))


WHOLE_NUMBERS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(
    numbers=st.lists(WHOLE_NUMBERS, min_size=1, unique=True),
    texts=st.lists(TEXTS, min_size=1, unique=True),
    raws=st.lists(st.binary(), min_size=1, unique=True),
)
def test_readers_see_each_key_with_the_type_that_the_query_gives_it(
    numbers: list[int], texts: list[str], raws: list[bytes]
) -> None:
    """From the partitioner's parser to the last table of every sink."""
    for kind, keys in {"int64": numbers, "string": texts, "@key": raws}.items():
        query = {
            "key": "@key" if kind == "@key" else "k",
            "time": "t",
            "window": 10,
            "aggregates": {"n": "count"},
        }
        query |= {} if kind == "@key" else {"types": {"k": kind}}
        settings = Settings(query=query, results={"path": "p"}, input={"partitions": 4})
        records = [json.dumps({"t": 1} | ({} if kind == "@key" else {"k": key})).encode() for key in keys]
        parsed = Parser(settings).parse(records, keys=raws).keys
        whole = AggregatePlan.of(settings.query).result_schema
        table = pa.table(
            [pa.array([value] * len(keys)) for value in (0, 10)] + [parsed, [1] * len(keys)], whole
        )
        shaped = {name: list(sink.shaper(settings)(iter([table]), 0)) for name, sink in SINKS.items()}
        (parquet,), (rows_,) = shaped["parquet"], shaped["kafka"]
        frame = pa.ipc.open_stream(shaped["frames"][0]["value"][0].as_buffer()).read_all()
        assert parquet["key"].to_pylist() == frame["key"].to_pylist() == keys
        assert parquet["key"].type == frame["key"].type
        assert frame["window_end"].to_pylist() == [datetime(1970, 1, 1, 0, 0, 0, 10_000, UTC)] * len(keys)
        assert rows_["key"].to_pylist() == parsed.to_pylist()
        values = [json.loads(value) for value in rows_["value"].to_pylist()]
        assert [value["key"] if "key" in value else b64decode(value["key_base64"]) for value in values] == [
            key.decode() if isinstance(key, bytes) and is_text(key) else key for key in keys
        ]


def is_text(key: bytes) -> bool:
    try:
        key.decode()
    except UnicodeDecodeError:
        return False
    return True


@pytest.mark.parametrize("damage", [b"", b"no parquet", b"PAR1" + bytes(20) + b"PAR1", None])
def test_a_file_that_is_no_parquet_is_named_with_what_to_do(tmp_path: Path, damage: bytes | None) -> None:
    file = tmp_path / "q-0000000001-0000.parquet"
    file.mkdir() if damage is None else file.write_bytes(damage)
    with pytest.raises(IncompatibleStateError, match=r"q-0000000001-0000\.parquet cannot be read as Parquet"):
        read_parquet_results(tmp_path)


def test_a_reset_names_the_subject_that_stays_in_the_registry_and_how_to_delete_it() -> None:
    settings = Settings(query={"name": "q"}, results={"sink": "avro", **NEEDED["avro"]})
    (said,) = SINKS["avro"].keeps(settings)
    assert said.startswith("subject q.results-value of the schema registry at http://127.0.0.1:1: ")
    assert "`curl -X DELETE http://127.0.0.1:1/subjects/q.results-value`" in said
    assert SINKS["kafka"].keeps(settings) == []


def test_avro_takes_the_registry_of_results_or_that_of_the_input_and_is_refused_without_any() -> None:
    def made(results: dict[str, Any], **input: Any) -> Settings:
        return Settings(query={"name": "q"}, results=results, input={"partitions": 1, **input})

    own, of_input = {"url": "http://127.0.0.1:1"}, {"url": "http://127.0.0.1:2"}
    both = made({"sink": "avro", "registry": own}, format="avro", registry=of_input)
    one = made({"sink": "avro"}, format="avro", registry=of_input)
    for settings, section, url in ((both, "results.registry", 1), (one, "input.registry", 2)):
        assert sink_of(settings) is SINKS["avro"]
        found = settings.results_registry
        assert found is not None
        assert (found[0], found[1].url) == (section, f"http://127.0.0.1:{url}")
    assert both.fingerprint == one.fingerprint
    with pytest.raises(
        ConfigError, match=r"results.sink = 'avro' needs a schema registry\n.*\[results.registry\]"
    ):
        sink_of(made({"sink": "avro"}))
    for field in ({"registry": own}, {"register_schema": False}):
        with pytest.raises(ValueError, match=r"belong to sink = 'avro', but the sink is 'kafka'"):
            made({"sink": "kafka"} | field)


@pytest.mark.parametrize("emit", ["all", "changes", "top(2, n)"])
def test_avro_rows_are_read_back_as_the_rows_of_json_and_anything_else_as_null(
    emit: str, tmp_path: Path
) -> None:
    both = {name: settings_for(SINKS[name], tmp_path) for name in ("kafka", "avro")}
    query = both["kafka"].query.model_dump(include={"name", "key", "types"}) | {
        "aggregates": ALL,
        "emit": emit,
    }
    for name, settings in both.items():
        both[name] = load_settings(
            tmp_path / "none.json",
            query=query,
            input={"partitions": 4},
            results=settings.model_dump(include={"results"})["results"],
        )
    plan = AggregatePlan.of(both["avro"].query)
    more = {"revision": 7, "gone": False, "rank": 1, "_tuples": 5, "_tuples_of_all": 9}
    rows = sample_rows(AggregatePlan.of(settings_for(SINKS["avro"], tmp_path).query)).to_pylist()
    table = pa.Table.from_pylist([more | row for row in rows], plan.result_schema)
    (json_,), (avro,) = (
        list(SINKS[name].shaper(settings)(iter([table]), 0)) for name, settings in both.items()
    )
    assert avro["key"].to_pylist() == json_["key"].to_pylist()
    values = [header(7) + value for value in avro["value"].to_pylist()]
    foreign = [None, b"", b"{}", header(8) + values[0][5:], values[0] + b"\0", values[0][5:]]
    given_values = [*values[:3], *foreign, *values[3:]]
    records = pa.RecordBatch.from_pylist(
        [
            {"partition": 1, "offset": at, "value": value, "key": b"k"}
            for at, value in enumerate(given_values)
        ],
        JSON_RECORDS,
    )
    found = with_json(records, avro_form(both["avro"]), header(7))
    assert found.schema == JSON_RECORDS
    assert found["offset"].to_pylist() == list(range(len(given_values)))
    texts = [text.encode() for text in json_["value"].to_pylist()]
    assert found["value"].to_pylist() == [*texts[:3], *[None] * len(foreign), *texts[3:]]
