from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from evenflow.errors import ConfigError
from evenflow.settings import InputSettings, load_settings
from evenflow.sources.datasets import FORMATS, open_source
from evenflow.sources.formats import csv_files
from evenflow.sources.source import Batch, Source, SourceOptions
from producers.records import values_of

ROWS = "key,time,amount\nb,30,1\na,10,\nc,10,3\nb,20,4\n"
KEYED = SourceOptions(key="key", time="time")


def records(source: Source, form: InputSettings | None = None) -> list[bytes]:
    return [
        value
        for batch in source.batches()
        for value in values_of(batch, form or InputSettings(), key=source.key).to_pylist()
    ]


def only(source: Source) -> Batch:
    (batch,) = source.batches()
    return batch


def zipped(path: Path, **members: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("_", "."), content)
    return path


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("wrapping", ["", ".gz", ".zip"])
def test_a_csv_file_is_read_whatever_it_is_wrapped_in(tmp_path: Path, wrapping: str) -> None:
    path = tmp_path / f"rows.csv{wrapping}"
    if wrapping == ".zip":
        zipped(path, rows_csv=ROWS)
    else:
        write(path, gzip.compress(ROWS.encode()) if wrapping else ROWS)
    assert records(open_source(str(path), KEYED)) == [
        b'{"key":"a","time":10,"amount":null}',
        b'{"key":"c","time":10,"amount":3}',
        b'{"key":"b","time":20,"amount":4}',
        b'{"key":"b","time":30,"amount":1}',
    ]


def test_a_file_is_sorted_by_event_time_and_equal_times_keep_their_order(tmp_path: Path) -> None:
    batch = only(open_source(str(write(tmp_path / "r.csv", ROWS)), KEYED))
    assert batch.times.tolist() == [10, 10, 20, 30]
    assert batch.keys.to_pylist() == [b"a", b"c", b"b", b"b"]


def test_keep_order_keeps_the_order_of_the_file(tmp_path: Path) -> None:
    options = SourceOptions(key="key", time="time", keep_order=True)
    assert only(open_source(str(write(tmp_path / "r.csv", ROWS)), options)).times.tolist() == [30, 10, 10, 20]


def test_batches_are_cut_without_changing_anything(tmp_path: Path) -> None:
    source = open_source(str(write(tmp_path / "r.csv", ROWS)), KEYED)
    parts = list(source.batches(3))
    assert [len(part) for part in parts] == [3, 1]
    assert pa.concat_arrays([part.keys for part in parts]).equals(only(source).keys)


def test_columns_without_names_are_called_by_number(tmp_path: Path) -> None:
    path = write(tmp_path / "r.csv", "x;1357016409;2.5\ny;1357016400;3\n")
    options = SourceOptions(key="c0", time="c1", time_unit="s", header=False, delimiter=";")
    batch = only(open_source(str(path), options))
    assert batch.columns.column_names == ["c0", "c1", "c2"]
    assert batch.times.tolist() == [1357016400000, 1357016409000]


def test_only_the_chosen_columns_are_sent_in_their_order(tmp_path: Path) -> None:
    options = SourceOptions(key="key", time="time", columns=("amount", "key"))
    source = open_source(str(write(tmp_path / "r.csv", ROWS)), options)
    assert records(source)[0] == b'{"amount":null,"key":"a"}'
    assert source.column_names == ["amount", "key"]


def test_keys_and_dates_keep_their_text(tmp_path: Path) -> None:
    path = write(tmp_path / "r.csv", "key,time,day,flag\n007,2013-01-01 10:00:00,2013-01-01,true\n")
    options = SourceOptions(key="key", time="time", time_unit="iso", types={"key": "string"})
    assert records(open_source(str(path), options)) == [
        b'{"key":"007","time":"2013-01-01 10:00:00","day":"2013-01-01","flag":"true"}'
    ]


def test_quoted_fields_may_hold_delimiters_and_line_breaks(tmp_path: Path) -> None:
    path = write(tmp_path / "r.csv", 'key,time\n"a,""b""\nc",5\n')
    assert only(open_source(str(path), KEYED)).keys.to_pylist() == [b'a,"b"\nc']


@pytest.mark.parametrize(
    ("unit", "text", "expected"),
    [
        ("s", "1357016409", 1357016409000),
        ("s", "1.5", 1500),
        ("ms", "-1", -1),
        ("us", "-1", -1),
        ("us", "1999", 1),
        ("iso", "2013-01-01T10:00:00Z", 1357034400000),
        ("iso", "2013-01-01 10:00:00", 1357034400000),
        ("iso", "2013-01-01 10:00", 1357034400000),
        ("iso", "2013-01-01", 1356998400000),
        ("iso", "2013-01-01T10:00:00.1239999999", 1357034400123),
        ("iso", "2013-01-01T12:00:00+02:00", 1357034400000),
        ("iso", "2013-01-01T12:00:00.5+0200", 1357034400500),
        ("iso", "1969-12-31T23:59:59.9999Z", -1),
    ],
)
def test_event_times_are_milliseconds_rounded_down(tmp_path: Path, unit, text: str, expected: int) -> None:
    path = write(tmp_path / "r.csv", f"key,time\na,{text}\n")
    options = SourceOptions(key="key", time="time", time_unit=unit)
    assert only(open_source(str(path), options)).times.tolist() == [expected]


def test_iso_times_with_and_without_zone_may_be_mixed(tmp_path: Path) -> None:
    path = write(tmp_path / "r.csv", "key,time\na,2013-01-01 10:00:00\nb,2013-01-01T10:00:00+01:00\n")
    options = SourceOptions(key="key", time="time", time_unit="iso", keep_order=True)
    assert only(open_source(str(path), options)).times.tolist() == [1357034400000, 1357030800000]


@pytest.mark.parametrize("name", ["r.jsonl", "r.jsonl.gz"])
def test_json_lines_are_sent_as_they_are_when_all_columns_are(tmp_path: Path, name: str) -> None:
    lines = [b'{"key": "b", "time": 2, "deep": {"x": [1, 2.50]}}', b'{"time":1,"key":"a"}']
    content = b"\n\n".join(lines) + b"\n"
    path = write(tmp_path / name, gzip.compress(content) if name.endswith("gz") else content)
    source = open_source(str(path), KEYED)
    assert records(source) == [lines[1], lines[0]]
    assert only(source).keys.to_pylist() == [b"a", b"b"]


def test_json_lines_are_rendered_when_columns_are_chosen(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", '{"key":"a","time":"2013-01-01T10:00:00Z","n":1,"m":{}}\n')
    options = SourceOptions(key="key", time="time", time_unit="iso", columns=("time", "n"))
    assert records(open_source(str(path), options)) == [b'{"time":"2013-01-01T10:00:00Z","n":1}']


def test_text_is_one_tuple_per_word_in_reading_order(tmp_path: Path) -> None:
    path = write(tmp_path / "t.txt", "Don't PANIC, 42nd Straße!\nÉté_x")
    batch = only(open_source(str(path)))
    words = ["don't", "panic", "nd", "straße", "été", "x"]
    assert batch.columns.column("word").to_pylist() == words
    assert batch.times.tolist() == [0, 1, 2, 3, 4, 5]


def test_archives_and_folders_of_texts_are_read_in_order_of_name(tmp_path: Path) -> None:
    texts = {"b.txt": "two", "a.txt": "one", "README": "no"}
    folder = tmp_path / "texts"
    folder.mkdir()
    with tarfile.open(tmp_path / "texts.tar.gz", "w:gz") as archive:
        for name, content in texts.items():
            write(folder / name, content)
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content.encode()))
    for path in (folder, tmp_path / "texts.tar.gz"):
        assert only(open_source(str(path))).keys.to_pylist() == [b"one", b"two"]


def test_words_are_called_as_the_query_calls_them() -> None:
    settings = load_settings(query={"key": "term", "time": "at", "time_unit": "s"})
    options = SourceOptions.for_settings(settings)
    assert (options.key, options.time, options.time_unit, options.types) == (
        "term",
        "at",
        "s",
        {"term": "string"},
    )


def test_text_records_are_the_words_themselves(tmp_path: Path) -> None:
    settings = load_settings(input={"format": "text"}, query={"key": "value", "time": "@timestamp"})
    source = open_source(str(write(tmp_path / "t.txt", "a b a")), SourceOptions.for_settings(settings))
    assert records(source, settings.input) == [b"a", b"b", b"a"]


def test_the_flights_are_all_there_in_order_of_time() -> None:
    source = open_source(
        "flights", SourceOptions(columns=("carrier", "dest", "tailnum", "dep_delay", "time_hour"))
    )
    batches = list(source.batches())
    times = np.concatenate([batch.times for batch in batches])
    columns = pa.concat_tables([batch.columns for batch in batches])
    assert source.rows == len(times) == 336_776
    assert (np.diff(times) >= 0).all()
    assert [len(columns.column(name).unique()) for name in ("carrier", "dest", "tailnum")] == [16, 105, 4_044]
    assert columns.schema.field("dep_delay").type == pa.int64()
    assert columns.column("time_hour")[0].as_py() == "2013-01-01T10:00:00Z"
    assert times[0] == 1357034400000


def test_a_generator_is_a_source_by_its_words() -> None:
    assert open_source("zipf:z=1.4,keys=10,tuples=7").rows == 7


@pytest.mark.parametrize("item", FORMATS, ids=lambda item: item.name)
def test_every_registered_format_refuses_what_is_not_there(item) -> None:
    text = f"{item.name}:/no/such/file" if item.suffixes else f"{item.name}:nonsense"
    with pytest.raises(ConfigError):
        open_source(text)


@pytest.mark.parametrize(
    ("name", "content", "options", "complaint"),
    [
        (
            "r.csv",
            ROWS,
            SourceOptions(key="kee", time="time"),
            "no column 'kee'; it has 'key', 'time', 'amount'",
        ),
        ("r.csv", ROWS, SourceOptions(key="key", time="when"), "no column 'when'"),
        ("r.csv", ROWS, SourceOptions(key="key"), "which column is the event time"),
        ("r.csv", ROWS, SourceOptions(time="time"), "which column is the record key"),
        ("r.csv", ROWS, SourceOptions(key="key", time="time", delimiter=";"), "--delimiter"),
        ("r.csv", ROWS, SourceOptions(key="key", time="time", delimiter="§"), "'§' is not one character"),
        ("r.csv", ROWS, SourceOptions(key="key", time="time", delimiter="\0"), "is not one character"),
        ("r.csv", ROWS + "d,soon,1\n", KEYED, "'time' is 'soon' in row 5"),
        ("r.csv", ROWS + "d,,1\n", KEYED, "'time' is blank in row 5"),
        ("r.csv", ROWS + "d,1\n", KEYED, "r.csv: .*#6.*Expected 3 columns, got 2"),
        ("r.csv", ROWS, SourceOptions(key="key", time="time", time_unit="iso"), "--time-unit"),
        (
            "r.csv",
            "key,time\na,2013-13-01\n",
            SourceOptions(key="key", time="time", time_unit="iso"),
            "row 1",
        ),
        ("r.csv", "key,time\na,1\n\xff,2\n".encode("latin-1"), KEYED, "--encoding"),
        ("r.csv", "key,key\na,1\n", KEYED, "occur twice"),
        ("r.csv", "", KEYED, "is empty"),
        ("r.csv.gz", ROWS, KEYED, "not a readable gzip"),
        ("r.csv.gz", gzip.compress(ROWS.encode(), mtime=0)[:-9], KEYED, "not a readable gzip"),
        ("r.csv.zip", ROWS, KEYED, "not a readable zip"),
        ("r.tar.gz", "text", SourceOptions(), r"not a readable .tar.gz"),
        ("r.jsonl", '{"key":"a","time":1}\n{"key":\n', KEYED, r"row 2 \(\{\"key\":\)"),
        ("r.jsonl", '{"key":"a","time":1}\n{"key":"a"}\n', KEYED, "'time' is blank in row 2"),
        ("r.jsonl", '{"key":"a","time":1}{"key":"a","time":1}\n', KEYED, "one JSON object on each line"),
        ("r.jsonl", '{"key":{"a":1},"time":1}\n', KEYED, "objects or lists"),
        ("r.txt", "123 456", SourceOptions(), "holds no word"),
        ("r.txt", b"\xff\xfe\xff", SourceOptions(), "--encoding"),
        ("r.orc", "x", SourceOptions(), "known endings"),
        ("r.parquet", "x", SourceOptions(), "is no Parquet file"),
    ],
)
def test_a_malformed_source_is_refused_naming_file_and_place(
    tmp_path: Path, name: str, content: str | bytes, options: SourceOptions, complaint: str
) -> None:
    path = write(tmp_path / name, content)
    with pytest.raises(ConfigError, match=complaint) as caught:
        open_source(str(path), options)
    assert name in caught.value.message
    assert caught.value.hint is not None


def test_a_zip_of_several_files_is_refused_naming_them(tmp_path: Path) -> None:
    path = zipped(tmp_path / "r.csv.zip", a_csv=ROWS, b_csv=ROWS)
    with pytest.raises(ConfigError, match=r"holds 2 files \(a.csv, b.csv\)"):
        open_source(str(path), KEYED)


def test_a_name_that_is_nothing_is_refused_with_what_there_is() -> None:
    with pytest.raises(ConfigError, match="flights, zipf"):
        open_source("flihgts")


@pytest.mark.parametrize("unit", ["s", "ms", "us", "iso"])
def test_a_header_without_rows_is_a_source_without_tuples(tmp_path: Path, unit) -> None:
    path = write(tmp_path / "rows.csv", "key,time\n")
    timed = open_source(str(path), SourceOptions(key="key", time="time", time_unit=unit))
    numbered = open_source(str(path), SourceOptions(key="key", event_rate=10.0))
    assert (timed.rows, list(timed.batches())) == (numbered.rows, list(numbered.batches())) == (0, [])


def beginning(path: Path, first: int | None, **more: object) -> Batch:
    """The first tuples in the file's order, of a reader that was told so or was not."""
    options = SourceOptions(
        key="key", time="time", columns=("key", "time"), types={"key": "string"}, keep_order=True,
        first=first, **more,
    )  # fmt: skip
    return only(open_source(str(path), options))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "iso"])
@pytest.mark.parametrize("first", [1, 2, 3, 99])
@pytest.mark.parametrize("wrapping", ["", ".gz"])
def test_the_beginning_of_a_csv_file_is_what_the_whole_file_begins_with(
    tmp_path: Path, unit, first: int, wrapping: str
) -> None:
    times = ["2024-01-02T03:04:05Z", "2024-01-02 03:04"] if unit == "iso" else ["1700000000", " 1699999999.5"]
    rows = f'key,other,time\n"a\n,""b""",1,{times[0]}\n\n,2,{times[1]}\n007,x,{times[0]}\n'
    path = write(tmp_path / f"rows.csv{wrapping}", gzip.compress(rows.encode()) if wrapping else rows)
    result, whole = (beginning(path, rows_read, time_unit=unit) for rows_read in (first, None))
    assert result.keys.to_pylist() == whole.keys.to_pylist()[:first] == [b'a\n,"b"', b"", b"007"][:first]
    assert result.times.tolist() == whole.times.tolist()[:first]


def test_the_beginning_of_a_file_is_read_and_not_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_files, "_HEAD_BLOCK", 4096)
    packed = gzip.compress(
        "".join(["key,time\n", *(f"k{row * row},{row}\n" for row in range(50_000))]).encode()
    )
    path = write(tmp_path / "cut.csv.gz", packed[: len(packed) // 2])
    assert beginning(path, 1_000).times.tolist() == list(range(1_000))
    for rows in (49_000, None):
        with pytest.raises(ConfigError, match="not a readable gzip file"):
            beginning(path, rows)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("key,time\na,1\nb,x\n", "the time column 'time' is 'x' in row 2"),
        ("key,time\na,1,2\n", "Expected 2 columns, got 3"),
        ("key,at\na,1\n", "has no column 'time'"),
        ("", "is empty"),
        (b"key,time\n\xff,1\n", "not in the encoding given"),
    ],
)
def test_what_is_wrong_with_the_beginning_of_a_file_is_told_as_of_a_whole_one(
    tmp_path: Path, rows: str | bytes, message: str
) -> None:
    path = write(tmp_path / "rows.csv", rows)
    for first in (5, None):
        with pytest.raises(ConfigError, match=message):
            beginning(path, first)
