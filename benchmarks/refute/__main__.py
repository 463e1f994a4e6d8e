"""`python -m benchmarks.refute --minutes 30`: search for streams on which evenflow is worst against the best
of the others.

Half of the cases are drawn from anywhere, the others are near the worst ones so far. A case's badness is 1
where a goal is just met: an imbalance of 3 times the best of the others (counted from 1e-3 on), or 1.3 times
the replicas of `d-choices` (of its two forms the one with more). The best is that of the others with at most
1.3 times our replicas, because whoever splits every key is level on any stream. The table has the most level
of all beside it.
Prints the worst cases as a Markdown table, each of another law, and a table of where goals are missed.
`--write` puts both into docs/evenflow-partitioner.md.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.pages.tables import into_page
from benchmarks.refute.cases import Case, drawn, near
from benchmarks.refute.judging import CHOICES, MOST_REPLICAS, OURS, CaseVerdict, judged

PAGE = Path("docs/evenflow-partitioner.md")
_FEW = {100: "100 and more", 16: "16 to 100", 0: "fewer than 16"}
"""Tuples that a worker has in a window at least."""
_ELITE = 12
"""Cases whose neighbourhood is searched."""


def main(arguments: list[str] | None = None) -> int:
    """Search, and print the worst cases."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.refute", description="an opponent of evenflow"
    )
    parser.add_argument("--minutes", type=float, default=30.0, help="how long to search (30)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the search (1)")
    parser.add_argument("--tuples", type=int, default=200_000, help="tuples of a stream (200,000)")
    parser.add_argument("--worst", type=int, default=5, help="how many cases to show (5)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (the cores)")
    parser.add_argument("--log", type=Path, help="write every case as a line of JSON")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE}")
    options = parser.parse_args(arguments)
    if options.tuples < 1_000 or options.jobs < 1 or options.worst < 1:
        parser.error("--tuples must be at least 1,000, --jobs and --worst at least 1")
    end = time.monotonic() + 60 * options.minutes
    verdicts: list[CaseVerdict] = []
    for verdict in search(
        options.seed, options.tuples, options.jobs, go_on=lambda: time.monotonic() < end or not verdicts
    ):
        verdicts.append(verdict)
        if options.log:
            with options.log.open("a") as log:
                log.write(json.dumps(verdict.as_json()) + "\n")
        if verdict is max(verdicts, key=lambda other: other.badness):
            print(f"{len(verdicts)}: {verdict.badness:.2f} {verdict.case.described()}", file=sys.stderr)
    parts = {"worst": list(table(worst(verdicts, options.worst))), "classes": list(classes(verdicts))}
    print(f"\n{len(verdicts):,} cases, {sum(verdict.badness > 1 for verdict in verdicts):,} miss a goal\n")
    print("\n\n".join("\n".join(lines) for lines in parts.values()))
    if options.write:
        for part, lines in parts.items():
            PAGE.write_text(into_page(PAGE.read_text(), "refute", part, "\n".join(lines)))
    return 0


def search(seed: int, tuples: int, jobs: int, *, go_on: Callable[[], bool]) -> Iterator[CaseVerdict]:
    """The verdicts on one case after the other, while `go_on`."""
    rng, best = np.random.default_rng(seed), list[CaseVerdict]()
    with ProcessPoolExecutor(jobs) as pool:
        running: set[Future[CaseVerdict]] = set()
        while running or go_on():
            while len(running) < jobs and go_on():
                running.add(pool.submit(judged, _next(best, rng, tuples), tuples))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                verdict = future.result()
                best = worst([*best, verdict], _ELITE)
                yield verdict


def _next(best: list[CaseVerdict], rng: np.random.Generator, tuples: int) -> Case:
    # Half of the cases are new, so that the search does not stay around the first bad one.
    if best and rng.random() < 0.5:
        return near(best[int(rng.integers(len(best)))].case, rng, tuples)
    return drawn(rng, tuples)


def worst(verdicts: list[CaseVerdict], count: int) -> list[CaseVerdict]:
    """The worst of them, at most one of a kind: a law, a mixture or not, one source or several, and which
    goal is missed.
    """
    worst_of_kind: dict[tuple[str, bool, bool, bool], CaseVerdict] = {}
    for verdict in sorted(verdicts, key=lambda verdict: -verdict.badness):
        case = verdict.case
        kind = (case.law.partition(":")[0], case.mixed > 0, case.sources > 1, verdict.by_level)
        # Sorted from the worst, so the first of a kind is its worst.
        worst_of_kind.setdefault(kind, verdict)
    return list(worst_of_kind.values())[:count]


def classes(verdicts: list[CaseVerdict]) -> Iterator[str]:
    """The lines of a Markdown table: where goals are missed, by sources and by tuples of a worker in a
    window.
    """
    titles = ("sources", "tuples a worker and window", "missed")
    yield (
        "| "
        + " | ".join((*titles, "worst imbalance, times the best", "worst replicas, times `d-choices`"))
        + " |"
    )
    yield "|---" * 5 + "|"
    for sources, few in product(("one", "several"), _FEW):
        mine = [verdict for verdict in verdicts if _class(verdict.case) == (sources, few)]
        if mine:
            missed = sum(verdict.badness > 1 for verdict in mine)
            level, replicas = (
                max(verdict.level for verdict in mine),
                max(verdict.replicas for verdict in mine),
            )
            yield f"| {sources} | {_FEW[few]} | {missed} of {len(mine)} | {level:.1f} | {replicas:.2f} |"


def _class(case: Case) -> tuple[str, int]:
    tuples = case.slide * case.slides / case.workers
    return "one" if case.sources == 1 else "several", next(least for least in _FEW if tuples >= least)


def table(verdicts: list[CaseVerdict]) -> Iterator[str]:
    """The lines of a Markdown table. An entry is imbalance / KSR."""
    titles = (
        "stream",
        "evenflow",
        "d-choices:head=window",
        "best with about as many replicas",
        "most level of all",
    )
    yield "| " + " | ".join((*titles, "imbalance, times the best", "replicas, times d-choices")) + " |"
    yield "|---" * 7 + "|"
    for verdict in verdicts:
        near, nearest = verdict.nearest(MOST_REPLICAS), verdict.nearest()
        cells = [
            _pair(verdict, OURS),
            _pair(verdict, CHOICES[-1]),
            f"`{near}` {_pair(verdict, near)}",
            f"`{nearest}` {_pair(verdict, nearest)}",
        ]
        shown = " | ".join(cells)
        yield f"| {verdict.case.described()} | {shown} | {verdict.level:.1f} | {verdict.replicas:.2f} |"


def _pair(verdict: CaseVerdict, name: str) -> str:
    imbalance, ksr = verdict.pairs[name]
    return f"{imbalance:.1e} / {ksr:.3f}"


if __name__ == "__main__":
    sys.exit(main())
