"""What docs/lookup.md shows is what happens."""

from __future__ import annotations

import json
import re
import tomllib
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from evenflow.settings import Settings
from partitioner_service.reading.parse import Parser
from tests.unit.workbench.verify.judging import judged

PAGE = (Path(__file__).parents[2] / "docs" / "lookup.md").read_text()


def block(kind: str) -> str:
    result = re.search(rf"^```{kind}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert result is not None
    return result[1]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The settings of the page, beside its file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "customers.csv").write_text(block("csv"))
    return Settings(**tomllib.loads(block("toml")), input={"partitions": 1})


def test_the_records_of_the_page_make_its_rows_and_its_rejection(settings: Settings) -> None:
    records = [json.loads(line) for line in block("json").splitlines()]
    report, reasons = judged(settings, records, [None] * len(records))
    assert (reasons, report.first) == (["", "", "", "", "unmatched"], ())
    parsed = Parser(settings).parse([json.dumps(record).encode() for record in records])
    made = pa.table({"key": parsed.keys, "paid": parsed.values["paid"]}).group_by("key")
    rows = made.aggregate([("paid", "count"), ("paid", "sum")]).to_pylist()
    result = {row["key"].decode(): (row["paid_count"], row["paid_sum"]) for row in rows}
    shown = re.findall(r"^\| (business|private) \| (\d+) \| ([\d.]+) \|$", PAGE, re.MULTILINE)
    assert result == {key: (int(orders), Decimal(revenue)) for key, orders, revenue in shown}


def test_the_words_of_the_page_are_those_of_the_settings(settings: Settings) -> None:
    lookup = settings.query.lookup
    assert lookup is not None
    assert (
        f"(`{lookup.max_bytes // 1_000_000} MB`)" in PAGE or f"({lookup.max_bytes // 1_000_000} MB)" in PAGE
    )
