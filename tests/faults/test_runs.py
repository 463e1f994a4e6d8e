"""The simulator finds nothing in the product as it is, finds what is taken out of it, and says the same each time."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import pytest

from tests.faults.__main__ import Total, runs
from tests.faults.mutations import MENDS, without
from tests.faults.run import run
from tests.faults.schedule import drawn
from tests.faults.shrink import kind_of, shrunk

_EACH = 250
SEEDS_FROM = {
    "offsets that are gone are a loss": 150,
    "the epoch of a driver is checked": 100,
    "frames have numbers without gaps": 15,
    "an idle partition follows no leap": 70,
    "states go back after an abort": 40,
    "a transaction never spans a rebalance": 0,
    "states come from what is committed": 460,
    "numbers of an aborted transaction are used again": 170,
    "a pane closes after all lanes": 0,
}
"""Where to begin to look for a seed that finds the product without this mend. Any change of the product moves them."""
RARE = {
    "no two runs share a folder",
    "the end of a session is told",
    "merged offsets are remembered",
    "tuples ahead of the clock are rejected",
    "marks are told again after an abort",
    "the beginning is locked",
}
"""Mends that a few hundred seeds did not show when they were taken out, or that nobody has looked for long enough."""
_MOST_SEEDS = 2_000


def checked(total: Total) -> None:
    assert not total.failed, "; ".join(f"seed {seed}: {what}" for seed, what in sorted(total.failed.items()))


@pytest.mark.parametrize("first", range(0, 2_000, _EACH))
def test_runs_with_faults_give_every_result_or_say_what_is_lost(first: int) -> None:
    checked(runs(first, _EACH))


@pytest.mark.long
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("first", range(2_000, 20_000, 2_000))
def test_many_more_runs_with_faults_give_every_result_or_say_what_is_lost(first: int) -> None:
    checked(runs(first, 2_000))


@pytest.mark.parametrize("mend", sorted(SEEDS_FROM))
def test_the_product_without_a_mend_is_found(mend: str) -> None:
    first = SEEDS_FROM[mend]
    with without(mend):
        failing = (seed for seed in range(first, first + _MOST_SEEDS) if run(drawn(seed)).violations)
        found = next(failing, None)
    assert found is not None
    assert not run(drawn(found)).violations


def test_every_mend_is_tried_or_known_to_be_hard_to_find() -> None:
    assert set(SEEDS_FROM) | RARE == set(MENDS)


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
