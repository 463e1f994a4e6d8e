"""`copy-secrets.sh` with a kubectl that notes what it is asked for."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "k8s/overlays/production/copy-secrets.sh"
KUBECTL = """#!/bin/sh
echo "$@" >> "$CALLS"
case "$*" in
    *" get secret "*) echo content ;;
    *" create secret "*) for file in "${7#--from-file=}"/*; do echo "file ${file##*/}" >> "$CALLS"; done ;;
    *) cat > /dev/null ;;
esac
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which each call stands, on a line of its own."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "kubectl"
    program.write_text(KUBECTL)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path / "calls"


def run(*words: str) -> int:
    return subprocess.run(["sh", str(SCRIPT), *words], capture_output=True, timeout=60).returncode


def copied(calls: Path) -> dict[str, set[str]]:
    """Secret -> its keys that were read."""
    result: dict[str, set[str]] = {}
    for line in calls.read_text().splitlines():
        if " get secret " in line:
            name, key = line.split(" get secret ")[1].split(" ", 1)
            result.setdefault(name, set()).add(key.split('"')[1])
    return result


_CA = {"kafka-cluster-ca-cert": {"ca.crt"}}
_PARTS = ("partitioner", "combiner", "reducer", "controller")


def _users(query: str, *parts: str) -> dict[str, set[str]]:
    return {f"{query}-{part}": {"user.crt", "user.key"} for part in parts}


def test_what_the_parts_need_is_copied_and_not_what_may_read_every_topic(calls: Path) -> None:
    assert run() == 0
    assert copied(calls) == _CA | _users("evenflow", *_PARTS)


def test_the_secret_of_verify_is_copied_when_it_is_asked_for(calls: Path) -> None:
    assert run("--tools") == 0
    assert copied(calls) == _CA | _users("evenflow", *_PARTS, "tools")


def test_namespaces_and_query_may_be_others_and_nothing_stays_on_the_disk(
    calls: Path, tmp_path: Path
) -> None:
    assert run("--tools", "there", "here", "orders") == 0
    assert copied(calls) == _CA | _users("orders", *_PARTS, "tools")
    lines = calls.read_text().splitlines()
    read = [line for line in lines if " get secret " in line]
    made = [line for line in lines if " create secret " in line]
    assert all(line.startswith("--namespace there ") for line in read)
    assert all(line.startswith("--namespace here ") for line in made)
    assert len(made) == lines.count("apply --filename -") == 6
    assert {line for line in lines if line.startswith("file ")} == {
        "file ca.crt",
        "file user.crt",
        "file user.key",
    }
    assert {one.name for one in tmp_path.iterdir()} == {"bin", "calls"}


def test_a_slip_of_the_pen_copies_nothing(calls: Path) -> None:
    assert run("--tool") == 2
    assert not calls.exists()
