"""Runs pytest, and what failed once more alone: `python -m tests.second_run -n 3 tests/pipeline ...`.

The suites of `make test` and `make test-more` run several tests at a time, each with a broker and Spark of
its own, and limits of time that hold alone were missed beside others on a slow machine. What fails alone as
well is a failure. What passes the second time is named, because it may be one of the product's that needs a
certain moment. More than a few failures are no matter of time, and are not run again.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

MOST = 6
"""Failures that are run again at most."""
_TESTS_FAILED = 1
"""pytest's exit status where tests ran and some failed."""
_GROUP = re.compile(r"@[\w-]+$")


def main(words: Sequence[str], *, root: Path = Path()) -> int:
    """Run pytest with these words, and return the exit status."""
    pytest = [sys.executable, "-m", "pytest"]
    status = subprocess.run([*pytest, "--cache-clear", *words], cwd=root).returncode
    if status != _TESTS_FAILED:
        return status
    names = failed(root)
    if not 0 < len(names) <= MOST:
        return status
    print(f"\nonce more, alone: {' '.join(names)}", flush=True)
    # All cases that are named run: shares are drawn among those of a whole suite.
    environment = os.environ | {"EVENFLOW_FAMILIES": "1"}
    again = subprocess.run([*pytest, "-n0", *names], cwd=root, env=environment).returncode
    if again == 0:
        print(f"FAILED BESIDE OTHER TESTS, PASSED ALONE: {' '.join(names)}", flush=True)
    return again


def failed(root: Path) -> list[str]:
    """The tests that failed in the last run of pytest in this folder, by the names that pytest takes."""
    file = root / ".pytest_cache" / "v" / "cache" / "lastfailed"
    if not file.exists():
        return []
    # pytest-xdist puts a test's group behind its name, as if it belonged to it.
    return sorted({_GROUP.sub("", name) for name in json.loads(file.read_text())})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
