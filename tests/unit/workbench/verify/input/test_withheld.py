"""Schemas that the registry withholds: from the partitioner then, from verify now, from both or from
neither.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from evenflow.errors import ConfigError
from evenflow.settings import load_settings
from tests.schema_registry import RegistryInMemory, schema_registry
from tests.unit.partitioner_service.reading.registered_records import avro, record_of
from tests.unit.workbench.verify.pipeline_model import Record, Topics, run

SCHEMA = record_of(("k", "string"), ("t", "long"))
REFUSED = "the registry refuses schema 2: HTTP 403: User is denied"


@pytest.fixture
def registry() -> Iterator[RegistryInMemory]:
    with schema_registry() as kept:
        kept.register(json.dumps(SCHEMA))
        kept.register(json.dumps(SCHEMA | {"doc": "payroll"}))
        yield kept


def topics_of(registry: RegistryInMemory, *, forbidden_then: bool, detail: str = REFUSED) -> Topics:
    """Ten tuples and one more of schema 2, which the partitioner could read, or could not."""
    settings = load_settings(
        query={"name": "q", "key": "k", "time": "t", "window": "1s", "aggregates": {"n": "count"}},
        input={"format": "avro", "partitions": 1, "registry": {"url": registry.url}},
    )
    records = [Record(avro(SCHEMA, {"k": "a", "t": at * 300}, 1), (b"a", at * 300, {})) for at in range(10)]
    held: tuple[bytes, int, dict[str, Any]] = (b"b", 1_000, {})
    records.insert(4, Record(avro(SCHEMA, {"k": "b", "t": 1_000}, 2), None if forbidden_then else held))
    topics = run(settings, [records])
    for one in topics.rejected:
        one["detail"] = detail
    return topics


def test_what_was_withheld_from_both_is_said_and_is_no_difference(registry: RegistryInMemory) -> None:
    registry.forbidden = {2}
    report = topics_of(registry, forbidden_then=True).check()
    assert (report.exact, report.withheld, report.without_schema) == (True, 1, 0), report.text()
    assert "1 records were rejected as unreadable, and the registry refuses their schemas" in report.text()


def test_what_was_withheld_then_and_is_handed_out_now_is_said_and_is_no_difference(
    registry: RegistryInMemory,
) -> None:
    report = topics_of(registry, forbidden_then=True).check()
    assert (report.exact, report.withheld, report.without_schema) == (True, 0, 1), report.text()
    assert "the registry did not hand out their schemas" in report.text()


def test_a_record_that_was_never_withheld_and_is_rejected_all_the_same_is_a_difference(
    registry: RegistryInMemory,
) -> None:
    report = topics_of(registry, forbidden_then=True, detail="the record does not decode by schema 2").check()
    assert report.differences == 1, report.text()


def test_verify_does_not_call_a_tuple_wrong_that_it_may_not_read(registry: RegistryInMemory) -> None:
    assert topics_of(registry, forbidden_then=False).check().exact
    registry.forbidden = {2}
    with pytest.raises(ConfigError, match=r"record 4 of input partition 0 .* schema 2: HTTP 403"):
        topics_of(registry, forbidden_then=False).check()
