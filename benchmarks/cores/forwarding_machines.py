"""`python -m benchmarks.cores.forwarding_machines`: what travels between machines, by partitioner.forwarding.

It is counted in the cores, and becomes a table of docs/measurements.md. Worker w is combined on machine
w mod M, and bucket b is reduced on machine b mod M: where Spark places them at best
(`spark_consumers.cluster.forwarding`). Each partial is counted, and each blob of a worker for a bucket is
encoded. There is no timing. Rows that are kept already are not counted again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cores.forwarding import (
    CASES,
    ENTRANTS,
    FURTHER,
    ID,
    STREAMS,
    combined,
    plan_of,
    routed_stream,
)
from benchmarks.cores.forwarding_page import PAGE, entrant_words, stream_words
from benchmarks.cores.forwarding_ways import BUCKETS, SEED, ForwardingCase, encoded
from benchmarks.pages.tables import into_page, table
from benchmarks.pictures import keep_rows
from evenflow.keys import bucket_of, hash_keys

KEPT = Path("docs/measurements/forwarding-machines.json")
MACHINES = (2, 8)
"""Numbers of machines. Each divides the number of buckets, which divides that of workers."""
COUNTED = CASES[: len(CASES) - len(FURTHER)]
"""All that is counted."""
_WAYS: Mapping[str, int | None] = {"off": None, "on": SEED}
"""forwarding -> the seed of F_1 that names the bucket."""
_NAMES = ("law", "keys", "entrant", "workers")
Row = Mapping[str, Any]


def row(case: ForwardingCase) -> dict[str, Any]:
    """Partials and bytes per tuple, and the share of both that travels, by forwarding and number of
    machines.
    """
    stream, plan = routed_stream(case), plan_of(case)
    partials = {way: np.zeros((case.workers, BUCKETS), np.int64) for way in _WAYS}
    sizes = {way: np.zeros((case.workers, BUCKETS), np.int64) for way in _WAYS}
    for number in range(case.warm * case.blocks, case.panes * case.blocks):
        for worker, rows in enumerate(combined(plan, case, stream, number)):
            hashes = hash_keys(rows["key"]) if rows.num_rows else np.empty(0, np.uint64)
            for way, seed in _WAYS.items():
                buckets = bucket_of(hashes, BUCKETS, forwarding_seed=seed)
                partials[way][worker] += np.bincount(buckets, minlength=BUCKETS)
                blobs = encoded(rows, buckets, workers=case.workers, offset=number)
                sizes[way][worker] += [sum(map(len, parts)) for parts in blobs]
    tuples = case.measured * case.tuples
    return {name: value for name, value in asdict(case).items() if name in _NAMES} | {
        way: {
            "partials": round(int(partials[way].sum()) / tuples, 6),
            "bytes": round(int(sizes[way].sum()) / tuples, 3),
            "partials_away": [_away(partials[way], machines) for machines in MACHINES],
            "bytes_away": [_away(sizes[way], machines) for machines in MACHINES],
        }
        for way in _WAYS
    }


def _away(amounts: np.ndarray, machines: int) -> float:
    """Share of the amounts that leave their machine. amounts: of each worker for each bucket."""
    workers, buckets = (np.arange(size) % machines for size in amounts.shape)
    return round(1 - float(amounts[workers[:, None] == buckets].sum() / amounts.sum()), 5)


def machines_table(rows: Sequence[Row]) -> str:
    """The share of bytes that travels, forwarding off -> on: a column for each stream. rows: as `COUNTED`."""
    by_case = {tuple(line[name] for name in _NAMES): line for line in rows}
    streams = list(product(STREAMS, sorted({line["keys"] for line in rows})))
    lines = []
    for entrant, workers, (at, machines) in product(
        ENTRANTS, sorted({line["workers"] for line in rows}), enumerate(MACHINES)
    ):
        cells = []
        for law, keys in streams:
            line = by_case[law, keys, entrant, workers]
            cells.append(" -> ".join(f"{100 * line[way]['bytes_away'][at]:.3g}" for way in _WAYS) + " %")
        lines.append((entrant_words(entrant), workers, machines, *cells))
    head = ("partitioner", "workers", "machines", *(stream_words(law, keys) for law, keys in streams))
    return table(head, lines)


def main() -> int:
    """Count what is missing, and write the table into the page. The working directory is the repository."""
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else []
    have = {tuple(line[name] for name in _NAMES): line for line in kept}
    for case in COUNTED:
        at = tuple(getattr(case, name) for name in _NAMES)
        if at not in have:
            have[at] = row(case)
            keep_rows(list(have.values()), KEPT)
            print(*at, have[at]["off"]["bytes_away"], have[at]["on"]["bytes_away"], flush=True)
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(into_page(page, ID, "machines", machines_table(list(have.values()))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
