"""What Faust, aiokafka, mode, aiohttp, pyspark, confluent-kafka and httpx2 moved is read again before it is
relied on again.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.insides.relied_on import (
    OF_LIBRDKAFKA,
    RELIED_ON,
    fingerprint,
    rows,
    rows_of_librdkafka,
)
from topics.librdkafka.loaded import PROVEN, loaded_library

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/insides.md").read_text()


@pytest.mark.parametrize("place", RELIED_ON)
def test_an_inside_is_as_it_was_when_somebody_read_it(place: str) -> None:
    row = next(row for row in PAGE.splitlines() if f"`{place}`" in row)
    assert row.endswith(f"| `{fingerprint(place)}` |"), (
        f"{place} has changed: read it, see whether that holds which docs/insides.md says, and then put the"
        " rows of `python -m tests.unit.insides.relied_on` into the page"
    )


def test_the_page_has_every_inside_and_no_other() -> None:
    assert [row for row in PAGE.splitlines() if re.match(r"\| `[a-z0-9_.]+:", row)] == rows()


def test_the_page_has_every_part_of_librdkafka_and_no_other() -> None:
    parts = rows_of_librdkafka()
    assert [
        row for row in PAGE.splitlines() if re.match(r"\| `(rd_kafka_|confluent_kafka\.Consumer)", row)
    ] == parts


def test_librdkafka_has_every_function_that_the_page_names() -> None:
    library = loaded_library()
    functions = [part for part in OF_LIBRDKAFKA if part.startswith("rd_kafka_") and not part.endswith("_t")]
    assert all(hasattr(library, function) for function in functions)


def test_the_page_names_the_versions_of_librdkafka_that_were_proven_and_the_lock_has_the_newest() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    version = re.search(r"^confluent-kafka==(\S+)", lock, re.MULTILINE)
    assert version is not None
    assert version[1] in {ours for ours, _ in PROVEN}
    for ours, theirs in PROVEN:
        assert f"confluent-kafka {ours} with librdkafka {theirs}" in " ".join(PAGE.split())


def test_the_page_names_the_versions_of_the_lock() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    for package in (
        "faust-streaming",
        "aiokafka",
        "mode-streaming",
        "aiohttp",
        "pyspark",
        "confluent-kafka",
        "httpx2",
        "httpcore2",
    ):
        version = re.search(rf"^{package}==(\S+)", lock, re.MULTILINE)
        assert version is not None
        assert f"{package} {version[1]}" in " ".join(PAGE.split())
