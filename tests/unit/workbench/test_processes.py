import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from evenflow.errors import ServiceError
from workbench.local.processes import ChildProcess

TIMEOUT = 20.0


def python(code: str, folder: Path) -> ChildProcess:
    return ChildProcess([sys.executable, "-u", "-c", code], log=folder / "log")


def wait_until(condition: object, what: str) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def runs(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_child_ends_with_its_status_and_its_output_is_in_the_log(tmp_path: Path) -> None:
    child = python("import sys; print('one'); print('two', file=sys.stderr); sys.exit(3)", tmp_path)
    assert child.wait(TIMEOUT) == 3
    assert not child.alive
    assert child.tail() == "one\ntwo"
    assert child.tail(1) == "two"


def test_output_of_an_earlier_child_stays_in_the_log_and_is_not_ours(tmp_path: Path) -> None:
    python("print('first')", tmp_path).wait(TIMEOUT)
    child = python("print('second')", tmp_path)
    child.wait(TIMEOUT)
    assert child.output() == "second\n"
    assert (tmp_path / "log").read_text() == "first\nsecond\n"


def test_a_command_that_does_not_exist_ends_with_127(tmp_path: Path) -> None:
    child = ChildProcess(["/no/such/command"], log=tmp_path / "log")
    assert child.wait(TIMEOUT) == 127
    assert "/no/such/command" in child.tail()


def test_terminate_lets_a_child_end_in_its_own_way(tmp_path: Path) -> None:
    code = "import signal,sys; signal.signal(15, lambda *_: sys.exit(7)); print('ready'); signal.pause()"
    child = python(code, tmp_path)
    wait_until(lambda: "ready" in child.output(), "the child starts")
    assert child.terminate(TIMEOUT) == 7


def test_terminate_kills_a_child_that_does_not_listen(tmp_path: Path) -> None:
    code = "import signal; signal.signal(15, signal.SIG_IGN); print('ready')\nwhile True: signal.pause()"
    child = python(code, tmp_path)
    wait_until(lambda: "ready" in child.output(), "the child starts")
    assert child.terminate(0.1) == -signal.SIGKILL


def test_grandchildren_do_not_outlive_the_child(tmp_path: Path) -> None:
    code = "import subprocess; print(subprocess.Popen(['sleep', '600']).pid)"
    child = python(code, tmp_path)
    assert child.wait(TIMEOUT) == 0
    wait_until(lambda: not runs(int(child.output())), "the grandchild is killed")


def test_waiting_for_a_child_has_an_end(tmp_path: Path) -> None:
    with ChildProcess(["sleep", "600"], log=tmp_path / "log") as child:
        with pytest.raises(ServiceError, match="has not ended"):
            child.wait(0.05)
        assert child.alive
    assert not runs(child.pid)


def test_a_child_outlives_the_thread_that_asked_for_it(tmp_path: Path) -> None:
    children: list[ChildProcess] = []
    code = "import sys; print('ready'); sys.stdout.flush(); import time; time.sleep(600)"
    thread = threading.Thread(target=lambda: children.append(python(code, tmp_path)))
    thread.start()
    thread.join()
    (child,) = children
    wait_until(lambda: "ready" in child.output() or not child.alive, "the child starts")
    assert child.alive
    assert child.kill() == -signal.SIGKILL


def test_a_killed_parent_leaves_no_process(tmp_path: Path) -> None:
    code = (
        "import sys, signal; from pathlib import Path; from workbench.local.processes import ChildProcess\n"
        f"child = ChildProcess(['sleep', '600'], log=Path({str(tmp_path / 'log')!r}))\n"
        "print(child.pid, flush=True); signal.pause()"
    )
    root = Path(__file__).parents[3]
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=root)
    assert parent.stdout is not None
    with parent.stdout:
        pid = int(parent.stdout.readline())
        wait_until(
            lambda: Path(f"/proc/{pid}/comm").read_text() == "sleep\n", "the launcher becomes the command"
        )
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
    wait_until(lambda: not runs(pid), "the child is gone")
