"""docs/security.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evenflow.settings.describe import describe_settings
from tests.pipeline.security.test_erasing import COMPACTED, MICRO_BATCHES
from tests.unit.settings.test_canaries import PLACES
from tests.unit.workbench.strimzi.matrix import GROUPS, MATRIX
from workbench.strimzi.rights import PARTS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/security.md").read_text()


def test_the_table_of_rights_is_the_matrix() -> None:
    head = f"| topic | {' | '.join(PARTS)} |"
    assert head in PAGE
    for topic, rights in MATRIX.items():
        assert f"| `{topic}` | {' | '.join(rights.get(part, '-') for part in PARTS)} |" in PAGE


def test_the_table_of_consumer_groups_is_that_of_the_tests() -> None:
    assert f"| consumer group | {' | '.join(PARTS)} |" in PAGE
    for group, rights in GROUPS.items():
        assert f"| `{group}` | {' | '.join(rights.get(part, '-') for part in PARTS)} |" in PAGE


def test_every_border_has_a_row_with_all_its_columns() -> None:
    table = PAGE.partition("## Borders")[2].partition("\n\nSettings are code")[0]
    rows = [row for row in table.splitlines() if row.startswith("| ") and "**" in row]
    outside = [re.search(r"\*\*(\w[\w ]*)\*\*", row) for row in rows]
    assert [match[1] for match in outside if match] == [
        "producer", "schema registry", "broker", "host", "namespace", "store", "viewer",
    ]  # fmt: skip
    assert {row.count("|") for row in rows} == {6}


def test_every_setting_that_the_page_names_exists() -> None:
    names = {one.name for one in describe_settings()} | {"spark.ui.enabled", "spark.network.crypto.enabled"}
    named = set(re.findall(r"`((?:web|kafka|partitioner|query|input|results)\.[a-z_.]+)`", PAGE))
    assert named
    assert named <= names


def test_every_setting_with_a_secret_text_is_among_the_secrets() -> None:
    secrets = PAGE.partition("## Secrets")[2].partition("\n## ")[0]
    for name in PLACES:
        if "extras" not in name and name not in ("spark.conf", "kafka.ssl_key_password"):
            assert f"`{name}`" in secrets, name


def test_the_steps_that_erase_a_key_are_those_that_a_test_takes() -> None:
    steps = " ".join(PAGE.partition("**To erase one key:**")[2].partition("\n## ")[0].split())
    for name, value in COMPACTED.items():
        assert f'`"{name}" = "{value}"`' in steps
    assert f"{MICRO_BATCHES} micro-batches" in steps


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)]+)\)", PAGE))
def test_links_lead_somewhere(link: str) -> None:
    file, _, place = link.partition("#")
    target = (ROOT / "docs" / file).resolve() if file else ROOT / "docs/security.md"
    text = target.read_text()
    anchors = {
        re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    }
    assert not place or place in anchors


def test_versions_of_the_page_are_those_of_the_lock() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    version = re.search(r"^pyspark==(\S+)", lock, re.MULTILINE)
    assert version is not None
    assert f"pyspark {version[1]}" in PAGE
