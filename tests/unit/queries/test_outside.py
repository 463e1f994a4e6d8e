"""A query of one's own is named by module:QUERY or by a package's name, or refused in words."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenflow.errors import ConfigError
from evenflow.queries import all_queries, named
from tests.outside import forgotten, module, package

OWN = """
from evenflow.queries import BuiltInQuery
LETTERS = BuiltInQuery(name="letters", what="letters by the minute", source="made-words", data="some",
    fields={"key": "word", "time": "time", "window": "60s", "aggregates": {"n": "count"}})
NUMBER = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in Python's path that holds the module `own`."""
    monkeypatch.syspath_prepend(str(tmp_path))
    module(tmp_path, "own", OWN)
    with forgotten(tmp_path):
        yield tmp_path


def test_a_query_is_taken_from_its_module(folder: Path) -> None:
    assert named("own:LETTERS").what == "letters by the minute"
    assert "letters" not in {query.name for query in all_queries()}


def test_a_package_offers_a_query_and_a_broken_one_is_left_out_with_a_warning(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    package(folder, "their-package", "evenflow.queries", letters="own:LETTERS", broken="nowhere:QUERY")
    with caplog.at_level(logging.WARNING):
        assert all_queries()[-1] is named("letters")
    assert "the query 'broken' is not there" in caplog.text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("own:NUMBER", "own:NUMBER is no query: it is of class int"),
        ("own:WORDS", "module own has no WORDS"),
        ("nothing", "there is no built-in query 'nothing'"),
    ],
)
def test_what_is_no_query_is_refused_in_words(folder: Path, name: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        named(name)
