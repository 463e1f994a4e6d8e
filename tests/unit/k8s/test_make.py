"""What `make test-k8s` would run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[3]


def commands(**environment: str) -> str:
    """Its commands; none of them runs."""
    # `make test` has flags and variables of its own, which it hands on.
    done = subprocess.run(
        ["make", "--dry-run", "test-k8s"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]} | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_a_cluster_one_is_built_and_takes_all_suites() -> None:
    assert "tests.ground prepare k8s" in commands()
    assert commands().rstrip().endswith("pytest tests/k8s")


def test_a_cluster_that_is_there_takes_the_suites_of_the_manifests_and_nothing_is_built() -> None:
    there = commands(EVENFLOW_TEST_KUBECONFIG="/nowhere/kubeconfig")
    assert "tests.ground" not in there
    assert there.rstrip().endswith("pytest tests/k8s/test_manifests.py tests/k8s/test_production.py")
