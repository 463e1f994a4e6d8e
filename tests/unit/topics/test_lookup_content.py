"""Which content of a lookup file a part goes by: that of the file, or that with which the query began."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evenflow.errors import ConfigError, IncompatibleStateError
from evenflow.settings import Settings
from evenflow.settings.beginning import Beginning
from evenflow.settings.identity import begun_lookup
from topics.query.record import refuse_changed, with_lookup_content


@pytest.fixture
def file(tmp_path: Path) -> Path:
    result = tmp_path / "rows.csv"
    result.write_text("id,region\na,north\n")
    return result


def settings_of(file: Path, **lookup: Any) -> Settings:
    fields = {"file": file, "key": "id", "columns": {"region": "string"}, **lookup}
    views = {"long": {"window": "120s", "aggregates": {"n": "count"}}}
    query = {"key": "region", "window": "60s", "lookup": fields, "views": views}
    return Settings(query=query, input={"partitions": 1, "format": "json"})


def beginning(settings: Settings) -> Beginning:
    return Beginning(identity=settings.identity(), input_id="t", begin={0: 0}, began_at=0)


def test_a_part_without_the_file_goes_by_the_beginning_and_one_with_it_by_the_file(file: Path) -> None:
    settings = settings_of(file)
    begun, fingerprint = beginning(settings), settings.fingerprint
    assert with_lookup_content(settings, None).fingerprint == fingerprint
    file.unlink()
    assert with_lookup_content(settings, begun).fingerprint == fingerprint
    with pytest.raises(ConfigError, match="the query has not begun") as raised:
        _ = with_lookup_content(settings, None).fingerprint
    assert "query.lookup.sha256" in str(raised.value.hint)
    named = settings_of(file, sha256=begun_lookup(begun.identity))
    assert with_lookup_content(named, None).fingerprint == fingerprint


def test_a_start_with_another_content_is_refused_and_names_both(file: Path) -> None:
    settings = settings_of(file)
    begun = beginning(settings)
    refuse_changed(settings, beginning=begun)
    file.write_text("id,region\na,south\n")
    with pytest.raises(
        IncompatibleStateError, match=r'query\.lookup\.sha256: "[0-9a-f]{64}" -> "[0-9a-f]{64}"'
    ):
        refuse_changed(settings, beginning=begun)
    file.unlink()
    refuse_changed(settings, beginning=begun)


def test_a_view_has_the_content_of_its_query(file: Path) -> None:
    known = with_lookup_content(settings_of(file), None)
    seen = known.query.view("long")
    assert seen.lookup == known.query.lookup
    assert seen.with_lookup_sha256("0" * 64).origin.lookup == known.query.with_lookup_sha256("0" * 64).lookup


@pytest.mark.parametrize(
    "identity", [{}, {"query": 5}, {"query": {"lookup": []}}, {"query": {"lookup": {"sha256": "no"}}}]
)
def test_an_identity_without_a_lookup_names_no_content(identity: dict[str, Any]) -> None:
    assert begun_lookup(identity) is None
