"""Child processes that never outlive this process. Each has its own process group and a log file.

A child dies with this process even if this process is killed with SIGKILL (PR_SET_PDEATHSIG). The kernel ties
that signal to the *thread* that started the child, so every child is started from one thread that lives as
long as the process. The prctl call is made by a tiny launcher that then becomes the command: running Python
between fork and exec would not be safe next to librdkafka's and Arrow's threads.

Signals go to the process group of the child, and only while its leader is not reaped. So a signal can never
hit another process that got the same pid. When the leader has ended, the rest of its group is killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from types import TracebackType

from evenflow.errors import ServiceError
from evenflow.settings.places import private_file, private_folder

# 1 is PR_SET_PDEATHSIG. If the parent has died before the call, the child has another parent by now and gets
# no signal: so the launcher ends itself. The empty mask undoes what the starting thread has blocked.
_LAUNCHER = """
import ctypes, os, signal, sys
parent, death_signal, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
ctypes.CDLL(None).prctl(1, death_signal)
if os.getppid() != parent:
    os._exit(1)
signal.pthread_sigmask(signal.SIG_SETMASK, [])
try:
    os.execvp(command[0], command)
except OSError as error:
    print(f"{command[0]}: {error.strerror}", file=sys.stderr)
    os._exit(127)
"""
_POLL_SECONDS = 0.02


class ChildProcess:
    """A running command. The output of both its streams is appended to `log`.

    death_signal: the signal that the child gets when this process disappears. keep_open: descriptors that the
    child inherits. env: None for the environment of this process.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        log: Path,
        name: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        death_signal: int = signal.SIGKILL,
        keep_open: Sequence[int] = (),
    ) -> None:
        self.name = name or Path(command[0]).name
        self.log = log
        self.command = list(command)
        self._reaping = Lock()
        launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid()), str(int(death_signal))]
        private_folder(log.parent)
        self._log_begin = log.stat().st_size if log.exists() else 0
        with open(log, "ab", opener=private_file) as output:
            self._popen: subprocess.Popen[bytes] = _start_in_lasting_thread(
                lambda: subprocess.Popen(
                    [*launcher, *self.command],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=None if env is None else dict(env),
                    cwd=cwd,
                    process_group=0,
                    pass_fds=tuple(keep_open),
                )
            )

    @property
    def pid(self) -> int:
        """Process id, which is also the id of its process group."""
        return self._popen.pid

    @property
    def alive(self) -> bool:
        """Whether the command still runs."""
        return self.returncode is None

    @property
    def returncode(self) -> int | None:
        """Exit status of the command, negative for a signal. None while the command runs."""
        # The order must hold: until the leader is reaped by wait(), the id of its group cannot be reused.
        with self._reaping:
            if self._popen.returncode is None and self._leader_has_ended():
                self._signal_group(signal.SIGKILL)
                self._popen.wait()
            return self._popen.returncode

    def wait(self, timeout: float) -> int:
        """Exit status of the command. Raises ServiceError if it has not ended within `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while (status := self.returncode) is None:
            if time.monotonic() >= deadline:
                raise ServiceError(f"{self.name} (pid {self.pid}) has not ended within {timeout:g} s")
            time.sleep(_POLL_SECONDS)
        return status

    def terminate(self, grace: float = 10.0) -> int:
        """Send SIGTERM to the leader, and after `grace` seconds SIGKILL to the group.
        Returns the exit status.
        """
        with self._reaping:
            if self._popen.returncode is None:
                with suppress(ProcessLookupError):
                    os.kill(self.pid, signal.SIGTERM)
        try:
            return self.wait(grace)
        except ServiceError:
            return self.kill()

    def kill(self) -> int:
        """Send SIGKILL to the group. Returns the exit status."""
        self.signal(signal.SIGKILL)
        return self.wait(10.0)

    def signal(self, number: int) -> None:
        """Send a signal to the process group. Nothing happens if the command has ended."""
        with self._reaping:
            if self._popen.returncode is None:
                self._signal_group(number)

    def output(self) -> str:
        """All that this command has written so far."""
        try:
            with self.log.open("rb") as file:
                file.seek(self._log_begin)
                return file.read().decode(errors="replace")
        except OSError:
            return ""

    def tail(self, lines: int = 20) -> str:
        """The last lines that this command has written."""
        return "\n".join(self.output().splitlines()[-lines:])

    def __enter__(self) -> ChildProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.terminate()

    def _leader_has_ended(self) -> bool:
        """Whether the leader has ended. It is not reaped: as long as it is a zombie, nobody else can get
        its group id.
        """
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _signal_group(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


class _LastingThread:
    """Runs calls one after another, in a daemon thread that lasts as long as the process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._calls: SimpleQueue[
            tuple[Callable[[], subprocess.Popen[bytes]], Future[subprocess.Popen[bytes]]]
        ]
        self._calls = SimpleQueue()
        Thread(target=self._run, name="evenflow-child-starter", daemon=True).start()

    def call(self, function: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        result: Future[subprocess.Popen[bytes]] = Future()
        self._calls.put((function, result))
        return result.result()

    def _run(self) -> None:
        while True:
            function, result = self._calls.get()
            try:
                result.set_result(function())
            except BaseException as error:
                # The error belongs to the caller. The thread must go on, or all children would be killed.
                result.set_exception(error)


_starter: _LastingThread | None = None
_starter_lock = Lock()


def _start_in_lasting_thread(function: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    global _starter
    with _starter_lock:
        # A fork copies the object but not its thread.
        if _starter is None or _starter.pid != os.getpid():
            _starter = _LastingThread()
    return _starter.call(function)
