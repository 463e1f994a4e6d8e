"""docs/correctness.md names tests that exist, and whoever cites a rule cites one of that page."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "correctness.md").read_text()
_RULES = PAGE.partition("\n## The rules\n")[2].partition("\n## The simulator\n")[0] + "\n##"
RULES = dict(re.findall(r"^### (.+?)\n(.*?)(?=^##)", _RULES, re.DOTALL | re.MULTILINE))
TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py(?:::\w+)?)`", PAGE)))
SUFFIXES = {".py", ".md", ".yaml"}


def _words(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", " ", text.lower()).strip()


@pytest.mark.parametrize("test", TESTS)
def test_a_test_that_the_page_names_exists(test: str) -> None:
    path, _, name = test.partition("::")
    text = (ROOT / path).read_text()
    assert not name or f"def {name}(" in text


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_says_which_tests_hold_it_and_what_watches_it(rule: str) -> None:
    assert "*Held by*" in RULES[rule]
    assert "*Watched by*" in RULES[rule]


def test_every_rule_that_is_cited_stands_on_the_page() -> None:
    known = {_words(rule) for rule in RULES}
    rooms = [
        "evenflow",
        "topics",
        "partitioner_service",
        "spark_consumers",
        "controller",
        "workbench",
        "tests",
        "docs",
    ]
    cited = {
        (path.relative_to(ROOT), _words(found))
        for room in rooms
        for path in (ROOT / room).rglob("*")
        if path.suffix in SUFFIXES and path != Path(__file__)
        for found in re.findall(r'[Rr]ule "([^"]+)"', path.read_text())
    }
    assert cited
    assert {entry for entry in cited if entry[1] not in known} == set()


def test_no_rule_is_cited_by_a_number_that_no_page_explains() -> None:
    rooms = ["evenflow", "topics", "partitioner_service", "spark_consumers", "controller", "workbench"]
    numbered = [
        path.relative_to(ROOT)
        for room in rooms
        for path in (ROOT / room).rglob("*.py")
        if re.search(r"pipeline rules? \d", path.read_text(), re.IGNORECASE)
    ]
    assert numbered == []
