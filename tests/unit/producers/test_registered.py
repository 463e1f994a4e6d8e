"""What `evenflow replay` writes as Avro and Protobuf is what the partitioner and verify read."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from evenflow.errors import ConfigError
from evenflow.settings import load_settings
from partitioner_service.reading.parse import Parser
from producers.registered import RegisteredValues
from tests.schema_registry import schema_registry
from workbench.verify.input.strict_reader import StrictReader

DAY = datetime.date(2026, 1, 31)


@pytest.mark.parametrize("form", ["avro", "protobuf"])
def test_columns_come_back_as_they_were(form: str) -> None:
    columns = pa.table(
        {
            "k": ["a", "ö", None, "d"],
            "t": pa.array([1, 2, 3, 4], pa.int32()),
            "i": pa.array([2**62, -1, 0, None]),
            "f": [0.5, float("nan"), None, -1.25],
            "ok": [True, False, None, True],
            "day": pa.array([DAY, None, DAY, DAY]),
            "price": pa.array(
                [Decimal("1.50"), Decimal("-0.01"), None, Decimal("12.00")], pa.decimal128(9, 2)
            ),
            "place": pa.array(["x", "y", "x", "x"]).dictionary_encode(),
        }
    )
    with schema_registry() as kept:
        settings = load_settings(
            query={
                "name": "q", "key": "k", "time": "t", "window": "1s",
                "where": "ok AND day >= DATE '2026-01-01'",
                "aggregates": {"i": "sum(i)", "f": "sum(f)", "p": "sum(price)", "l": "last(place)"},
                "types": {"i": "int64", "price": "decimal(2)", "day": "date", "ok": "bool",
                "place": "string"},
            },
            input={"format": form, "registry": {"url": kept.url}},
        )  # fmt: skip
        writer = RegisteredValues(settings)
        values = [v for part in (columns[:2], columns[2:]) for v in writer.values_of(part).to_pylist()]
        assert kept.subjects == {"q.input-value": [1]}
        parsed = Parser(settings).parse(values)
        strict = StrictReader(settings)
        last = dict(zip(strict._types, strict.read(None, values[3], 1).cells, strict=True))
        assert len([asked for asked in kept.asked if asked.startswith("/schemas/ids/")]) == 2
    assert dict(parsed.bad) == {}, "the record without a key is filtered"
    assert parsed.values.to_pydict() == {
        "i": [2**62, None],
        "f": [0.5, -1.25],
        "price": [Decimal("1.50"), Decimal("12.00")],
        "place": [b"x", b"x"] if pa.types.is_binary(parsed.values["place"].type) else ["x", "x"],
    }
    assert parsed.counts is not None
    assert parsed.counts.tolist() == [1, 0, 0, 1]
    assert (last["k"], last["price"], last["day"], last["ok"]) == ("d", Decimal("12.00"), DAY, True)


def test_a_column_that_no_field_can_be_named_after_is_refused() -> None:
    made = load_settings(
        query={"name": "q"}, input={"format": "avro", "registry": {"url": "http://127.0.0.1:1"}}
    )
    with pytest.raises(ConfigError, match="can be named 'a b'"):
        RegisteredValues(made).values_of(pa.table({"a b": [1]}))
    with pytest.raises(ConfigError, match="cannot be rendered"):
        RegisteredValues(made).values_of(pa.table({"a": [[1]]}))
