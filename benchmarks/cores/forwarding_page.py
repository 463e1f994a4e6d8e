"""`python -m benchmarks.cores.forwarding_page`: the tables of forwarding in docs/measurements.md, from kept
rows.

A full run of the scenario `forwarding` leaves its rows in `.evenflow/bench`. The page's rows are a copy of
them in docs/measurements.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.cores.forwarding import CASES, ENTRANTS, FURTHER, ID, STREAMS
from benchmarks.pages.tables import figure, into_page, table

PAGE, KEPT = Path("docs/measurements.md"), Path("docs/measurements/forwarding.json")
Row = Mapping[str, Any]


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """The page's tables by the name in the comment above each. rows: one for each of `CASES`, in order."""
    return {"ratios": _ratios(rows), "cases": _cases(rows)}


def _ratios(rows: Sequence[Row]) -> str:
    """Shares that homes finish, and CPU time of forwarding over that of today: a column for each stream."""
    plain = rows[: len(rows) - len(FURTHER)]
    by_case = {(row["law"], row["keys"], row["entrant"], row["workers"]): row for row in plain}
    streams = list(product(STREAMS, sorted({row["keys"] for row in plain})))
    lines = []
    for entrant, workers in product(ENTRANTS, sorted({row["workers"] for row in plain})):
        cells = [_share_and_ratio(by_case[law, keys, entrant, workers]) for law, keys in streams]
        lines.append((entrant_words(entrant), workers, *cells))
    return table(("partitioner", "workers", *(stream_words(law, keys) for law, keys in streams)), lines)


def _cases(rows: Sequence[Row]) -> str:
    """Every figure of every case, of today's way and with forwarding."""
    head = (
        "stream, keys",
        "partitioner",
        "workers",
        "finished",
        "announced",
        "partials",
        "blobs",
        "CPU, announcing included",
        "of it reducers, and homes",
        "state held",
    )
    lines, before = [], ""
    for row in rows:
        today, forwarding, stream = row["today"], row["forwarding"], stream_words(row["law"], row["keys"])
        lines.append(
            (
                stream if stream != before else "",
                entrant_words(row["entrant"]) + _more(row),
                row["workers"],
                _percent(row["finished_at_home"]),
                figure(row["announcements_per_million"] / 1e3),
                f"{figure(today['partials'] / 1e3)} -> {figure(forwarding['partials'] / 1e3)}",
                _megabytes(row, "blob_kilobytes"),
                f"{today['cpu']['all']:.2f} -> {_with_announcing(row):.2f}",
                f"{today['cpu']['reducer']:.2f} -> {forwarding['cpu']['reducer']:.2f},"
                f" homes {forwarding['cpu']['home']:.2f}",
                _megabytes(row, "state_held_kilobytes"),
            )
        )
        before = stream
    return table(head, lines)


def _share_and_ratio(row: Row) -> str:
    return f"{_percent(row['finished_at_home'])}: {_with_announcing(row) / row['today']['cpu']['all']:.2f}"


def _megabytes(row: Row, kilobytes: str) -> str:
    """Today's figure and that of forwarding."""
    return " -> ".join(f"{row[way][kilobytes] / 1e3:.1f}" for way in ("today", "forwarding"))


def _with_announcing(row: Row) -> float:
    """CPU seconds per million tuples with forwarding, those of the partitioner's announcements included."""
    return float(row["forwarding"]["cpu"]["all"] + row["announcing_cpu"])


def _percent(share: float) -> str:
    """A share of less than 1 is not rounded to 100 %."""
    return f"{100 * share:.0f} %" if share in (0, 1) or share < 0.99 else f"{100 * share:.4g} %"


def stream_words(law: str, keys: int) -> str:
    """A stream in the page's words."""
    return f"{law.replace('zipf', 'Zipf')}, {keys:,}"


def entrant_words(entrant: str) -> str:
    """A partitioner in the page's words."""
    return entrant.replace("tail=hash", "`tail = hash`")


def _more(row: Row) -> str:
    """What a case has that others have not."""
    sources, states = row["sources"], row["states"]
    return f", {sources} instances" if sources > 1 else f", {states} states" if states > 8 else ""


def main() -> int:
    """Write the tables into the page. The working directory is the repository."""
    rows = json.loads(KEPT.read_text(encoding="utf-8"))
    if len(rows) != len(CASES):
        raise SystemExit(f"{KEPT} has {len(rows)} rows, but there are {len(CASES)} cases")
    page = PAGE.read_text(encoding="utf-8")
    for part, lines in tables(rows).items():
        page = into_page(page, ID, part, lines)
    PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
