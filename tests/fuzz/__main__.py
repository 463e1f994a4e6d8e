"""`python -m tests.fuzz [--seconds N] [TARGET ...]`: fuzz one target after the other. Exit 1 if an input
raised.

Inputs that raised stay in the target's folder of `corpus/`: from then on the tests replay them. Other inputs
that reached new code stay in `.fuzz/`, and the next run goes on from them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.fuzz.targets import CORPUS, folder_name
from tests.unit.test_hostile_bytes import DECODERS

_WORK = Path(".fuzz/corpus")
_RAISED = ("crash-", "timeout-", "oom-")


def main() -> int:
    """Returns the exit status."""
    words = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    words.add_argument("--seconds", type=int, default=10, help="for each target")
    words.add_argument("targets", nargs="*", metavar="TARGET", help="default: all of them")
    chosen = words.parse_args()
    unknown = set(chosen.targets) - set(DECODERS)
    if unknown:
        words.error(f"no such target: {', '.join(sorted(unknown))}; there are {', '.join(DECODERS)}")
    failed = [target for target in chosen.targets or DECODERS if not _fuzzed(target, chosen.seconds)]
    print(f"raised: {', '.join(failed)}" if failed else "no input raised", flush=True)
    return 1 if failed else 0


def _fuzzed(target: str, seconds: int) -> bool:
    """Whether no input raised."""
    name = folder_name(target)
    work, kept = _WORK / name, CORPUS / name
    work.mkdir(parents=True, exist_ok=True)
    for file in kept.glob("*"):
        shutil.copy(file, work)
    command = [sys.executable, "-m", "tests.fuzz.one", target, str(work), str(seconds)]
    done = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=False)
    last = [line for line in done.stderr.splitlines() if line.startswith(("#", "stat::", "Done"))][-1:]
    print(f"{target}: {last[0] if last else 'no figures'}", flush=True)
    if done.returncode == 0:
        return True
    print(done.stderr[-3_000:], file=sys.stderr, flush=True)
    kept.mkdir(parents=True, exist_ok=True)
    for file in work.iterdir():
        if file.name.startswith(_RAISED):
            shutil.move(file, kept / file.name)
    return False


if __name__ == "__main__":
    sys.exit(main())
