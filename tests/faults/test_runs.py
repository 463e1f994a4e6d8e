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
FOUND_BY = {
    "offsets that are gone are a loss": range(150, 160),
    "the epoch of a driver is checked": range(100, 110),
    "no two runs share a folder": range(10, 15),
    "frames have numbers without gaps": range(15, 25),
    "the end of a session is told": range(15, 25),
    "an idle partition follows no leap": range(70, 80),
    "states go back after an abort": range(45, 50),
    "a transaction never spans a rebalance": range(0, 5),
    "states come from what is committed": range(140, 150),
    "numbers of an aborted transaction are used again": range(175, 180),
    "merged offsets are remembered": range(318, 322),
    "a pane closes after all lanes": range(0, 3),
}
"""Seeds that find the product without this mend."""


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


@pytest.mark.parametrize("mend", sorted(FOUND_BY))
def test_the_product_without_a_mend_is_found(mend: str) -> None:
    assert mend in MENDS
    with without(mend):
        assert any(run(drawn(seed)).violations for seed in FOUND_BY[mend])
    assert not any(run(drawn(seed)).violations for seed in FOUND_BY[mend])


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
