"""A hook of mkdocs: pages from outside docs/, the navigation, and Markdown as hosts of repositories read it.

The repository has no address, so a link to a file outside docs/ leads to a copy of that page (`COPIES`), or
becomes its path. The navigation is docs/README.md itself: a group of pages for each reader, in the order of
that page.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
COPIES = {
    "README.md": "index.md",
    "docs/README.md": "all-pages.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "tests/pipeline/RULES.md": "rules.md",
}
"""File of the repository -> page of the site."""
ASSETS = ("site.css", "pictures.js", "iframe-worker.js")
LINK = re.compile(r"(!?)\[([^\]\[]*)\]\(([^()\s]+)\)")
_CODE = re.compile(r"(^ *```.*?^ *```$|`[^`\n]*`)", re.DOTALL | re.MULTILINE)
_ITEM = re.compile(r"( *)([*-]|\d+\.)( +)(?=\S)")
_FENCE = re.compile(r" *```")


def slug(heading: str, separator: str = "-") -> str:
    """The anchor of a heading, as hosts of repositories make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", separator)


class Anchors:
    """The anchors of the headings of a page, in their order: of equal headings the second ends with -1, the
    third with -2.

    Python-Markdown by itself writes _1, which no link of the repository's host leads to.
    """

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def begin(self) -> None:
        """A new page begins."""
        self._seen.clear()

    def __call__(self, heading: str, separator: str) -> str:
        """The anchor of the next heading, as the extension `toc` asks for it."""
        anchor = slug(heading, separator)
        number = self._seen[anchor]
        self._seen[anchor] += 1
        return f"{anchor}{separator}{number}" if number else anchor


anchors = Anchors()


def source_of(uri: str) -> str:
    """The file of the repository that a page of the site comes from."""
    return next((source for source, page in COPIES.items() if page == uri), f"docs/{uri}")


def relinked(text: str, source: str) -> str:
    """Markdown of a file of the repository, with links that lead to pages of the site, or to nothing.

    source: path of the file, of which its links are relative. Raises FileNotFoundError if a link leads to no
    file.
    """
    folder = PurePosixPath(_uri(source)).parent

    def link(match: re.Match[str]) -> str:
        mark, words, address = match.groups()
        path, _, anchor = address.partition("#")
        if not path or re.match(r"[a-z]+:", address):
            return match[0]
        target = os.path.normpath(PurePosixPath(source).parent / path)
        if not (ROOT / target).exists():
            raise FileNotFoundError(f"{source} links to {address}, which is not there")
        inside = target.startswith("docs/") and (ROOT / target).is_file()
        if target in COPIES or inside:
            return f"{mark}[{words}]({os.path.relpath(_uri(target), folder)}{'#' + anchor if anchor else ''})"
        named = restored(words).strip("`") in (target, PurePosixPath(target).name)
        return f"`{target}`" if named else f"{words} (`{target}`)"

    asides: list[str] = []  # code, in which nothing is a link

    def aside(match: re.Match[str]) -> str:
        asides.append(match[0])
        return f"\0{len(asides) - 1}\0"

    def restored(text: str) -> str:
        return re.sub(r"\0(\d+)\0", lambda match: asides[int(match[1])], text)

    return restored(LINK.sub(link, _CODE.sub(aside, text)))


def lists_apart(text: str) -> str:
    """Markdown whose lists Python-Markdown reads like hosts of repositories do.

    It wants an empty line before a list, and four columns for what belongs to an item.
    """
    lines: list[str] = []
    columns: list[int] = []  # where the text of each open item begins
    fence = loose = False  # loose: the last item has a second paragraph
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip(" "))
        after_gap = not lines or not lines[-1].strip()
        item = None if fence else _ITEM.match(line)
        if line.strip() and not fence and (after_gap or item or _FENCE.match(line)):
            while columns and indent < columns[-1]:
                columns.pop()
        shift = 4 * len(columns) - columns[-1] if columns and indent >= columns[-1] else 0
        if item:
            before = lines[-1] if lines else ""
            begins = not columns and not _ITEM.match(before) and not before.startswith(" ")
            if not after_gap and (begins or loose):
                lines.append("")
            loose = False
            depth = len(columns)
            columns.append(indent + len(item[2]) + len(item[3]))
            line = " " * (4 * depth) + item[2] + item[3] + line[item.end() :]
        elif line.strip():
            loose = loose or (after_gap and bool(columns))
            line = " " * shift + line
        if _FENCE.match(line):
            fence = not fence
            line = re.sub(r"(```\w+) .*", r"\1", line)  # words behind the language are for tests
        lines.append(line)
    return "\n".join(lines)


def pages_in(index: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """Groups of an index page of docs/: title, then the words and the file of each link that leads to a
    whole page.
    """
    text = (ROOT / "docs" / index).read_text(encoding="utf-8")
    groups = []
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title, _, body = part.partition("\n")
        links = [
            (words.replace("`", ""), address)
            for _, words, address in LINK.findall(body)
            if "#" not in address
        ]
        named = [
            (words[0].upper() + words[1:], os.path.normpath(f"docs/{address}")) for words, address in links
        ]
        groups.append((title.strip(), [(words, path) for words, path in named if path.endswith(".md")]))
    return groups


def navigation() -> list[Any]:
    """The navigation: what docs/README.md lists, with the pages that docs/operations.md lists below that
    page.
    """
    groups = pages_in("README.md")
    placed = {path for _, pages in groups for _, path in pages}  # those have a place of their own

    def below() -> Iterator[dict[str, Any]]:
        for title, pages in pages_in("operations.md"):
            rows = [{words: _uri(path)} for words, path in pages if path not in placed]
            placed.update(path for _, path in pages)
            if rows:
                yield {title: rows}

    def entry(words: str, path: str) -> dict[str, Any]:
        return {words: [{"Overview": _uri(path)}, *below()] if path == "docs/operations.md" else _uri(path)}

    home = {"Home": ["index.md", {"All pages": "all-pages.md"}, {"Changes": "changelog.md"}]}
    return [home, *({title: [entry(words, path) for words, path in pages]} for title, pages in groups)]


def _uri(path: str) -> str:
    """The page of the site that a file of the repository becomes."""
    return COPIES.get(path, path.removeprefix("docs/"))


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Sets the navigation and the anchors of headings."""
    config.nav = navigation()
    config.mdx_configs["toc"]["slugify"] = anchors
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages from outside docs/, and leaves out docs/README.md, which is one of them."""
    for file in [file for file in files if file.src_uri == "README.md"]:
        files.remove(file)
    for source, page in COPIES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    for name in ASSETS:
        files.append(File.generated(config, f"assets/{name}", abs_src_path=str(Path(__file__).parent / name)))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Each page's Markdown, before it is rendered. The changelog is not searched: it names everything."""
    anchors.begin()
    if page.file.src_uri == COPIES["CHANGELOG.md"]:
        page.meta["search"] = {"exclude": True}
    return lists_apart(relinked(markdown, source_of(page.file.src_uri)))
