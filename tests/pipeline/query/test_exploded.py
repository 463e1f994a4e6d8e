"""Records that are taken apart, through the whole pipeline: exact by verify, and counted by hand."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from evenflow.settings import KafkaSettings, Settings
from tests.pipeline.end_to_end import BEGIN, Pipeline, Stream, make_settings
from tests.pipeline.spark_stream import results
from workbench.verify.shell import verify

pytestmark = [pytest.mark.pipeline, pytest.mark.timeout(280)]


class Orders(Stream):
    """Orders of several items, some of none, and some with an item that cannot be read."""

    def orders(self, count: int) -> None:
        draw = random.Random(3)
        for number in range(count):
            items = [
                {"sku": f"p{min(int(draw.paretovariate(0.8)), 30)}", "quantity": draw.randint(0, 4)}
                for _ in range(draw.randint(0, 5))
            ]
            row = {"t": BEGIN + 10 * number, "shop": {"id": draw.choice("abc")}, "cart": {"items": items}}
            if draw.random() < 0.02:
                items.append({"sku": "p1", "quantity": "many"})
                self._send(number % 4, None, json.dumps(row).encode(), None)
            elif draw.random() < 0.02:
                del row["cart"]
                self._send(number % 4, None, json.dumps(row).encode(), row | {"cart": {"items": []}})
            else:
                self._send(number % 4, None, json.dumps(row).encode(), row)


def run(settings: Settings, stream: Stream, folder: Path) -> dict[tuple[int, bytes], dict[str, int]]:
    stream.end()
    with Pipeline(settings, folder) as pipeline:
        pipeline.run_to_the_end()
    report = verify(settings)
    assert report.differences == 0, report.first
    assert report.read == len(stream.records) == report.routed + report.rejected + report.filtered
    return results(settings)[0]


@pytest.mark.more
def test_the_items_of_orders_are_aggregated_exactly_by_shop_and_product(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        query={
            "slide": "5s",
            "key": ["shop.id", "cart.items.sku"],
            "explode": "cart.items",
            "where": "cart.items.quantity > 0",
            "aggregates": {"lines": "count", "sold": "sum(cart.items.quantity)"},
            "types": {"cart.items.quantity": "int64"},
        },
    )
    stream = Orders(settings)
    stream.orders(2_000)
    result = run(settings, stream, tmp_path)
    lines, sold = Counter[bytes](), Counter[bytes]()
    for record in stream.records:
        for item in [] if record.row is None else record.row["cart"]["items"]:
            if item["quantity"] > 0:
                key = f'["{record.row["shop"]["id"]}","{item["sku"]}"]'.encode()  # type: ignore[index]
                lines[key] += 1
                sold[key] += item["quantity"]
    assert sum(lines.values()) > 3_000
    told = Counter[bytes](), Counter[bytes]()
    for (_, key), row in result.items():
        told[0][key] += row["lines"]
        told[1][key] += row["sold"]
    assert told == (lines, sold)


@pytest.mark.long
def test_lines_of_text_become_their_words(
    kafka_settings: KafkaSettings, query_name: str, tmp_path: Path
) -> None:
    settings = make_settings(
        kafka_settings,
        query_name,
        tmp_path,
        input={"format": "text"},
        query={
            "slide": "5s",
            "key": "word",
            "time": "@timestamp",
            "types": {},
            "explode": "words(value)",
            "columns": {"word": "lower(value)"},
            "where": "length(value) > 2",
            "aggregates": {"n": "count"},
            "out_of_orderness": "10m",
        },
    )
    stream, draw = Orders(settings), random.Random(5)
    counted = Counter[bytes]()
    for number in range(1_000):
        words = [draw.choice(["The", "the", "whale", "a", "Sea", "Ärger"]) for _ in range(draw.randint(0, 9))]
        counted.update(word.lower().encode() for word in words if len(word) > 2)
        stream._send(number % 4, None, "  ".join(words).encode(), {})
    result = Counter[bytes]()
    for (_, key), row in run(settings, stream, tmp_path).items():
        result[key] += row["n"]
    assert result == counted
