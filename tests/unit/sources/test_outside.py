"""A source of one's own is opened by module:Thing, by a package's name, or refused in words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evenflow.errors import ConfigError
from evenflow.sources.datasets import open_source
from tests.outside import forgotten, module, package

OWN = """
import pyarrow as pa
from evenflow.sources.source import SourceFormat, bounded
def open_letters(rest, options):
    letters = pa.table({"key": list(rest), "time": range(len(rest))})
    return bounded("letters", letters, options, key="key", time="time")
LETTERS = SourceFormat("letters", "each letter is a record", open_letters)
def broken(rest, options):
    return rest[99]
def bare(rest, options):
    return object()
NUMBER = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory, in Python's path, that holds the module `own`."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    module(tmp_path, "own", OWN)
    with forgotten(tmp_path):
        yield tmp_path


def keys(text: str) -> list[bytes]:
    return [key for batch in open_source(text).batches() for key in batch.keys.to_pylist()]


@pytest.mark.parametrize("text", ["own:open_letters:a:b", "own:LETTERS:a:b", "letters:a:b"])
def test_what_stands_behind_the_name_is_the_sources_own(folder: Path, text: str) -> None:
    package(folder, "their-package", "evenflow.sources", letters="own:LETTERS")
    assert keys(text) == [b"a", b":", b"b"]


def test_a_word_behind_a_packages_name_is_no_class(folder: Path) -> None:
    package(folder, "their-package", "evenflow.sources", letters="own:LETTERS")
    assert keys("letters:ab") == [b"a", b"b"]


def test_a_file_of_that_name_goes_before_a_module(folder: Path) -> None:
    (folder / "own:LETTERS").write_text("a word\n")
    with pytest.raises(ConfigError, match="neither name nor content of own:LETTERS"):
        open_source("own:LETTERS")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("own:NUMBER:x", "own:NUMBER is no source: it is of class int"),
        ("own:nothing:x", "module own has no nothing"),
        ("own:broken:x", r"the source own:broken cannot be opened: IndexError: .*own.py, line \d+"),
        ("own:bare:x", "own:bare made no source: it has no name, column_names, time"),
        ("nowhere.csv", "there is no file nowhere.csv"),
    ],
)
def test_what_is_no_source_is_refused_in_words(folder: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        open_source(text)
