"""`python -m benchmarks.soak`: the tables of `service-soak` in docs/measurements.md, from its kept rows.

Nothing is measured: `evenflow bench service-soak` does that. It writes its rows to .evenflow/bench.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.soak.tables import into

PAGE = Path("docs/measurements.md")
ROWS = PAGE.with_suffix("") / "soak.json"


def main() -> int:
    """Write the tables. The working directory is the repository."""
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(into(page, json.loads(ROWS.read_text(encoding="utf-8"))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
