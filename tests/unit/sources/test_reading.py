"""What a file is taken for: what is said outright, its name, its first lines, in this order; and what is
refused.
"""

import gzip
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.errors import ConfigError
from evenflow.grammar.inputs import FileFormat
from evenflow.sources.datasets import FILES, open_source, reading_of
from evenflow.sources.files import head_lines
from evenflow.sources.source import SourceOptions
from evenflow.sources.tables import DELIMITERS, delimiter_of, is_table

SPACED = "a 100 0.5\nb 200 0.25\na 300 1.0\n" * 2
SEMICOLONS = "who;at\na;1\nb;2\na;3\n"
OBJECTS = '{"who": "a", "at": 1}\n{"who": "b", "at": 2}\n'
PROSE = "It was the best of times,\nit was the worst of times, it was\n\nthe age of wisdom\n"
BARE = SourceOptions(key="c0", header=False, event_rate=1000.0, columns_named=True)
KEYED = SourceOptions(key="who", event_rate=1000.0, columns_named=True)


def told(tmp_path: Path, name: str, content: str, options: SourceOptions = SourceOptions()) -> str:
    path = tmp_path / name
    path.write_text(content)
    result = reading_of(str(path), options).remark
    assert result is not None
    return result.removeprefix(f"{tmp_path}/")


@pytest.mark.parametrize(
    ("name", "content", "options", "sentence"),
    [
        ("o.txt", SPACED, BARE, "CSV with delimiter ' ', no header, columns c0, c1, c2"),
        ("o.txt", SEMICOLONS, KEYED, "CSV with delimiter ';', names in the first row, columns who, at"),
        ("o", SEMICOLONS, KEYED, "CSV with delimiter ';', names in the first row, columns who, at"),
        ("o.csv", SEMICOLONS, SourceOptions(),
        "CSV with delimiter ';', names in the first row, columns who, at"),
        ("o.csv", "a b\nc d\n", SourceOptions(),
        "CSV with delimiter ',', names in the first row, columns a b"),
        ("o.tsv", "a\tb,c\n", SourceOptions(),
        "CSV with delimiter '\\t', names in the first row, columns a, b,c"),
        ("o.log", OBJECTS, KEYED, "JSON lines, columns who, at"),
        ("o.txt", OBJECTS, SourceOptions(), "JSON lines, columns who, at"),
        ("o.txt", PROSE, SourceOptions(), "text, one tuple a word in the column word"),
    ],
)  # fmt: skip
def test_it_is_said_how_a_file_is_read(
    name: str, content: str, options: SourceOptions, sentence: str, tmp_path: Path
) -> None:
    assert told(tmp_path, name, content, options) == f"{name}: read as {sentence}; --format says otherwise"


def test_what_is_said_outright_is_obeyed_and_not_questioned(tmp_path: Path) -> None:
    formats: list[FileFormat] = ["csv", "json", "words"]
    assert [item.name for item in FILES] == [*formats, "parquet"]
    for name in formats:
        options = SourceOptions(format=name)
        assert reading_of(_file(tmp_path, "o.csv", OBJECTS), options).format.name == name
        assert "otherwise" not in told(tmp_path, "o.csv", OBJECTS, options)
    assert "otherwise" not in (reading_of(f"csv:{_file(tmp_path, 'o.txt', SEMICOLONS)}").remark or "")


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("o.txt", SPACED, SourceOptions(),
        "looks like a table with delimiter ' ', but no column of it is named"),
        ("o.dat", PROSE, SourceOptions(), "neither name nor content"),
        ("o.jsonl", OBJECTS, SourceOptions(key="who", delimiter=","),
        "(its name says so), which takes no --delimiter"),
        ("o.csv", OBJECTS, SourceOptions(key="who", format="json", header=False),
        "which takes no --no-header"),
        ("o.txt", PROSE, SourceOptions(format="words", delimiter=" "), "which takes no --delimiter"),
        ("o.txt", SPACED, SourceOptions(key="c0", columns_named=True), "has no column 'c0'"),
        ("o.txt", SPACED, SourceOptions(key="who", header=False),
        "has no column 'who'; it has 'c0', 'c1', 'c2'"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(
    name: str, content: str, options: SourceOptions, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        open_source(_file(tmp_path, name, content), options)
    assert message in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("source", ["flights", "zipf:z=1.4"])
def test_words_of_a_file_are_refused_for_a_source_that_is_none(source: str) -> None:
    for options in (SourceOptions(delimiter=";"), SourceOptions(header=False), SourceOptions(format="csv")):
        with pytest.raises(ConfigError):
            reading_of(source, options)
    assert reading_of(source).remark is None


def test_a_prefix_and_a_format_that_differ_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--format csv contradicts 'json:"):
        reading_of(f"json:{_file(tmp_path, 'o', OBJECTS)}", SourceOptions(format="csv"))


@pytest.mark.parametrize("wrapping", [".gz", ".zip", ""])
def test_the_first_lines_are_seen_through_the_wrapping(wrapping: str, tmp_path: Path) -> None:
    path = tmp_path / f"o.txt{wrapping}"
    content = ("x" * 99 + "\r\n\r\n") * 1000
    if wrapping == ".gz":
        path.write_bytes(gzip.compress(content.encode()))
    elif wrapping == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("o.txt", content)
    else:
        path.write_text(content, newline="")
    assert set(head_lines(path, "utf-8")) == {"x" * 99}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1"])
def test_a_character_that_the_look_cuts_through_is_no_error(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "o.txt"
    path.write_text("é" + "éü\n" * 40_000, encoding=encoding)
    assert set(head_lines(path, encoding)[1:]) == {"éü"}


@given(
    rows=st.lists(
        st.lists(st.text("abc123.", min_size=1, max_size=5), min_size=3, max_size=3), min_size=5, max_size=9
    ),
    delimiter=st.sampled_from(DELIMITERS),
)
def test_the_delimiter_of_a_table_is_found(rows: list[list[str]], delimiter: str) -> None:
    lines = [delimiter.join(row) for row in rows]
    assert delimiter_of(lines) == delimiter
    assert is_table(lines)


def _file(tmp_path: Path, name: str, content: str) -> str:
    path = tmp_path / name
    path.write_text(content)
    return str(path)
