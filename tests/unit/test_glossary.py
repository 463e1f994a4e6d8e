"""The glossary promises one meaning for each word. What would break the promise again is looked for here."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
ROOMS = (
    "evenflow", "producers", "partitioner_service", "spark_consumers", "topics", "controller", "workbench", "monitoring",
    "cli",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """Where a word would have another meaning than its own. but: files that may have it there."""

    word: str
    rooms: tuple[str, ...]
    but: tuple[str, ...] = ()
    say: str


OTHER_MEANINGS = {
    "bucket": Elsewhere(
        word=r"bucket",
        rooms=("evenflow/partitioners", "evenflow/sketches", "evenflow/aggregates"),
        but=("prompt/", "partitioners/former.py"),
        say="cell (of homes), bin (of a quantile)",
    ),
    "block": Elsewhere(
        word=r"(?<!data )(?<!data_)\bblocks?\b",
        rooms=("evenflow/partitioners/prompt", "evenflow/metrics"),
        but=("prompt/accumulator.py",),
        say="data block",
    ),
    "epoch": Elsewhere(
        word=r"(since the|from the|aligned to the|unix) epoch\b",
        rooms=ROOMS,
        say="1970",
    ),
    "member": Elsewhere(
        word=r"\bmembers?\b",
        rooms=(
            "evenflow/keys.py",
            "evenflow/draws.py",
            "evenflow/sources/source.py",
            "evenflow/sketches",
            "evenflow/partitioners",
        ),
        but=(
            "dalton/cooperative.py",
            "dalton/messages.py",
            "dalton/reducer.py",
            "partitioners/catalogue.py",
        ),
        say="salt (of a hash function)",
    ),
    "home": Elsewhere(
        word=r"\bhomes?\b|home_slot",
        rooms=("evenflow/sketches", "evenflow/keys.py", "evenflow/twostep"),
        say="slot, place (of a hash table)",
    ),
    "view": Elsewhere(word=r"\bviews?\b", rooms=("monitoring/live",), say="glance"),
    "shard, sub-window": Elsewhere(
        word=r"\bshards?\b|\bsub-?windows?\b|\bmicrobatch(es)?\b",
        rooms=ROOMS,
        say="partition, pane, micro-batch",
    ),
}


def rows() -> list[tuple[str, str]]:
    lines = [line for line in GLOSSARY.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return [(term, meaning) for term, meaning in (line.strip("| ").split(" | ", 1) for line in lines[1:])]


def terms() -> list[str]:
    """Without what a term is "of": two parts are told apart by it."""
    return [term for names, _ in rows() for term in names.split(", ")]


def sources(room: str) -> list[Path]:
    place = ROOT / room
    return [place] if place.is_file() else sorted(place.rglob("*.py"))


@pytest.mark.parametrize("word", OTHER_MEANINGS)
def test_a_word_of_the_glossary_has_no_other_meaning_in_a_room(word: str) -> None:
    rule = OTHER_MEANINGS[word]
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for room in rule.rooms
        for path in sources(room)
        if not any(part in path.as_posix() for part in rule.but)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(rule.word, line, re.IGNORECASE)
    ]
    assert found == [], f"say {rule.say}"


def test_every_term_has_one_row() -> None:
    assert len(set(terms())) == len(terms())


def test_every_term_is_used_outside_of_the_glossary() -> None:
    places = [
        path
        for room in (*ROOMS, "docs")
        for path in (ROOT / room).rglob("*")
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
