"""Keys, texts and lists that fit into no record, through the real services: nothing stops, and verify
agrees.
"""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path
from typing import Any

import pytest

from evenflow.settings import load_settings
from tests.pipeline.end_to_end import Pipeline, Stream, create_topics
from workbench.verify.shell import verify

pytestmark = [pytest.mark.pipeline, pytest.mark.more, pytest.mark.timeout(280)]


@pytest.mark.parametrize("wiring", ["fused", pytest.param("split", marks=pytest.mark.long)])
def test_records_that_grow_beyond_any_limit_stop_no_service(
    kafka_settings: Any, query_name: str, tmp_path: Path, wiring: str
) -> None:
    """A list of 16 MB, a set of as many bytes, a key of 3 MB, and 60,000 elements beside a text of 2 KB."""
    settings = load_settings(
        query={
            "name": query_name,
            "key": "k",
            "time": "t",
            "window": "10s",
            "explode": "items",
            "where": "note <> 'test'",
            "aggregates": {
                "docs": "collect(v, 10000)",
                "kinds": "count_distinct(v, exact)",
                "last": "max(v)",
            },
            "types": {"v": "string"},
            "max_state_bytes": 8_000_000,
        },
        kafka=kafka_settings.model_dump(exclude_unset=True),
        input={"partitions": 1},
        partitioner={"workers": 2},
        spark={
            "buckets": 2,
            "wiring": wiring,
            "master": "local[1]",
            "checkpoint": str(tmp_path / "checkpoint"),
        },
    )
    create_topics(settings)
    draw, stream = random.Random(3), Stream(settings)

    def send(key: str, value: str, *, items: int = 1, **more: Any) -> None:
        fields = {"k": key, "t": 1_000, "v": value, "note": "n", "items": [1] * items, **more}
        stream._send(0, None, json.dumps(fields, ensure_ascii=False).encode(), fields)

    for number in range(4_000):
        send("heavy" if number % 40 else "light", base64.b64encode(draw.randbytes(3_000)).decode())
    send("\x01" * 3_000_000, "a")
    send("\x01" * 65_536, "b")
    send("many", "c", items=60_000, note="n" * 2_000)
    send("many", "c" * 2_000, items=60_000)
    stream.end()
    with Pipeline(settings, tmp_path) as pipeline:
        pipeline.run_to_the_end()
    report = verify(settings)
    assert (report.first, report.exact, report.rows) == ((), True, 4)
    assert report.rejected == 2
    assert report.unfit == 2
