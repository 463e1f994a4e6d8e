"""The record of how a query began says by which rule it rejects records without a key."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from evenflow.errors import IncompatibleStateError
from evenflow.settings import Settings
from topics.query_record import Beginning, as_begun, encode_beginning, parse_beginning

SETTINGS = Settings(query={"name": "q", "where": "v > 1"}, input={"partitions": 1})
BEGINNING = Beginning(identity=SETTINGS.identity(), input_id="in", begin={0: 5}, began_at=7)


@pytest.mark.parametrize("filter_first", [True, False])
def test_the_rule_is_read_back_and_holds_for_the_settings(filter_first: bool) -> None:
    written = encode_beginning(replace(BEGINNING, filter_first=filter_first))
    found = parse_beginning(written, where="q.snapshots")
    assert found == replace(BEGINNING, filter_first=filter_first)
    assert as_begun(SETTINGS, found).query.filter_first is filter_first


def test_a_query_that_has_not_begun_filters_first() -> None:
    assert as_begun(SETTINGS, None).query.filter_first


def test_a_query_that_began_before_the_rule_goes_on_without_it() -> None:
    fields = {"v": 2, "identity": BEGINNING.identity, "input_id": "in", "begin": [5], "began_at": 7}
    found = parse_beginning(json.dumps(fields).encode(), where="q.snapshots")
    assert not found.filter_first
    assert json.loads(encode_beginning(found)) == fields, "an older evenflow still reads it"


def test_a_record_of_a_later_version_is_refused() -> None:
    fields = json.loads(encode_beginning(BEGINNING)) | {"v": 4}
    with pytest.raises(IncompatibleStateError, match="has version 4, this evenflow reads 3"):
        parse_beginning(json.dumps(fields).encode(), where="q.snapshots")
