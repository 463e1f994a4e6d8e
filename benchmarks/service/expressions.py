"""How long a tuple takes with filters, derived columns, keys of several columns, lists and costs, and in a
plain query.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from benchmarks.measuring.broken_records import SEED as SEED
from benchmarks.measuring.broken_records import route_one_block
from benchmarks.measuring.spread import in_turns, ratios, spread
from evenflow.settings import load_settings

ID = "service-expressions"
WHAT = (
    "CPU and wall time of the router per tuple: filters, derived columns, keys of columns, lists, costs,"
    " against none"
)

_START = 1_700_000_000_000
_RECORD = (
    '{{"key":"k{key}","time":{time},"amount":{amount},"price":{price}.25,"country":"{country}",'
    '"day":"2026-01-{day:02}"}}'
)
_ITEM = '{{"key":"k{key}","amount":{amount}}}'
_ITEMS = 5
_SUM = {"tuples": "count", "total": "sum(amount)"}
_TYPES = {"amount": "int64"}
PLAIN = "plain"
LISTS = "lists of five objects, each a tuple"
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
    LISTS: {
        "explode": "items",
        "key": "items.key",
        "types": {"items.amount": "int64"},
        "aggregates": {"tuples": "count", "total": "sum(items.amount)"},
    },
}
"""By name: the settings that each query has in addition to those of the plain query."""
COSTS = {
    "cost: a column that the query reads": "amount",
    "cost: an expression over it": "amount / 10",
    "cost: a column that only the cost reads": "price",
    "cost: an expression over it and another": "price * 2 + length(country)",
}
"""By name: what a tuple of the plain query costs."""


def run(*, smoke: bool) -> dict[str, object]:
    """A row for each query. All queries are measured in turns."""
    count, repetitions = (5_000, 2) if smoke else (50_000, 15)
    plain_values, lists = _records(count), _lists(count)
    measures = {
        name: partial(_seconds, extra, lists if name == LISTS else plain_values)
        for name, extra in WAYS.items()
    }
    measures |= {name: partial(_seconds, {}, plain_values, cost=cost) for name, cost in COSTS.items()}
    for measure in measures.values():
        measure()  # compiles and warms up
    timings = in_turns(measures, repetitions)
    plain = timings[PLAIN]
    return {
        "tuples_in_a_block": count,
        "rows": [
            {
                "query": name,
                "cpu_ns_per_tuple": spread([1e9 * cpu / count for cpu, _ in seconds]),
                "ns_per_tuple": spread([1e9 * wall / count for _, wall in seconds]),
                "cpu_times_plain": ratios([cpu for cpu, _ in seconds], [cpu for cpu, _ in plain]),
                "times_plain": ratios([wall for _, wall in seconds], [wall for _, wall in plain]),
            }
            for name, seconds in timings.items()
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


def _lists(count: int) -> list[bytes]:
    """`count` tuples, `_ITEMS` of them in each record."""
    items = [_ITEM.format(key=number % 1_000, amount=number % 1_009) for number in range(count)]
    return [
        b'{"time":%d,"country":"DE","items":[%s]}'
        % (_START + first // 50, ",".join(items[first : first + _ITEMS]).encode())
        for first in range(0, count, _ITEMS)
    ]


def _seconds(extra: dict[str, Any], values: list[bytes], *, cost: str | None = None) -> tuple[float, float]:
    """CPU seconds and wall seconds of one block in the router."""
    settings = load_settings(
        query={"window": "60s", "slide": "1s", "types": _TYPES, "aggregates": _SUM} | extra,
        input={"format": "json", "partitions": 4},
        partitioner={"cost": cost},
    )
    work = route_one_block(settings, values)
    began, cpu = time.perf_counter(), time.process_time()
    work()
    return time.process_time() - cpu, time.perf_counter() - began
