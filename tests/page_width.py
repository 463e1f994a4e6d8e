"""How wide the pages are: `python -m tests.page_width` names the pages with lines above 110, and `--write`
wraps these (`evenflow.text.markdown`).
"""

from __future__ import annotations

import sys
from pathlib import Path

from evenflow.text.markdown import wrapped

ROOT = Path(__file__).parents[1]


def pages() -> list[Path]:
    """All pages. Those that code writes as a whole are wrapped by that code."""
    every = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("tests/pipeline/*.md")]
    return sorted(every)


def main() -> int:
    """Name the pages that are too wide, or wrap them."""
    write, wide = "--write" in sys.argv, 0
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if (narrow := wrapped(text)) != text:
            wide += 1
            print(page.relative_to(ROOT))
            if write:
                page.write_text(narrow, encoding="utf-8")
    return 0 if write or not wide else 1


if __name__ == "__main__":
    sys.exit(main())
