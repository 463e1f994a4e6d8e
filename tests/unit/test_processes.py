"""A pool of processes ends with the process that made it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

OWNER = """
import time
from evenflow.host.processes import worker_processes

if __name__ == "__main__":
    pool = worker_processes(2)
    running = [pool.submit(time.sleep, 3600) for _ in range(2)]
    pool.submit(int).cancel()
    while not all(future.running() for future in running):
        time.sleep(0.01)
    print("both work", flush=True)
    time.sleep(3600)
"""


def test_worker_processes_end_with_a_process_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "owner.py"
    script.write_text(OWNER)
    owner = subprocess.Popen(
        [sys.executable, str(script)],
        env={"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert owner.stdout is not None
    assert owner.stdout.readline() == b"both work\n"
    owner.kill()
    owner.communicate(timeout=60)  # ends when the last process that has the pipes has ended
