"""CPU time by process: nothing is counted twice, and what lived between two looks is counted through its
parent.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.measuring import processes
from benchmarks.measuring.cpu import COMPILERS, MACHINE, CpuMeter, Ledger, budget, occupancy, total
from benchmarks.measuring.processes import Process, ProcessTable

ROOT, CHILD, OTHER = 100, 200, 300


def table(*processes: Process) -> dict[int, Process]:
    return {process.pid: process for process in processes}


def process(
    pid: int, own: float, *, parent: int = ROOT, reaped: float = 0.0, name: str = "python", started: int = 1
) -> Process:
    return Process(pid, parent, started, name, own, reaped)


def watching(**labels: str) -> Ledger:
    ledger = Ledger()
    ledger.watch(ROOT, "root", **labels)
    return ledger


def test_children_are_counted_with_their_root_and_strangers_are_not() -> None:
    ledger = watching()
    ledger.look(table(process(ROOT, 1.0, parent=1), process(CHILD, 2.0), process(OTHER, 9.0, parent=1)))
    assert ledger.used() == {"root": 3.0}


def test_memory_is_that_of_the_processes_that_live_and_the_most_of_a_stretch_of_time() -> None:
    def holding(pid: int, resident: int, parent: int = ROOT) -> Process:
        return Process(pid, parent, 1, "python", 1.0, 0.0, resident=resident)

    looks = iter(
        [
            table(holding(ROOT, 10, parent=1), holding(CHILD, 5), holding(OTHER, 99, parent=1)),
            table(holding(ROOT, 12, parent=1)),
            table(holding(ROOT, 40, parent=1)),
        ]
    )
    meter = CpuMeter(lambda: next(looks), lambda: 0.0)
    meter.watch(ROOT, "root", below="below")
    first, second, third = meter.now(), meter.now(), meter.now()
    assert meter.most_held(first, second) == {"root": 12, "below": 5}
    assert meter.most_held(second, third) == {"root": 40}


def test_this_process_holds_memory() -> None:
    assert ProcessTable().read()[os.getpid()].resident > 1_000_000


def test_a_child_that_ended_is_counted_once() -> None:
    ledger = watching()
    ledger.look(table(process(ROOT, 1.0, parent=1), process(CHILD, 2.0)))
    ledger.look(table(process(ROOT, 1.0, parent=1, reaped=2.5)))
    assert ledger.used() == {"root": pytest.approx(3.5)}, "2.0 seen, 0.5 after the last look"


def test_a_child_and_its_own_child_that_end_between_two_looks_are_counted_once() -> None:
    ledger = watching()
    living = process(ROOT, 1.0, parent=1), process(CHILD, 2.0), process(CHILD + 1, 30.0, parent=CHILD)
    ledger.look(table(*living))
    assert ledger.used() == {"root": 33.0}
    ledger.look(table(process(ROOT, 1.0, parent=1, reaped=32.0)))
    assert ledger.used() == {"root": 33.0}
    ledger.look(table(process(ROOT, 1.0, parent=1, reaped=35.0)))
    assert ledger.used() == {"root": 36.0}, "another child, which no look has seen"


def test_a_child_that_lived_between_two_looks_is_counted() -> None:
    ledger = watching()
    ledger.look(table(process(ROOT, 1.0, parent=1)))
    ledger.look(table(process(ROOT, 1.0, parent=1, reaped=4.0)))
    assert ledger.used() == {"root": 5.0}


def test_what_a_tree_used_stays_when_its_root_has_ended() -> None:
    ledger = watching()
    ledger.look(table(process(ROOT, 1.0, parent=1), process(CHILD, 2.0)))
    ledger.look({})
    assert ledger.used() == {"root": 3.0}


def test_an_orphan_is_still_counted() -> None:
    ledger = watching()
    ledger.look(table(process(ROOT, 1.0, parent=1), process(CHILD, 2.0)))
    ledger.look(table(process(CHILD, 5.0, parent=1)))
    assert ledger.used() == {"root": 6.0}


def test_a_pid_that_came_again_is_another_process() -> None:
    ledger = watching()
    ledger.look(table(process(ROOT, 1.0, parent=1), process(CHILD, 2.0)))
    ledger.look(table(process(ROOT, 1.0, parent=1, reaped=2.0), process(CHILD, 3.0, started=2)))
    assert ledger.used() == {"root": 6.0}


def test_a_watched_process_below_another_has_its_own_label() -> None:
    ledger = watching()
    ledger.watch(CHILD, "child")
    ledger.look(table(process(ROOT, 1.0, parent=1), process(CHILD, 2.0), process(OTHER, 4.0, parent=CHILD)))
    assert ledger.used() == {"root": 1.0, "child": 6.0}


def test_java_and_what_is_below_have_their_labels_also_after_an_exec() -> None:
    ledger = watching(below="workers", java="jvm")
    ledger.look(table(process(ROOT, 1.0, parent=1), process(CHILD, 0.5, name="bash")))
    ledger.look(
        table(
            process(ROOT, 1.0, parent=1), process(CHILD, 2.0, name="java"), process(OTHER, 4.0, parent=CHILD)
        )
    )
    assert ledger.used() == {"root": 1.0, "jvm": 2.0, "workers": 4.0}


def test_between_two_moments_lies_what_was_used_there() -> None:
    looks = iter([table(process(ROOT, 1.0)), table(process(ROOT, 4.0))])
    meter = CpuMeter(lambda: next(looks), lambda: 0.0)
    meter.watch(ROOT, "root")
    begin, end = meter.now(), meter.now()
    assert meter.between(begin, end) == {"root": 3.0, MACHINE: 0.0}
    assert meter.between(begin, (begin + end) / 2)["root"] == pytest.approx(1.5, abs=0.5)


def test_the_budget_divides_by_tuples_and_rows_and_keeps_the_compilers_out_of_the_sum() -> None:
    result = budget({"spark_jvm": 3.0, "broker": 1.0, COMPILERS: 1.5}, tuples=2_000_000, rows=4_000_000)
    assert result == {
        "cpu_seconds_per_million_tuples": {"all": 2.0, "spark_jvm": 1.5, "broker": 0.5},
        "cpu_seconds_per_million_rows": {"all": 1.0, "spark_jvm": 0.75, "broker": 0.25},
        "compilers_share_of_jvm": 0.5,
    }


def test_occupancy_tells_the_neighbours_apart() -> None:
    result = occupancy({"spark_jvm": 10.0, COMPILERS: 5.0, MACHINE: 16.0}, 10.0)
    assert result == {"cores_used": 1.0, "cores_used_by_others": 0.6}


def _stat(folder: Path, name: str, ticks: int) -> None:
    """A file `stat` as the kernel writes it: who runs, and the CPU time in user mode."""
    folder.mkdir(parents=True, exist_ok=True)
    after_the_name = ["S", "1", *["0"] * 9, str(ticks), *["0"] * 20]
    (folder / "stat").write_text(f"1 ({name}) {' '.join(after_the_name)}", encoding="ascii")


def test_the_compilers_of_a_jvm_keep_their_time_when_they_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_PROC", str(tmp_path))
    kernel, threads = ProcessTable(), tmp_path / "77" / "task"
    _stat(tmp_path / "77", "java", 900)
    _stat(threads / "78", "C2 CompilerThread0"[:15], 200)
    _stat(threads / "79", "Reference Handl", 100)
    assert kernel.read()[77].compilers == pytest.approx(200 * processes._TICK)
    _stat(threads / "78", "C2 CompilerThread0"[:15], 300)
    kernel.read()
    (threads / "78" / "stat").unlink()
    assert kernel.read()[77].compilers == pytest.approx(300 * processes._TICK)
    _stat(threads / "80", "C1 CompilerThread0"[:15], 50)
    assert max(kernel.read()[77].compilers for _ in range(40)) == pytest.approx(350 * processes._TICK)


def test_the_kernel_tells_what_a_short_lived_child_used() -> None:
    meter = CpuMeter()
    meter.watch(os.getpid(), "tests", below="below")
    begin = meter.now()
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-S", "-c", burn], check=True)
    used = meter.between(begin, meter.now())
    assert 0.28 <= total(used) <= used[MACHINE] + 0.1
    assert ProcessTable().read()[os.getpid()].parent == os.getppid()
