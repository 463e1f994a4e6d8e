"""docs/correctness.md and RULES.md name tests that exist, and whoever cites a rule cites one of that page."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "correctness.md").read_text()
_RULES = PAGE.partition("\n## The rules\n")[2].partition("\n## The simulator\n")[0] + "\n##"
RULES = dict(re.findall(r"^### (.+?)\n(.*?)(?=^##)", _RULES, re.DOTALL | re.MULTILINE))
TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py(?:::\w+)?)`", PAGE)))
SUFFIXES = {".py", ".md", ".yaml"}
PROOFS = [
    line.removeprefix("| ").removesuffix(" |").split(" | ")
    for line in (ROOT / "tests" / "pipeline" / "RULES.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith(("| rule |", "| promise |"))
]
"""The rows of RULES.md: rule or promise, tests, proof."""
_PATH = re.compile(r"`((?:[\w.]+/)*(?:test_\w+|end_to_end)\.py|(?:tests/)?(?:unit|faults|pipeline)(?:/\w+)*)")
_TEST = re.compile(r"`(?:([\w./]*)::)?((?:\.{3}_?|test_)\w+(?:\.{3})?)(?:\[[^`]*\])?`")
_DEFINED = re.compile(r"^ *def (test_\w+)\(", re.MULTILINE)


def _words(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", " ", text.lower()).strip()


@pytest.mark.parametrize("test", TESTS)
def test_a_test_that_the_page_names_exists(test: str) -> None:
    path, _, name = test.partition("::")
    text = (ROOT / path).read_text()
    assert not name or f"def {name}(" in text


def _files(proof: list[str]) -> dict[str, list[Path]]:
    """By path as a row of RULES.md names it, the files that it may stand for, and those of a folder.

    A path begins in the tests or in their folder `pipeline`. A name alone lies in a folder of `pipeline`, or
    beside a file named before it.
    """
    files: dict[str, list[Path]] = {}
    pipeline = ROOT / "tests" / "pipeline"
    folders = [ROOT / "tests", pipeline, ROOT, *sorted(path for path in pipeline.iterdir() if path.is_dir())]
    for named in _PATH.findall(" ".join(proof)):
        result = next((folder / named for folder in folders if (folder / named).exists()), None)
        if result is None:
            files.setdefault(named, [])
        elif result.is_dir():
            files[named] = sorted(result.rglob("*.py"))
        else:
            files[named] = [result]
            folders.append(result.parent)
    return files


@pytest.mark.parametrize("proof", PROOFS, ids=[proof[0] for proof in PROOFS])
def test_each_test_that_a_proof_names_exists(proof: list[str]) -> None:
    files = _files(proof)
    assert [named for named, result in files.items() if not result] == []
    tests = {
        path: {path.stem, *_DEFINED.findall(path.read_text())} for result in files.values() for path in result
    }
    for named, test in _TEST.findall(" ".join(proof)):
        places = files.get(named, tests)
        pattern = test.replace("...", r"\w*")
        assert any(re.fullmatch(pattern, name) for place in places for name in tests[place]), test


def test_each_proof_cites_rules_of_the_page_and_stands_in_one_row() -> None:
    cited = {rule for proof in PROOFS for rule in re.findall(r"(?:^|, )\*([^*]+)\*", proof[0])}
    assert len(cited) > 20
    assert cited <= set(RULES)
    rows = [proof[0] for proof in PROOFS]
    assert {row for row in rows if rows.count(row) > 1} == set()
    assert {len(proof) for proof in PROOFS} == {3}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_says_which_tests_hold_it_and_what_watches_it(rule: str) -> None:
    assert "*Held by*" in RULES[rule]
    assert "*Watched by*" in RULES[rule]


def test_every_rule_that_is_cited_stands_on_the_page() -> None:
    known = {_words(rule) for rule in RULES}
    packages = [
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
        (path.relative_to(ROOT), _words(result))
        for package in packages
        for path in (ROOT / package).rglob("*")
        if path.suffix in SUFFIXES and path != Path(__file__)
        for result in re.findall(r'[Rr]ule "([^"]+)"', path.read_text())
    }
    assert cited
    assert {entry for entry in cited if entry[1] not in known} == set()


def test_no_rule_is_cited_by_a_number_that_no_page_explains() -> None:
    packages = ["evenflow", "topics", "partitioner_service", "spark_consumers", "controller", "workbench"]
    numbered = [
        path.relative_to(ROOT)
        for package in packages
        for path in (ROOT / package).rglob("*.py")
        if re.search(r"pipeline rules? \d", path.read_text(), re.IGNORECASE)
    ]
    assert numbered == []
