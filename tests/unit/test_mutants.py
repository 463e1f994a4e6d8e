"""`python -m tests.mutants`: which test kills a mutant first, and which mutants no test kills."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.mutants import places

ROOT = Path(__file__).parents[2]
FARES = '''
def fare(distance, night):
    """A fare: 3 <= 4."""
    if distance > 10 or night:
        return distance * 2
    return distance


def unheld(hours):
    return hours + 1


def query(edge):
    return f"SELECT 1 WHERE {edge} <= 3"


def registered():
    def command():
        return 7
    return command


COMMAND = registered()
'''
TESTS = """
import time

from fares import COMMAND, fare, query, unheld


def test_far_and_slow():
    time.sleep(0.2)
    assert fare(11, False) == 22


def test_far():
    assert fare(11, False) == 22


def test_near():
    assert fare(10, False) == 10


def test_called_and_not_looked_at():
    unheld(1)


def test_text():
    assert query(2) == "SELECT 1 WHERE 2 <= 3"


def test_a_function_within_another_that_lives_already():
    assert COMMAND() == 7
"""


def test_every_change_is_in_code_that_runs_and_names_its_line(tmp_path: Path) -> None:
    file = tmp_path / "fares.py"
    file.write_text(FARES)
    assert [(place.line, place.name, place.words) for place in places(file)] == [
        (4, "fare", "a condition turned round"),
        (4, "fare", "Or -> And"),
        (4, "fare", "Gt -> GtE"),
        (4, "fare", "10 -> 11"),
        (5, "fare", "Mult -> FloorDiv"),
        (5, "fare", "2 -> 3"),
        (10, "unheld", "Add -> Sub"),
        (10, "unheld", "1 -> 2"),
        (14, "query", "' <= ' -> ' < '"),
        (19, "registered", "7 -> 8"),
    ]


def run_on_fares(tmp_path: Path, *words: str) -> str:
    """What the command prints about FARES and its tests."""
    (tmp_path / "fares.py").write_text(FARES)
    (tmp_path / "test_fares.py").write_text(TESTS)
    # As tests/conftest.py does. What is frozen is in no list of the garbage collector.
    (tmp_path / "conftest.py").write_text(
        "import gc\ndef pytest_collection_finish(session):\n    gc.freeze()\n"
    )
    command = [sys.executable, "-m", "tests.mutants", "fares.py", "--tests", "test_fares.py", *words]
    environment = {"PYTHONPATH": f"{ROOT}:{tmp_path}", "PATH": "/usr/bin:/bin"}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_the_cheapest_test_that_fails_is_the_killer_and_what_nobody_kills_is_named(tmp_path: Path) -> None:
    printed = run_on_fares(tmp_path)
    assert "10 mutants, 8 killed" in printed
    killers = {line.split("::")[1].split('"')[0] for line in printed.splitlines() if "::" in line}
    within = "test_a_function_within_another_that_lives_already"
    assert killers == {"test_far", "test_near", "test_text", within}
    survivors = [line for line in printed.splitlines() if line.startswith("survived")]
    assert len(survivors) == 2
    assert all("unheld" in line for line in survivors)


def test_where_the_time_is_over_no_further_test_and_no_mutant_is_tried(tmp_path: Path) -> None:
    printed = run_on_fares(tmp_path, "--minutes", "0").splitlines()
    header, *files = printed[printed.index("0 mutants, 0 killed") + 1 :]
    assert [line.split()[header.split().index("tests")] for line in files] == ["1"]
