"""promtool (Debian's) checks the configuration and the rules, and runs the tests of every alert."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.more]
FOLDER = Path(__file__).parents[3] / "monitoring" / "prometheus"


@pytest.mark.parametrize(
    "words",
    [("check", "config", "prometheus.yml"), ("test", "rules", "rules.test.yml")],
    ids=["config", "alerts"],
)
def test_promtool_agrees(words: tuple[str, ...]) -> None:
    promtool = shutil.which("promtool")
    assert promtool, "no promtool: `make test-more` installs Debian's package prometheus"
    done = subprocess.run(
        [promtool, *words], cwd=FOLDER, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS" in done.stdout + done.stderr
