"""The glossary promises one meaning for each word. What would break the promise again is looked for here."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
PACKAGES = (
    "evenflow", "producers", "partitioner_service", "spark_consumers", "topics", "controller", "workbench",
    "monitoring",
    "cli",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """Where a word would have another meaning than its own. but: files that may have it there."""

    word: str
    packages: tuple[str, ...]
    but: tuple[str, ...] = ()
    say: str


OTHER_MEANINGS = {
    "bucket": Elsewhere(
        word=r"bucket",
        packages=("evenflow/partitioners", "evenflow/sketches", "evenflow/aggregates"),
        but=("prompt/",),
        say="cell (of homes), bin (of a quantile)",
    ),
    "block": Elsewhere(
        word=r"(?<!data )(?<!data_)\bblocks?\b",
        packages=("evenflow/partitioners/prompt", "evenflow/metrics"),
        but=("prompt/accumulator.py", "prompt/buffered.py", "prompt/time_based.py"),  # blocks of tuples
        say="data block",
    ),
    "epoch": Elsewhere(
        word=r"(since the|from the|aligned to the|unix) epoch\b",
        packages=PACKAGES,
        say="1970",
    ),
    "member": Elsewhere(
        word=r"\bmembers?\b",
        packages=(
            "evenflow/keys.py",
            "evenflow/generation/draws.py",
            "evenflow/sources/source.py",
            "evenflow/sketches",
            "evenflow/partitioners",
        ),
        but=(
            "dalton/cooperative.py",
            "dalton/messages.py",
            "dalton/reducer.py",
            "evenflow/water_filling.py",
            "partitioners/catalogue.py",
            "partitioners/rounds.py",
        ),
        say="salt (of a hash function)",
    ),
    "home": Elsewhere(
        word=r"\bhomes?\b|home_slot",
        packages=("evenflow/sketches", "evenflow/keys.py", "evenflow/twostep"),
        say="slot, place (of a hash table)",
    ),
    "view": Elsewhere(word=r"\bviews?\b", packages=("monitoring/live",), say="glance"),
    "instance": Elsewhere(
        word=r"\binstances?\b",
        packages=("evenflow/elasticity",),
        say="unit (of p or r)",
    ),
    "block of records": Elsewhere(
        word=r"\bblocks?\b",
        packages=("workbench/assist", "workbench/elastic", "workbench/demo"),
        but=("demo/services.py",),  # a partitioner finishes its block
        say="batch (of records that are read)",
    ),
    "worker": Elsewhere(
        word=r"(?<!python )\bworkers\b",
        packages=(
            "spark_consumers/reports/log_lines.py",
            "spark_consumers/reports/micro_batches.py",
            "spark_consumers/workers/tallies.py",
        ),
        say="Python worker, task",
    ),
    "shard, sub-window": Elsewhere(
        word=r"\bshards?\b|\bsub-?windows?\b|\bmicrobatch(es)?\b",
        packages=PACKAGES,
        say="partition, pane, micro-batch",
    ),
}

PLACES = {
    "slot": {
        "of Spark": (
            "evenflow/elasticity/observation.py",
            "evenflow/telemetry.py",
            "monitoring",
            "spark_consumers",
            "workbench/elastic",
        ),
        "of a table": (
            "evenflow/aggregates",
            "evenflow/keys.py",
            "evenflow/metrics/clusters.py",
            "evenflow/metrics/sliding.py",
            "evenflow/numeric/keyed_hashes.py",
            "evenflow/partitioners/dalton",
            "evenflow/partitioners/grouping/cg.py",
            "evenflow/partitioners/migration/table.py",
            "evenflow/partitioners/prompt/accumulator.py",
            "evenflow/sketches/hyperloglog.py",
            "evenflow/sketches/space_saving.py",
            "evenflow/twostep",
            "workbench/verify/windows/recomputation.py",
        ),
        "of a ring": (
            "evenflow/partitioners/affinity/window_cardinalities.py",
            "evenflow/sketches/window_holders.py",
            "evenflow/sketches/window_loads.py",
        ),
    },
    "ring": {
        "of slides": (
            "evenflow/partitioners/affinity/window_cardinalities.py",
            "evenflow/partitioners/dalton",
            "evenflow/partitioners/evenflow/clock.py",
            "evenflow/partitioners/evenflow/water_filling.py",
            "evenflow/sketches",
        ),
        "of holders": ("evenflow/partitioners/evenflow",),
        "of hashes": (
            "evenflow/keys.py",
            "evenflow/partitioners/grouping/cg.py",
            "evenflow/partitioners/migration",
        ),
    },
    "cell": {
        "of keys": (
            "evenflow/keys.py",
            "evenflow/partitioners/evenflow",
            "evenflow/partitioners/migration/dkg_rivetti.py",
        ),
        "of counts": (
            "evenflow/metrics/loads.py",
            "evenflow/partitioners/dalton",
            "evenflow/partitioners/grouping/osg.py",
            "partitioner_service/reports/hot_keys.py",
            "partitioner_service/routing/window_loads.py",
        ),
        "of a table": (
            "evenflow/settings/describe.py",
            "monitoring/live/top.py",
            "partitioner_service/reading/costs.py",
            "partitioner_service/reading/parse.py",
            "partitioner_service/reading",
            "workbench",
        ),
        "of a block": (
            "partitioner_service/routing/sharing.py",
            "partitioner_service/routing/pieces.py",
            "partitioner_service/routing/router.py",
        ),
        "of a grid": ("evenflow/queries", "evenflow/sources", "producers/profiles.py"),
        "of a sweep": ("evenflow/commands/sweep.py", "evenflow/sweep"),
    },
    "group": {
        "of micro-batches": (
            "controller",
            "evenflow/elasticity/groups.py",
            "evenflow/plans.py",
            "evenflow/scale",
            "evenflow/settings/sections/control.py",
        ),
        "of rows": (
            "evenflow/aggregates",
            "evenflow/twostep/reducing/reducer.py",
            "spark_consumers/reducer.py",
        ),
        "of counters": ("evenflow/sketches/space_saving.py",),
        "of tuples": ("evenflow/advice", "evenflow/partitioners/affinity"),
        "of consumers": (
            "evenflow/progress.py",
            "evenflow/settings",
            "evenflow/twostep/lanes.py",
            "partitioner_service",
            "producers",
            "spark_consumers/reports/upstream.py",
            "topics",
        ),
    },
}
"""Words with several meanings: where each meaning is at home. A file within a folder may have another one.

In the folder of `evenflow`, `window.ring` is the ring of slides and `holders.ring` are the rings of holders.
"""

NAMES_OF_OTHERS = {
    "group": (
        "controller/kubernetes.py",  # of Kubernetes' API
        "evenflow/host/pods.py",
        "evenflow/plugins.py",  # of Python's entry points
        "evenflow/commands/options.py",  # of typer's commands
        "partitioner_service/reading",  # of Protobuf's fields
        "spark_consumers/jars/fetch.py",  # of Maven's artifacts
        "spark_consumers/session.py",  # of processes
        "spark_consumers/sinks/registry.py",  # of Python's entry points
        # groupby of Python, and groups that only a few lines know
        "evenflow/charts/labels.py",
        "evenflow/partitioners/catalogue.py",
        "evenflow/reporting/words.py",
        "evenflow/twostep/results.py",
        "cli",
        "monitoring",
        "workbench",
    ),
}
"""Where others' programs, or a few lines by themselves, have the word."""


def rows() -> list[tuple[str, str]]:
    lines = [line for line in GLOSSARY.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return [(term, meaning) for term, meaning in (line.strip("| ").split(" | ", 1) for line in lines[1:])]


def terms() -> list[str]:
    """Without what a term is "of": two parts are told apart by it."""
    return [term for names, _ in rows() for term in names.split(", ")]


def sources(package: str) -> list[Path]:
    place = ROOT / package
    return [place] if place.is_file() else sorted(place.rglob("*.py"))


@pytest.mark.parametrize("word", OTHER_MEANINGS)
def test_a_word_of_the_glossary_has_no_other_meaning_in_a_package(word: str) -> None:
    rule = OTHER_MEANINGS[word]
    result = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for package in rule.packages
        for path in sources(package)
        if not any(part in path.as_posix() for part in rule.but)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(rule.word, line, re.IGNORECASE)
    ]
    assert result == [], f"say {rule.say}"


def lines_with(word: str) -> list[tuple[str, str]]:
    """(file, line) for each line of the code that has the word, alone or in the plural.

    SQL's GROUP BY is left out, and so are imports: what a module is called says nothing of the file that
    imports it.
    """
    pattern = re.compile(rf"\b{word}s?\b(?! by)", re.IGNORECASE)
    imports = re.compile(r"\s*from [\w.]+ import ")
    return [
        (path.relative_to(ROOT).as_posix(), line.strip())
        for package in PACKAGES
        for path in sources(package)
        for line in path.read_text(encoding="utf-8").splitlines()
        if pattern.search(line) and not imports.match(line)
    ]


def places_of(word: str) -> list[str]:
    known = [place for places in PLACES[word].values() for place in places]
    return known + list(NAMES_OF_OTHERS.get(word, ()))


def is_in(file: str, place: str) -> bool:
    return file == place or file.startswith(f"{place}/")


@pytest.mark.parametrize("word", PLACES)
def test_each_meaning_of_a_word_has_a_row_and_places(word: str) -> None:
    known = {
        term.removeprefix(f"{word} (").removesuffix(")") for term in terms() if term.startswith(f"{word} (")
    }
    assert known == set(PLACES[word])
    assert word not in terms(), "which of its meanings?"
    assert len(set(places_of(word))) == len(places_of(word)), "a place with two meanings"


@pytest.mark.parametrize("word", PLACES)
def test_a_word_with_several_meanings_is_only_where_one_of_them_is_at_home(word: str) -> None:
    homeless = [
        f"{file}: {line}"
        for file, line in lines_with(word)
        if not any(is_in(file, place) for place in places_of(word))
    ]
    assert homeless == [], "use another word, or say in PLACES which meaning it has here"


@pytest.mark.parametrize("word", PLACES)
def test_every_place_of_a_meaning_has_the_word(word: str) -> None:
    files = {file for file, _ in lines_with(word)}
    assert [place for place in places_of(word) if not any(is_in(file, place) for file in files)] == []


def test_every_term_has_one_row() -> None:
    assert len(set(terms())) == len(terms())


def test_every_term_is_used_outside_of_the_glossary() -> None:
    places = [
        path
        for package in (*PACKAGES, "docs")
        for path in (ROOT / package).rglob("*")
        if path.suffix in (".py", ".md")
    ]
    text = "\n".join(path.read_text(encoding="utf-8") for path in places if path != GLOSSARY)
    text = re.sub(r"[_\n]+ *", " ", text).lower()
    words = {re.sub(r" \(.*\)", "", term).replace("**", "").lower() for term in terms()}
    assert [word for word in sorted(words) if not re.search(rf"\b{re.escape(word)}s?\b", text)] == []


def test_a_row_of_the_glossary_is_a_term_and_its_meaning() -> None:
    assert len(rows()) > 60
    for term, meaning in rows():
        assert term, meaning
        assert len(meaning.split()) >= 3, term
