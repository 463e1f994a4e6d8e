"""Pages are as wide as the code, and wrapping them changes nothing in them (`evenflow.text.markdown`)."""

from pathlib import Path

import pytest

from evenflow.text.markdown import WIDTH, wrapped
from tests.page_width import ROOT, pages


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_has_no_wide_line_that_could_be_wrapped(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    narrow = wrapped(text)
    lines = set(narrow.splitlines())
    wide = [line for line in text.splitlines() if line not in lines]
    assert narrow == text, f"`python -m tests.page_width --write` wraps these: {wide[:3]}"


@pytest.mark.parametrize("name", ["Makefile", "pyproject.toml"])
def test_settings_of_the_tools_are_no_wider(name: str) -> None:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len(line) > WIDTH] == []


WORDS = " ".join(["word"] * 30)


@pytest.mark.parametrize(
    "kept",
    [
        f"| {WORDS} |",
        f"# {WORDS}",
        f"```\n{WORDS}\n```",
        f"    {WORDS}",
        f"<!-- {WORDS} -->",
        "`" + WORDS + "`",
        "[words](" + "w" * 150 + ")",
        f"[words]: https://example.com {WORDS}",
    ],
)
def test_tables_headings_code_html_and_addresses_keep_their_lines(kept: str) -> None:
    assert wrapped(kept) == kept


@pytest.mark.parametrize("begin", ["", "* ", "  - ", "12. "])
def test_a_paragraph_and_an_item_are_wrapped_under_their_first_word(begin: str) -> None:
    lines = wrapped(begin + WORDS).splitlines()
    assert len(lines) == 2
    assert max(map(len, lines)) <= WIDTH
    assert lines[1].startswith(" " * len(begin) + "word")
    assert " ".join(line.strip() for line in lines) == (begin + WORDS).strip()


def test_a_line_that_begins_with_the_number_of_an_issue_is_no_heading() -> None:
    lines = wrapped(f"[an issue\n#1700](https://example.com) {WORDS}").splitlines()
    assert len(lines) == 2
    assert max(map(len, lines)) <= WIDTH


def test_no_line_begins_with_what_would_be_an_item_a_heading_or_a_quotation() -> None:
    for mark in ("-", "+", "2.", "#", "|", ">"):
        for before in range(17, 24):
            text = " ".join(["word"] * before) + f" {mark} word {WORDS}"
            for line in wrapped(text).splitlines():
                assert not line.startswith(mark)


def test_a_paragraph_without_a_wide_line_stays_as_it_is() -> None:
    assert wrapped("one\ntwo\n\n* three\n  four\n") == "one\ntwo\n\n* three\n  four\n"
