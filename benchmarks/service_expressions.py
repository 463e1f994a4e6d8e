"""What a filter, a derived column and a key of several columns cost a record, beside the same records in a plain query."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.bad_records import route_one_block
from benchmarks.spread import in_turns, ratios, spread
from evenflow.settings import load_settings

ID = "service-expressions"
WHAT = "CPU and wall time of the router per record with filters, derived columns and keys of several columns, against none"

_START = 1_700_000_000_000
_RECORD = (
    '{{"key":"k{key}","time":{time},"amount":{amount},"price":{price}.25,"country":"{country}",'
    '"day":"2026-01-{day:02}"}}'
)
_SUM = {"tuples": "count", "total": "sum(amount)"}
_TYPES = {"amount": "int64"}
PLAIN = "plain"
WAYS: dict[str, dict[str, Any]] = {
    PLAIN: {},
    "filter, keeps all": {"where": "amount >= 0"},
    "filter, keeps a half": {"where": "amount % 2 = 0"},
    "filter by text and number, keeps a tenth": {"where": "country = 'DE' AND amount > 10"},
    "derived whole number": {
        "columns": {"twice": "amount * 2"},
        "aggregates": {"tuples": "count", "total": "sum(twice)"},
    },
    "derived decimal": {
        "columns": {"revenue": "amount * price"},
        "types": {"amount": "int64", "price": "decimal(2)"},
        "aggregates": {"tuples": "count", "total": "sum(revenue)"},
    },
    "derived key of text": {"key": "region", "columns": {"region": "upper(left(country, 1))"}},
    "key of two columns": {"key": ["key", "country"]},
    "key, filter and two derived columns": {
        "key": ["key", "year"],
        "columns": {"year": "year(day)", "large": "CASE WHEN amount > 500 THEN 1 ELSE 0 END"},
        "where": "country <> 'FR'",
        "aggregates": {"tuples": "count", "large": "sum(large)"},
    },
}
"""What each query has that the plain one has not."""


def run(*, smoke: bool) -> dict[str, object]:
    """A row a way, in turns with the plain query."""
    count, repetitions = (5_000, 2) if smoke else (50_000, 15)
    values = _records(count)
    for extra in WAYS.values():
        _seconds(extra, values)  # compiles and warms up
    found = in_turns(
        {name: lambda extra=extra: _seconds(extra, values) for name, extra in WAYS.items()}, repetitions
    )
    plain = found[PLAIN]
    return {
        "records_in_a_block": count,
        "rows": [
            {
                "query": name,
                "cpu_ns_per_record": spread([1e9 * cpu / count for cpu, _ in seconds]),
                "ns_per_record": spread([1e9 * wall / count for _, wall in seconds]),
                "cpu_times_plain": ratios([cpu for cpu, _ in seconds], [cpu for cpu, _ in plain]),
                "times_plain": ratios([wall for _, wall in seconds], [wall for _, wall in plain]),
            }
            for name, seconds in found.items()
        ],
    }


def _records(count: int) -> list[bytes]:
    countries = ["DE", *("FR", "IT", "ES", "PL", "NL", "BE", "AT", "CZ", "SE")]
    return [
        _RECORD.format(
            key=number % 1_000,
            time=_START + number // 50,
            amount=number % 1_009,
            price=number % 97,
            country=countries[number % 10],
            day=1 + number % 28,
        ).encode()
        for number in range(count)
    ]


def _seconds(extra: dict[str, Any], values: list[bytes]) -> tuple[float, float]:
    """(CPU, wall) seconds of one block in the router."""
    settings = load_settings(
        query={"window": "60s", "slide": "1s", "types": _TYPES, "aggregates": _SUM} | extra,
        input={"format": "json", "partitions": 4},
    )
    work = route_one_block(settings, values)
    began, cpu = time.perf_counter(), time.process_time()
    work()
    return time.process_time() - cpu, time.perf_counter() - began
