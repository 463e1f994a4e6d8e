"""`python -m benchmarks.fleet`: the tables of `service-instances`, of its course in virtual time, and of
`service-shift`, from their kept rows.

They go into docs/measurements.md, each below its comment `<!-- fleet NAME -->`. Nothing is measured:
`evenflow bench service-instances --seed N` does that. It writes its rows to .evenflow/bench, beside those of
other seeds that lie there. `python -m benchmarks.fleet.virtual` plays the course in virtual time.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.fleet.tables import PARTS
from benchmarks.pages.tables import into_page

PAGE = Path("docs/measurements.md")


def main() -> int:
    """Write the tables. The working directory is the repository."""
    page = PAGE.read_text(encoding="utf-8")
    for name, part in PARTS.items():
        rows = json.loads((PAGE.with_suffix("") / f"{name}.json").read_text(encoding="utf-8"))
        page = into_page(page, "fleet", name, part(rows))
    PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
