"""The scenario of forwarding: both ways emit as many results, and its counts are those of the stream."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.cores import forwarding
from benchmarks.cores.forwarding import CASES, RoutedStream, plan_of, row, run_both
from benchmarks.cores.forwarding_page import KEPT, PAGE, tables
from benchmarks.cores.forwarding_ways import SEED, SLIDE, SPAN, Forwarding, ForwardingCase, Today
from benchmarks.pages.tables import into_page
from evenflow.keys import candidate, hash_keys
from tests.examples import examples

Rows = Counter[tuple[int, bytes, int, int]]
"""(end of the window, key, count, sum) -> how often the row came out."""


def routed(seed: int, *, workers: int, keys: int, split: float) -> tuple[ForwardingCase, RoutedStream]:
    """A stream whose tuples go home or anywhere. split: the share of the keys that any worker may get."""
    case = ForwardingCase(
        law="uniform", keys=keys, entrant="-", workers=workers, tuples=40, blocks=2, warm=0, measured=SPAN + 4
    )
    rng = np.random.default_rng(seed)
    count = case.panes * case.tuples
    # A key is away in some panes only, so that windows with and without announcements follow each other.
    ranks = rng.integers(0, keys, count)
    names = pa.array([b"k%d" % key for key in range(keys)], pa.binary())
    hashes = hash_keys(names)[ranks]
    home = candidate(hashes, 1, workers, SEED)
    panes = np.arange(count) // case.tuples
    away = (rng.random((case.panes, keys)) < split)[panes, ranks]
    anywhere = rng.integers(0, workers, count).astype(np.int32)
    return case, RoutedStream(
        names,
        hashes,
        ranks,
        panes,
        np.where(away, anywhere, home).astype(np.int32),
        home,
        np.zeros(count, np.int32),
    )


def results(way: Today | Forwarding) -> Rows:
    assert way.emitted is not None
    rows = [row for table in way.emitted for row in table.to_pylist()]
    return Counter((row["window_end"], row["key"], row["n"], row["total"]) for row in rows)


def direct(case: ForwardingCase, stream: RoutedStream) -> Rows:
    """What a direct aggregation gives, for each window that ends with a pane of the stream."""
    rows: Rows = Counter()
    for last in range(case.panes):
        inside = (stream.panes <= last) & (stream.panes > last - SPAN)
        ranks, counts = np.unique(stream.ranks[inside], return_counts=True)
        for rank, n in zip(ranks.tolist(), counts.tolist(), strict=True):
            rows[(last + 1) * SLIDE, b"k%d" % rank, n, n * (rank % 1_000)] += 1
    return rows


@examples(30)
@given(
    st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(1, 12), st.sampled_from([0.0, 0.1, 0.5, 1.0])
)
def test_whatever_the_assignment_what_homes_and_reducers_give_is_what_a_direct_aggregation_gives(
    seed: int, workers: int, keys: int, split: float
) -> None:
    case, stream = routed(seed, workers=workers, keys=keys, split=split)
    plan = plan_of(case)
    today, homes = Today(plan, case, emitted=[]), Forwarding(plan, case, emitted=[])
    run_both(case, stream, today, homes)
    assert results(today) == direct(case, stream)
    assert results(homes) == direct(case, stream)


def test_a_home_that_hears_no_announcement_finishes_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    case, stream = routed(1, workers=3, keys=8, split=0.5)
    monkeypatch.setattr(forwarding, "_announced", lambda *_: [np.empty(0, np.uint64) for _ in range(3)])
    plan = plan_of(case)
    today, homes = Today(plan, case, emitted=[]), Forwarding(plan, case, emitted=[])
    run_both(case, stream, today, homes)
    assert results(homes) != direct(case, stream)


def test_hashing_announces_nothing_and_finishes_everything() -> None:
    result = row(
        ForwardingCase(law="zipf 1.0", keys=500, entrant="hashing", workers=4, tuples=2_000, measured=1)
    )
    assert result["finished_at_home"] == 1
    assert result["announcements_per_million"] == 0
    assert result["forwarding"]["partials"] == 0  # type: ignore[index]  # a row holds figures of several kinds
    assert result["today"]["partials"] > 0  # type: ignore[index]


def test_two_candidates_of_a_key_leave_work_for_reducers() -> None:
    """`row` itself compares the numbers of results of the two ways."""
    result = row(
        ForwardingCase(law="zipf 1.0", keys=500, entrant="d-choices", workers=4, tuples=2_000, measured=1)
    )
    assert 0 < result["finished_at_home"] < 1  # type: ignore[operator]
    assert result["forwarding"]["partials"] > 0  # type: ignore[index]


def test_the_page_shows_what_is_kept() -> None:
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    names = ("law", "keys", "entrant", "workers", "sources", "states")
    assert [[line[name] for name in names] for line in kept] == [
        [getattr(case, name) for name in names] for case in CASES
    ]
    page = PAGE.read_text(encoding="utf-8")
    for part, made in tables(kept).items():
        assert into_page(page, forwarding.ID, part, made) == page, (
            f"run python -m benchmarks.cores.forwarding_page: {part} is of other figures"
        )
