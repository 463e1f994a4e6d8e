"""CPU time and memory by process while something is measured. CPU time moves far less from machine to machine
than wall time.

A meter watches trees of processes. Each tree has a label, and the Java processes in it may have a label of
their own. CPU time is cumulative: a process that has ended keeps what it used. A child that lived only
between two looks is counted through its parent, because the kernel adds what a waited-for child used to its
parent's figures.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType

from benchmarks.measuring.processes import Process, ProcessTable, ancestors, machine_seconds

Used = dict[str, float]
"""CPU seconds by label. `COMPILERS` is a part of the JVM's, and `MACHINE` is of all processes: neither is
in `total`.
"""
COMPILERS = "jvm compilers"
MACHINE = "machine"
_NOT_SUMMED = (COMPILERS, MACHINE)
_EVERY = 0.5
_Key = tuple[int, int]


@dataclass(frozen=True)
class _Labels:
    """The labels of the processes of one tree."""

    root: int
    """Process id of the tree's root."""
    itself: str
    """Label of the root."""
    below: str
    """Label of the processes below it."""
    java: str | None
    """Label of a process named java. None: as the others."""

    def label(self, process: Process) -> str:
        if self.java is not None and process.name == "java":
            return self.java
        return self.itself if process.pid == self.root else self.below


class Ledger:
    """What watched processes have used so far. It takes in one look at the process table after the other."""

    def __init__(self) -> None:
        self._roots: dict[int, _Labels] = {}
        self._processes: dict[_Key, Process] = {}
        self._labels: dict[_Key, str] = {}
        self._parents: dict[_Key, _Key] = {}
        self._alive: set[_Key] = set()

    def watch(self, pid: int, label: str, *, below: str | None = None, java: str | None = None) -> None:
        """Count this process and those below it. Labels `below` and `java` are used if they are given."""
        self._roots[pid] = _Labels(pid, label, below or label, java)

    def look(self, processes: Mapping[int, Process]) -> None:
        """Take in a look at the process table."""
        self._alive = set()
        for process in processes.values():
            line = ancestors(process.pid, processes)
            root = next((pid for pid in line if pid in self._roots), None)
            # A pid alone may come again for another process.
            key = (process.pid, process.started)
            # A process whose ancestors have ended has no known root any more, but stays watched.
            if root is None and key not in self._processes:
                continue
            self._alive.add(key)
            self._processes[key] = process
            if root is not None:
                self._labels[key] = self._roots[root].label(process)
            if process.parent in processes:
                parent = processes[process.parent]
                self._parents[key] = (parent.pid, parent.started)

    def used(self) -> Used:
        """CPU seconds by label since each process began."""
        ended_children: dict[_Key, list[_Key]] = {}
        for key in self._processes.keys() - self._alive:
            if key in self._parents:
                ended_children.setdefault(self._parents[key], []).append(key)

        def charged(parent: _Key) -> float:
            """What the children that have ended, and those below them, had used when they were last seen.
            The kernel charges that to the parent. A child may have ended before a look saw what its own
            children were charged to it with.
            """
            return sum(
                self._processes[child].own + max(self._processes[child].reaped, charged(child))
                for child in ended_children.get(parent, ())
            )

        seconds: Used = {}
        for key, process in self._processes.items():
            # Children that no look has seen: what the kernel charged to this parent beyond the children seen
            # here.
            missed = max(0.0, process.reaped - charged(key))
            label = self._labels[key]
            seconds[label] = seconds.get(label, 0.0) + process.own + missed
            # The broker is a JVM, too, but the compilers' share is told of Spark's JVM only.
            if process.compilers and label != "broker":
                seconds[COMPILERS] = seconds.get(COMPILERS, 0.0) + process.compilers
        return seconds

    def memory(self) -> dict[str, int]:
        """Bytes in memory by label, of the processes of the last look."""
        resident: dict[str, int] = {}
        for key in self._alive:
            label = self._labels[key]
            resident[label] = resident.get(label, 0) + self._processes[key].resident
        return resident


class CpuMeter:
    """Looks at the processes twice a second, in a thread of its own, and says what was used between two
    moments, and held at most.
    """

    def __init__(
        self,
        look: Callable[[], Mapping[int, Process]] | None = None,
        machine: Callable[[], float] = machine_seconds,
    ) -> None:
        self._look = look or ProcessTable().read
        self._machine = machine
        self._ledger = Ledger()
        self._series: list[tuple[float, Used]] = []
        self._held: list[tuple[float, dict[str, int]]] = []
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cpu-meter", daemon=True)

    def watch(
        self, pid: int | None, label: str, *, below: str | None = None, java: str | None = None
    ) -> None:
        """Count this process, and all below it, from now on.

        `below`: label of the processes below it. `java`: label of the Java processes among them.
        """
        assert pid is not None, f"{label} does not run"
        with self._lock:
            self._ledger.watch(pid, label, below=below, java=java)

    def now(self) -> float:
        """Look at the processes. Returns the moment (seconds since 1970), which `between` takes."""
        with self._lock:
            self._ledger.look(self._look())
            moment = time.time()
            self._series.append((moment, self._ledger.used() | {MACHINE: self._machine()}))
            self._held.append((moment, self._ledger.memory()))
        return moment

    def between(self, begin: float, end: float) -> Used:
        """CPU seconds by label between two moments. Between two looks, half a second apart, use is taken
        as even.
        """
        with self._lock:
            before, after = self._at(begin), self._at(end)
        grown = {label: seconds - before.get(label, 0.0) for label, seconds in after.items()}
        return {label: max(0.0, seconds) for label, seconds in grown.items()}

    def most_held(self, begin: float, end: float) -> dict[str, int]:
        """Most bytes in memory between two moments by label, as of the looks between them."""
        most: dict[str, int] = {}
        with self._lock:
            for moment, held in self._held:
                if begin <= moment <= end:
                    most |= {label: max(size, most.get(label, 0)) for label, size in held.items()}
        return most

    def _at(self, moment: float) -> Used:
        place = bisect_left(self._series, moment, key=lambda entry: entry[0])
        # After the last look nothing is known, so its figures stand.
        if place == len(self._series):
            return self._series[-1][1] if self._series else {}
        after, used = self._series[place]
        if place == 0:
            return used
        before, base = self._series[place - 1]
        part = (moment - before) / (after - before) if after > before else 1.0
        return {
            label: base.get(label, 0.0) + part * (value - base.get(label, 0.0))
            for label, value in used.items()
        }

    def _run(self) -> None:
        while not self._stop.wait(_EVERY):
            self.now()

    def __enter__(self) -> CpuMeter:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()


def total(used: Used) -> float:
    """CPU seconds of all processes together."""
    return sum(seconds for label, seconds in used.items() if label not in _NOT_SUMMED)


def occupancy(used: Used, seconds: float) -> dict[str, float]:
    """How many cores were busy with what is measured, and how many with anything else on this machine
    meanwhile.
    """
    ours = total(used)
    cores = {"cores_used": round(ours / seconds, 2)}
    if MACHINE in used:
        cores["cores_used_by_others"] = round(max(0.0, used[MACHINE] - ours) / seconds, 2)
    return cores


def budget(used: Used, *, tuples: int, rows: int | None = None) -> dict[str, object]:
    """CPU seconds per million tuples and per million result rows by process, and the compilers' share of the
    JVM.

    A CPU second per million is a microsecond apiece. All CPU time is divided by `tuples`, and again by
    `rows`.
    """
    costs: dict[str, object] = {"cpu_seconds_per_million_tuples": _per_million(used, tuples)}
    if rows:
        costs["cpu_seconds_per_million_rows"] = _per_million(used, rows)
    jvm = sum(seconds for label, seconds in used.items() if label.endswith("_jvm"))
    if jvm:
        costs["compilers_share_of_jvm"] = round(used.get(COMPILERS, 0.0) / jvm, 3)
    return costs


def _per_million(used: Used, number: int) -> dict[str, float]:
    each = {label: seconds for label, seconds in used.items() if label not in _NOT_SUMMED and seconds > 0}
    return {
        label: round(1e6 * seconds / number, 2) for label, seconds in {"all": total(used), **each}.items()
    }
