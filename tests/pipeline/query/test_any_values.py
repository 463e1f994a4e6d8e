"""count_distinct of a column without a declared type, through the whole pipeline: exact by verify, and by
hand.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from evenflow.errors import IncompatibleStateError
from evenflow.settings import KafkaSettings
from evenflow.settings.views import queries
from partitioner_service.begin.claim import claim
from partitioner_service.begin.prepare import prepare
from partitioner_service.kafka.committed_state import all_states
from partitioner_service.kafka.watchdog import Watchdog
from partitioner_service.plane.data_plane import DataPlane
from tests.pipeline.end_to_end import BEGIN, Pipeline, Stream, make_settings
from tests.pipeline.planes import start_thread, total, wait_until
from tests.pipeline.routed import create_topics, write
from tests.pipeline.routed import make_settings as make_small_settings
from tests.pipeline.spark_stream import results
from workbench.verify.shell import verify
from workbench.verify.views import verify_all

pytestmark = [pytest.mark.pipeline, pytest.mark.timeout(280)]

COUNTED = {"about": "count_distinct(user.id)", "d": "count_distinct(user.id, exact)"}
SPELLINGS = ['"{n}"', "{n}", "{n}.0", "{n}e0", "{n}0e-1", '"ü{n}"', "true", "false", '"true"', "null"]
REFUSED = ["{}", "[1]", "NaN", "1e9999999999"]


class Visits(Stream):
    """Visits of users whose ids are texts, numbers in several spellings, truth values or null. A few are
    none of them.
    """

    def visits(self, count: int) -> None:
        draw = random.Random(5)
        for number in range(count):
            bad = draw.random() < 0.02
            form = draw.choice(REFUSED if bad else SPELLINGS)
            user = form.replace("{n}", str(draw.randint(1, 40) * 5))
            shop = draw.choice("abc")
            text = f'{{"t":{BEGIN + 10 * number},"shop":"{shop}","user":{{"id":{user}}}}}'
            row = {"t": BEGIN + 10 * number, "shop": shop, "user": user}
            self._send(number % 4, None, text.encode(), None if bad else row)


def identity(value: str) -> tuple[str, Any] | None:
    """What a JSON value is counted by. None for null."""
    result = json.loads(value, parse_int=Decimal, parse_float=Decimal)
    return None if result is None else (type(result).__name__, result)


@pytest.mark.long
def test_ids_of_any_kind_are_counted_by_kind_and_value(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        query={
            "slide": "5s",
            "key": "shop",
            "types": {},
            "aggregates": COUNTED,
            "views": {"long": {"aggregates": {"d": "count_distinct(user.id, exact)"}, "window": "10s"}},
        },
    )
    stream = Visits(settings)
    stream.visits(3_000)
    stream.end()
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.run_to_the_end()
    reports = verify_all(settings)
    assert reports.exact, reports.text()
    report = verify(settings)
    assert (report.differences, report.first) == (0, ())
    refused = sum(record.row is None for record in stream.records)
    assert refused > 20
    assert (report.read, report.rejected) == (3_000, refused)
    for one, length in zip(queries(settings), (5_000, 10_000), strict=True):
        expected: dict[tuple[int, bytes], set[Any]] = defaultdict(set)
        for record in stream.records:
            if record.row is not None:
                pane = record.row["t"] // 5_000 * 5_000
                for start in range(pane - length + 5_000, pane + 1, 5_000):
                    expected[start, record.row["shop"].encode()].add(identity(record.row["user"]))
        result = {at: row["d"] for at, row in results(one)[0].items()}
        assert result == {at: len(ids - {None}) for at, ids in expected.items()}
        assert min(result.values()) > 50


@pytest.mark.long
def test_a_query_that_began_with_doubles_goes_on_with_them_in_all_its_services(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    query = {"slide": "5s", "key": "shop", "types": {}, "aggregates": COUNTED}
    settings = make_settings(kafka_settings, query_name, tmp_path, query=query)
    claim(prepare(settings).with_any_columns(()), Watchdog())
    stream = Visits(settings)
    stream.visits(1_000)
    stream.end()
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.run_to_the_end()
    report = verify(settings)
    assert (report.differences, report.first) == (0, ())
    kinds = Counter(
        type((identity(record.row["user"]) or (0, None))[1]) for record in stream.records if record.row
    )
    doubles = kinds[Decimal] + kinds[type(None)]
    assert (report.read, report.routed) == (1_000, doubles)


@pytest.mark.parametrize("began_before", [False, True])
def test_text_is_counted_or_rejected_as_when_the_query_began(
    kafka_settings: Any, query_name: str, began_before: bool
) -> None:
    """An instance that starts later reads the columns in the record of the beginning, and so does verify."""
    query = {"window": "1h", "slide": "1h", "types": {}, "aggregates": {"d": "count_distinct(v)"}}
    settings = make_small_settings(kafka_settings, query_name, input={"partitions": 1}, query=query)
    create_topics(settings)
    for start in range(2):
        rows = [{"k": "a", "t": 1, "v": "x"}, {"k": "a", "t": 2, "v": 1}, {"k": "a", "t": 3, "v": True}]
        write(settings, [(0, row) for row in rows], end=False)
        known = prepare(settings)
        if began_before and start == 0:
            known = known.with_any_columns(())
        assert known.query.value_columns == {"v": "float64" if began_before else "any"}
        plane = DataPlane(known)
        thread, errors = start_thread(plane)
        read = 3 * (start + 1)
        wait_until(lambda read=read, errors=errors: total(all_states(settings))[0] == read or errors)
        plane.stop()
        thread.join(30)
        assert not errors
    report = verify(settings)
    assert (report.differences, report.first) == (0, ())
    assert (report.read, report.routed, report.rejected) == ((6, 2, 4) if began_before else (6, 6, 0))
    numbers = {
        "query": {**query, "views": {"s": {"aggregates": {"s": "sum(v)"}}}},
        "input": {"partitions": 1},
    }
    if began_before:
        prepare(make_small_settings(kafka_settings, query_name, **numbers))
        return
    with pytest.raises(IncompatibleStateError, match="column v: values of any kind"):
        prepare(make_small_settings(kafka_settings, query_name, **numbers))
