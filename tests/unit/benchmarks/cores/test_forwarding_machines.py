"""What travels between machines with forwarding: counts that must hold, and the page of the kept ones."""

from __future__ import annotations

import json

import pytest

from benchmarks.cores import forwarding
from benchmarks.cores.forwarding_machines import COUNTED, KEPT, machines_table, row
from benchmarks.cores.forwarding_page import KEPT as KEPT_OF_CORES
from benchmarks.cores.forwarding_page import PAGE
from benchmarks.cores.forwarding_ways import ForwardingCase
from benchmarks.pages.tables import into_page

NAMES = ("law", "keys", "entrant", "workers")


def small(entrant: str) -> ForwardingCase:
    """A short stream of few keys."""
    return ForwardingCase(law="zipf 1.0", keys=500, entrant=entrant, workers=8, tuples=4_000, measured=1)


def test_with_hashed_homes_no_partial_leaves_its_machine_and_without_forwarding_all_but_one_of_m_do() -> None:
    result = row(small("hashing"))
    assert result["on"]["partials_away"] == [0, 0]
    assert result["off"]["partials_away"] == pytest.approx([1 / 2, 7 / 8], abs=0.05)
    assert result["on"]["partials"] == result["off"]["partials"]
    for at in range(2):
        assert result["on"]["bytes_away"][at] < result["off"]["bytes_away"][at], "marks travel all the same"


def test_of_keys_with_two_candidates_some_partials_travel_with_forwarding_and_fewer_than_without() -> None:
    result = row(small("d-choices"))
    for at in range(2):
        assert 0 < result["on"]["partials_away"][at] < result["off"]["partials_away"][at]


def test_the_page_shows_what_is_kept_of_the_same_partials_as_in_the_cores() -> None:
    kept, cores = (json.loads(file.read_text(encoding="utf-8")) for file in (KEPT, KEPT_OF_CORES))
    assert [[line[name] for name in NAMES] for line in kept] == [
        [getattr(case, name) for name in NAMES] for case in COUNTED
    ]
    page = PAGE.read_text(encoding="utf-8")
    assert into_page(page, forwarding.ID, "machines", machines_table(kept)) == page, (
        "run python -m benchmarks.cores.forwarding_machines: the table is of other figures"
    )
    for line, of_cores in zip(kept, cores, strict=False):
        assert line["off"]["partials"] == line["on"]["partials"]
        assert line["off"]["partials"] == pytest.approx(of_cores["today"]["partials"] / 1e6, abs=1e-5)
