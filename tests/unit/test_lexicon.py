"""Names say what their things are; folders, files and functions are small enough to look through
(tests/lexicon.py).
"""

import re

import pytest

from tests.lexicon import (
    BEFORE,
    LONG_BODY,
    MANY_PARAMETERS,
    MOST_GENERIC,
    SHORT,
    Body,
    Package,
    Spread,
    packages,
    spread,
    together,
)


@pytest.fixture(scope="module")
def measured() -> dict[str, Package]:
    return packages()


LARGE_FOLDERS = {
    "cli": "a file for each command",
    "evenflow/queries": "a file for each built-in query",
}
"""Folders that may have more than fifteen files, with the reason."""

PUBLIC = {
    ("evenflow/twostep/reducing/state.py", "came"): "a field of the reducer's state",
    ("topics/query/audit.py", "what"): "a field of the audit log",
    ("evenflow/telemetry.py", "what"): "a field of a telemetry record",
    ("evenflow/telemetry.py", "held"): "a field of two telemetry records",
    ("evenflow/elasticity/policy.py", "held"): "what a policy of one's own returns",
    ("evenflow/queries/builtin.py", "what"): "what a query of one's own gives",
    ("evenflow/settings/sections/query/summaries.py", "of"): "a setting",
    ("workbench/assist/findings.py", "what"): "a field of `evenflow doctor --json`",
    ("monitoring/live/glance.py", "held"): "what the script of the live page reads",
}
"""Generic names that stand in a contract or in bytes that are kept."""


def test_a_generic_name_lives_for_a_few_lines_only(measured: dict[str, Package]) -> None:
    lasting = [
        f"{name.path}:{name.line}: {name.name} lives for {name.lines} lines"
        for package in measured.values()
        for name in package.lasting
        if (name.path, name.name) not in PUBLIC
    ]
    assert not lasting, f"say what these are, or end them within {SHORT} lines: {lasting}"


def test_few_names_are_generic(measured: dict[str, Package]) -> None:
    names = [name for package in measured.values() for name in package.bindings]
    share = sum(name.generic for name in names) / len(names)
    assert share <= MOST_GENERIC, (
        f"{share:.1%} of the names are generic, see `python -m tests.lexicon --names`"
    )


def test_a_class_name_stands_for_one_class_of_a_package(measured: dict[str, Package]) -> None:
    repeated = {package.name: package.reused for package in measured.values() if package.reused}
    assert not repeated, "give each of these classes a name of its own"


PARTICIPLE = re.compile(
    r"[a-z]ed$|^(Broken|Chosen|Given|Gone|Held|Kept|Known|Lost|Made|Read|Said|Sent|Taken|Written)$"
)
NOUNS = frozenset({"Feed", "Need", "Seed", "Speed"})
ADJECTIVES = {
    "Fixed": "the name of a policy",
    "Mixed": "the name of a partitioner",
    "TimeBased": "the name of a partitioner",
}
"""Classes that are called like what a setting calls them, with the reason."""


def test_a_class_is_named_by_a_noun(measured: dict[str, Package]) -> None:
    # Exceptions are left out: what they say has happened, as in `WriterFenced`.
    participles = [
        f"{path}: class {name}"
        for package in measured.values()
        for name, path in package.classes
        if PARTICIPLE.search(last := re.findall("[A-Z][a-z0-9]*", name)[-1])
        and last not in NOUNS
        and name not in ADJECTIVES
        and not name.endswith(("Aborted", "Fenced", "Refused", "Requested"))
    ]
    assert not participles, "what is it that was read, sent or lost? say that"


def test_folders_have_at_most_fifteen_files_or_a_reason(measured: dict[str, Package]) -> None:
    large = {
        folder: count for package in measured.values() for folder, count in package.large_folders.items()
    }
    assert set(large) == set(LARGE_FOLDERS), large


FILE_LIMITS = Spread(110, 310, 700)
BODY_LIMITS = Spread(6, 20, 120)
"""Lines. A little above the figures of the day when this test was written."""

MOST_LONG = 0.005
MOST_WITH_MANY_PARAMETERS = 0.01
"""Shares of all functions."""


@pytest.fixture(scope="module")
def bodies(measured: dict[str, Package]) -> list[Body]:
    return [body for package in measured.values() for body in package.bodies]


def within(sizes: list[int], limits: Spread) -> bool:
    measured = spread(sizes)
    return (
        measured.median <= limits.median
        and measured.most_of_ten <= limits.most_of_ten
        and measured.largest <= limits.largest
    )


def test_files_and_functions_stay_about_as_short_as_they_are(
    measured: dict[str, Package], bodies: list[Body]
) -> None:
    files = [size for package in measured.values() for size in package.files]
    assert within(files, FILE_LIMITS), spread(files)
    lines = [body.lines for body in bodies]
    assert within(lines, BODY_LIMITS), spread(lines)


def test_few_functions_are_long_or_have_many_parameters(bodies: list[Body]) -> None:
    long = [body for body in bodies if body.lines > LONG_BODY]
    assert len(long) / len(bodies) <= MOST_LONG, long
    wide = [body for body in bodies if body.positional > MANY_PARAMETERS]
    assert len(wide) / len(bodies) <= MOST_WITH_MANY_PARAMETERS, wide


def test_every_figure_has_one_from_before(measured: dict[str, Package]) -> None:
    assert list(together(measured)) == list(BEFORE)
