"""What failed beside other tests runs once more alone, and only what fails twice is a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.second_run import MOST, main

_CASES = """
import pathlib
import pytest

@pytest.mark.xdist_group("group")
@pytest.mark.parametrize("n", range({cases}))
def test_one(n):
    runs = pathlib.Path(f"runs-{{n}}")
    before = len(runs.read_text()) if runs.exists() else 0
    runs.write_text("x" * (before + 1))
    assert before >= {failures}

def test_other():
    pass
"""


def outcome(folder: Path, *, cases: int, failures: int) -> tuple[int, list[int]]:
    """Exit status, and how often each case ran, of a suite whose cases fail so many times before they
    pass.
    """
    (folder / "test_it.py").write_text(_CASES.format(cases=cases, failures=failures))
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = xdist_group\n")
    status = main(["-q", "-n", "2", "--dist", "loadgroup", "test_it.py"], root=folder)
    return status, [len((folder / f"runs-{n}").read_text()) for n in range(cases)]


def test_a_suite_that_passes_runs_once(tmp_path: Path) -> None:
    assert outcome(tmp_path, cases=1, failures=0) == (0, [1])


def test_what_passes_alone_is_named_and_is_no_failure(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert outcome(tmp_path, cases=2, failures=1) == (0, [2, 2])
    last = capfd.readouterr().out.splitlines()[-1]
    assert last == "FAILED BESIDE OTHER TESTS, PASSED ALONE: test_it.py::test_one[0] test_it.py::test_one[1]"


def test_what_fails_alone_as_well_is_a_failure(tmp_path: Path) -> None:
    assert outcome(tmp_path, cases=1, failures=2) == (1, [2])


def test_many_failures_are_not_run_again(tmp_path: Path) -> None:
    assert outcome(tmp_path, cases=MOST + 1, failures=1) == (1, [1] * (MOST + 1))


def test_a_word_that_pytest_does_not_know_is_its_own_exit_status(tmp_path: Path) -> None:
    assert main(["--no-such-word"], root=tmp_path) == pytest.ExitCode.USAGE_ERROR
