"""`python -m benchmarks.scale [MEASURED.json]`: makes the tables and pictures of docs/scale.md from the
kept figures.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.pages.rows import kept_rows
from benchmarks.pages.tables import into_page
from benchmarks.scale import pages
from benchmarks.scale.pictures import by_workers
from benchmarks.scale.whole_runs import SCENARIOS, whole_runs
from evenflow.charts.page import save
from evenflow.scale.measurements import MEASURED, Measurements, loads_of

PAGE, FOLDER = Path("docs/scale.md"), Path("docs/scale")
LAW = "words"
"""The law of the keys that the page's bills are made with."""


def tables(measurements: Measurements) -> dict[str, str]:
    """The page's tables by the name in the comment above each."""
    return {
        "units": pages.units_table(measurements),
        "loads": pages.loads_table(measurements),
        "routing": pages.routing_table(measurements),
        "breaks": pages.breaks_table(measurements, LAW),
        "bill": pages.bill_table(measurements, LAW),
        "limits": pages.limits_table(measurements, LAW),
        "dominant": pages.dominant_table(measurements, LAW),
        "runs": pages.runs_table(measurements),
        "transactions": pages.transactions_table(measurements),
    }


def main() -> int:
    """Keep the measured runs, and write the tables into the page and the picture beside it."""
    whole_runs(kept_rows(SCENARIOS)).write()
    FOLDER.mkdir(parents=True, exist_ok=True)
    measurements, _ = Measurements.read(Path(sys.argv[1]) if len(sys.argv) > 1 else MEASURED)
    page = PAGE.read_text(encoding="utf-8")
    for part, lines in tables(measurements).items():
        page = into_page(page, "scale", part, lines)
    PAGE.write_text(page, encoding="utf-8")
    save(by_workers(loads_of(measurements)[LAW], measurements.units), FOLDER / "workers.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
