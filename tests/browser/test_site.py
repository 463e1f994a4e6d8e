"""The site of `make site`: every link leads somewhere, nothing comes from a foreign host, and a person finds
things.

The browser opens it as a folder (`file://`), as somebody does who has built it.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.unit.test_links import anchors

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.more, pytest.mark.xdist_group("site")]
_PATIENCE = 15_000
_CODE = re.compile(r"<(pre|code|script|style|svg|h[1-6])\b.*?</\1>", re.DOTALL)
_AT = (
    "(path, part) => { const at = path.getPointAtLength(path.getTotalLength() * part)"
    ".matrixTransform(path.getScreenCTM()); return [at.x, at.y]; }"
)
"""The place of a point of a line on the page, from the part of the line that precedes it."""
_MARKUP = re.compile(r"^\|.*|^ *[*-] .*|^\d+\. .*|```|\]\(|\*\*", re.MULTILINE)


@dataclass
class Html(HTMLParser):
    """What a page links to, what it loads, and its anchors."""

    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value is not None}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if "href" in values:
            (self.links if tag == "a" else self.loaded).append(values["href"])
        if "src" in values:
            self.loaded.append(values["src"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make site` does."""
    program = ROOT / ".site/bin/mkdocs"
    assert program.exists(), "no mkdocs: `make site` installs it"
    folder = tmp_path_factory.mktemp("site")
    words = [
        program,
        "build",
        "--strict",
        "--quiet",
        "--config-file",
        ROOT / "website/mkdocs.yml",
        "--site-dir",
        folder,
    ]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=300, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture
def opened(browser: Browser, site: Path) -> Iterator[Page]:
    """A page of the browser with the site's first page. At the end nothing was complained of, and no host
    was asked.
    """
    page = browser.new_page(viewport={"width": 1360, "height": 1000})
    complaints: list[str] = []
    page.on(
        "console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda asked: None if asked.url.startswith("file:") else complaints.append(asked.url))
    page.goto((site / "index.html").as_uri())
    yield page
    page.close()
    assert complaints == []


def test_every_link_of_the_site_leads_to_a_file_and_an_anchor_and_nothing_is_loaded_from_elsewhere(
    site: Path,
) -> None:
    pages: dict[Path, Html] = {}
    for file in site.rglob("*.html"):
        pages[file] = Html()
        pages[file].feed(file.read_text(encoding="utf-8"))
    del pages[site / "404.html"]  # its links begin with /, because a server shows it at any address
    assert len(pages) > 50
    broken = []
    for file, html in pages.items():
        for address in html.links + html.loaded:
            path, _, anchor = address.partition("#")
            target = (file.parent / path).resolve() if path else file
            if re.match(r"[a-z]+:", address):
                if address in html.loaded:
                    broken.append((file.name, address))
            elif not target.exists() or (anchor and target in pages and anchor not in pages[target].anchors):
                broken.append((file.name, address))
    assert broken == []


def test_each_heading_has_the_anchor_that_hosts_of_repositories_give_it_as_has_a_second_equal_heading(
    site: Path,
) -> None:
    copies = {
        "README.md": "index.html",
        "docs/README.md": "all-pages.html",
        "CONTRIBUTING.md": "contributing.html",
    }
    repeated = 0
    for source in [*map(ROOT.joinpath, copies), *sorted((ROOT / "docs").rglob("*.md"))]:
        path = source.relative_to(ROOT).as_posix()
        page = Html()
        address = copies.get(path, path.removeprefix("docs/").removesuffix("md") + "html")
        page.feed((site / address).read_text(encoding="utf-8"))
        assert anchors(source) <= page.anchors, path
        repeated += len({anchor for anchor in anchors(source) if anchor.endswith("-1")})
    assert repeated >= 3, "settings.md and reproducing.md have equal headings"


def test_lists_tables_and_code_are_rendered_and_not_shown_as_they_are_typed(site: Path) -> None:
    typed = {}
    for file in site.rglob("*.html"):
        article = re.search(r"<article.*?</article>", file.read_text(encoding="utf-8"), re.DOTALL)
        text = re.sub(r"<[^>]+>", "", _CODE.sub("", article[0])) if article else ""
        if seen := _MARKUP.findall(text):
            typed[file.name] = seen[:3]
    assert typed == {}


@pytest.mark.browser
def test_a_word_that_is_searched_leads_to_its_page(opened: Page) -> None:
    opened.click("[data-md-component=search-query]")
    opened.keyboard.type("decompression bomb")
    first = opened.locator(".md-search-result__link").first
    first.wait_for(timeout=_PATIENCE)
    first.click()
    opened.wait_for_url("**/operations/rejected-records.html*", timeout=_PATIENCE)
    assert opened.inner_text("h1").startswith("Records that are rejected")


@pytest.mark.browser
def test_the_tabs_are_the_groups_of_the_index_and_lead_to_the_pages_of_operations(opened: Page) -> None:
    groups = re.findall(r"^## (.*)$", (ROOT / "docs/README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert opened.locator(".md-tabs__link").all_inner_texts() == ["Home", *groups]
    opened.click(".md-tabs__link:has-text('Operate')")
    opened.wait_for_url("**/operations.html", timeout=_PATIENCE)
    opened.click("article a:has-text('Data is lost')")
    opened.wait_for_url("**/operations/data-loss.html", timeout=_PATIENCE)


@pytest.mark.browser
def test_who_points_at_a_mark_of_a_picture_reads_its_values(opened: Page, site: Path) -> None:
    opened.locator("figure.picture [data-words^='evenflow\\a ']").last.hover()
    tip = opened.locator("figure.picture .tip:visible")
    assert re.fullmatch(
        r"evenflow\nworkers that hold a key, .*: 1\.\d+\nfullest worker above its fair share: [\d.]+",
        tip.inner_text(),
    )
    opened.mouse.move(5, 5)
    assert tip.count() == 0
    opened.goto((site / "scale.html").as_uri())
    line = opened.locator("figure.picture path.near[data-words='frames']").first
    line.scroll_into_view_if_needed()
    x, y = line.evaluate(_AT, 0.9)
    opened.mouse.move(x, y)
    assert re.fullmatch(r"frames\nworkers: \d+\ncores: [\d.]+", tip.inner_text())
    label = line.evaluate("path => path.previousElementSibling.getAttribute('aria-label')")
    first = re.match(r"workers: ([\d.]+); cores: ([\d.]+);", label)
    assert first
    x, y = line.evaluate(_AT, 0)
    opened.mouse.move(x + 2, y)
    assert tip.inner_text() == f"frames\nworkers: {float(first[1]):g}\ncores: {float(first[2]):.3g}"


@pytest.mark.browser
def test_who_has_no_pointer_goes_through_the_points_of_a_picture_with_the_arrow_keys_and_hears_their_values(
    opened: Page, site: Path
) -> None:
    opened.goto((site / "scale.html").as_uri())
    figure = opened.locator("figure.picture:has(path.near[data-words='frames'])").first
    assert "arrow" in figure.evaluate(
        "f => document.getElementById(f.getAttribute('aria-describedby')).textContent"
    )
    tip, ring, said = figure.locator(".tip"), figure.locator(".ring"), figure.locator("[aria-live=polite]")

    def told() -> list[str]:
        """What is shown at the ring, after it was seen that the same is announced."""
        lines = tip.inner_text().split("\n")
        assert said.text_content() == "; ".join(lines)
        around, box = ring.bounding_box(), opened.viewport_size
        assert around is not None
        assert box is not None
        assert 0 < around["x"] < box["width"]
        assert 0 < around["y"] < box["height"]
        return lines

    figure.locator("xpath=preceding::a[@href][1]").focus()
    for _ in range(10):  # a table that can be scrolled is a stop, too
        opened.keyboard.press("Tab")
        if figure.evaluate("f => f === document.activeElement"):
            break
    name, first, height = told()
    assert first == "workers: 10", "the line's first point"
    opened.keyboard.press("ArrowRight")
    second = told()
    assert second[0] == name
    assert float(second[1].split()[1]) > float(first.split()[1])
    opened.keyboard.press("ArrowDown")
    other = told()
    assert (other[0] != name, other[1]) == (True, second[1]), "the next line, at the same place"
    opened.keyboard.press("ArrowUp")
    assert told() == second
    opened.keyboard.press("ArrowLeft")
    assert told() == [name, first, height]
    opened.keyboard.press("Escape")
    assert (tip.is_visible(), ring.is_visible(), said.text_content()) == (False, False, "")
    opened.keyboard.press("ArrowRight")
    assert told() == [name, first, height], "the first key after Escape shows where one was"
    opened.keyboard.press("Tab")
    assert not tip.is_visible()
    assert figure.get_attribute("role") == "application", (
        "else a screen reader keeps the arrow keys to itself"
    )
    assert figure.get_attribute("aria-label")
