"""The simulator finds nothing in the product as it is, finds what is taken out of it, and says the same
each time.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys

import pytest

from tests.faults import ledger
from tests.faults.__main__ import Total, runs
from tests.faults.mutations import MENDS, shows, without
from tests.faults.run import run
from tests.faults.schedules.drawing import drawn
from tests.faults.schedules.focus import FOCUSES
from tests.faults.schedules.shrink import kind_of, shrunk

_FEW = 250
"""Seeds of `make test`. docs/correctness.md says which mends they notice, and which need a focus or more
seeds.
"""
_EACH = 790
_MOST_SEEDS = 200
"""Of the focus of a mend. One of them must find the product without it. The rarest is found by three of
them.
"""


_RARE = {
    "only the owner of the slowest partition takes others in": _MOST_SEEDS,
    "a takeover tells every worker where it begins": 800,
}
"""Mends that so few seeds show that finding one takes a minute, with the number of seeds that are tried."""


FAILED = {
    2767: "a query began, and took in partitions that were added, while an instance looked at its topic",
}
"""Seeds that failed once, beyond those that `make test` runs, with what they showed."""


def checked(total: Total) -> None:
    assert not total.failed, "; ".join(f"seed {seed}: {what}" for seed, what in sorted(total.failed.items()))


def test_runs_with_faults_give_every_result_or_say_what_is_lost() -> None:
    checked(runs(0, _FEW))


@pytest.mark.parametrize("seed", FAILED)
def test_a_seed_that_failed_once_gives_every_result(seed: int) -> None:
    checked(runs(seed, 1))


@pytest.mark.long
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("first", range(_FEW, 20_000, _EACH))
def test_many_more_runs_with_faults_give_every_result_or_say_what_is_lost(first: int) -> None:
    checked(runs(first, _EACH))


@pytest.mark.family
@pytest.mark.parametrize(
    "mend", [pytest.param(mend, marks=[pytest.mark.more] if mend in _RARE else []) for mend in MENDS]
)
def test_the_product_without_a_mend_is_found(mend: str) -> None:
    schedules = [drawn(seed, focus=MENDS[mend].focus) for seed in range(_RARE.get(mend, _MOST_SEEDS))]
    with without(mend):
        result = next((schedule for schedule in schedules if shows(mend, schedule)), None)
    assert result is not None
    assert not run(result).violations


def test_each_focus_looks_for_a_mend() -> None:
    assert {mend.focus for mend in MENDS.values()} == set(FOCUSES)


def test_the_documentation_says_what_has_run_and_which_seeds_show_each_mend() -> None:
    assert ledger.PAGE.read_text() == ledger.page(), (
        "python -c 'from tests.faults import ledger; ledger.write_page()'"
    )


def test_each_row_of_what_has_run_counts_its_seeds() -> None:
    for row in ledger.rows():
        first, last = map(int, row.seeds.split("-"))
        assert row.runs == last - first + 1
        assert row.focus in ("", *FOCUSES)


def test_the_input_of_a_tenth_of_the_seeds_grows() -> None:
    growing = sum(any(f.kind == "add partitions" for f in drawn(seed).faults) for seed in range(2_000))
    assert growing >= 200


HISTORIES = """
from tests.faults.test_runs import digest
print(digest(range({first}, {last})))
"""


def digest(seeds: range) -> str:
    """A digest of the histories of these seeds."""
    lines = [line for seed in seeds for line in run(drawn(seed)).history.lines()]
    return hashlib.sha256("\n".join(line for line in lines if "process " not in line).encode()).hexdigest()


def test_a_seed_has_the_same_history_in_another_process() -> None:
    code = HISTORIES.format(first=20, last=40)
    other = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert digest(range(20, 40)) == other


def test_a_failing_run_is_shrunk_to_one_that_fails_in_the_same_way() -> None:
    with without("a transaction never spans a rebalance"):
        outcome = next(o for o in (run(drawn(seed)) for seed in range(10)) if o.violations)
        small = shrunk(outcome)
    assert kind_of(small) == kind_of(outcome)
    assert len(small.schedule.records) < len(outcome.schedule.records)
    assert len(small.schedule.faults) <= len(outcome.schedule.faults)
