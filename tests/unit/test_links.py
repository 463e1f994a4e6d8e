"""Links of the pages lead somewhere: to a file, and to a heading of it."""

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests/pipeline").glob("*.md")])
LINK = re.compile(r"\[[^\]\[]*\]\(([^()\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page's headings, as hosts of repositories make them: the second of equal headings ends
    with -1.

    tests/browser/test_site.py holds the site to them.
    """
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ +(.*?) *$", text, flags=re.MULTILINE)
    seen: Counter[str] = Counter()
    slugs = []
    for heading in headings:
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        slugs.append(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    named = re.findall(r'<a (?:id|name)="([^"]+)"', text)
    return frozenset([*slugs, *named])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    broken = re.findall(r"\]\([^()\s]*\n.*", text)  # an address that goes on in the next line is none
    for link in LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)
    assert not broken


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_a_page_about_the_code_names_files_that_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = re.findall(r"`([\w./-]+/[\w.-]+\.(?:py|toml|json|md|csv|sha256|yml))`", text)
    assert [path for path in named if not path.startswith("build/") and not (ROOT / path).exists()] == []


def test_what_is_looked_for_is_where_the_table_says() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    table = page.partition("## Where is it?")[2].partition("\n## ")[0]
    # "`name` and `other` in `path/file.py`"
    places = re.findall(r"((?:`\w+`(?: and )?)+) in `([\w/]+\.py)`", table)
    assert len(places) >= 6
    for names, path in places:
        code = (ROOT / path).read_text(encoding="utf-8")
        for name in re.findall(r"\w+", names.replace(" and ", " ")):
            assert re.search(rf"^\s*(?:def |class )?{name}\b", code, flags=re.MULTILINE), (
                f"{path} has no {name}"
            )


@pytest.mark.parametrize(("index", "pages"), [("README.md", "*.md"), ("operations.md", "operations/*.md")])
def test_the_index_names_every_page(index: str, pages: str) -> None:
    text = (ROOT / "docs" / index).read_text(encoding="utf-8")
    linked = {(ROOT / "docs" / link.partition("#")[0]).resolve() for link in LINK.findall(text)}
    unnamed = {path for path in (ROOT / "docs").glob(pages) if path.name != index} - linked
    assert not unnamed, sorted(path.name for path in unnamed)
