"""Runs the simulator by hand: `python -m tests.faults --seeds 1000 --from 0`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

_AT_ONCE = 50


@dataclass
class Total:
    """What many runs came to. failed: seed -> what is violated."""

    runs: int = 0
    events: int = 0
    calls: int = 0
    noticed: int = 0
    seconds: float = 0.0
    struck: Counter[str] = field(default_factory=Counter)
    failed: dict[int, str] = field(default_factory=dict)

    def add(self, other: Total) -> None:
        """Add the runs of another process."""
        for name in ("runs", "events", "calls", "noticed", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.struck += other.struck
        self.failed |= other.failed


def runs(first: int, count: int, mutation: str | None = None, focus: str | None = None) -> Total:
    """Run these seeds, one after the other. mutation: name of the mend that is taken out. focus: of all of
    them.
    """
    from tests.faults.mutations import without
    from tests.faults.run import run
    from tests.faults.schedules.drawing import drawn

    total = Total()
    began = time.process_time()
    with without(mutation):
        for seed in range(first, first + count):
            outcome = run(drawn(seed, focus=focus))
            total.runs += 1
            total.events += outcome.events
            total.calls += outcome.calls
            total.noticed += bool(outcome.noticed)
            total.struck += outcome.struck
            if outcome.violations:
                total.failed[seed] = outcome.violations[0]
    total.seconds = time.process_time() - began
    return total


def main(words: list[str] | None = None) -> int:
    """Run seeds, or show one. Returns 1 if a run failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000, help="how many seeds to run")
    parser.add_argument(
        "--from", dest="first", type=int, help="the first seed (0; with --write the next new one)"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="how many run at once")
    parser.add_argument("--show", type=int, metavar="SEED", help="print the history of one seed")
    parser.add_argument("--whole", action="store_true", help="with --show: do not shrink a failing run")
    parser.add_argument("--without", metavar="MEND", help="take one mend out (see mutations.py)")
    parser.add_argument("--focus", metavar="NAME", help="look there alone (see focus.py)")
    parser.add_argument(
        "--table", action="store_true", help="print which seeds show each mend, or the one of --without"
    )
    parser.add_argument("--first-only", action="store_true", help="stop at the first failing seeds")
    parser.add_argument("--write", action="store_true", help="note what came of it for docs/correctness.md")
    chosen = parser.parse_args(words)
    os.environ.setdefault("POLARS_MAX_THREADS", "1")  # read when Polars is imported, which is later
    if chosen.show is not None:
        return show(chosen.show, whole=chosen.whole, mutation=chosen.without, focus=chosen.focus)
    if chosen.table:
        return show_table(chosen.seeds, chosen.without, chosen.processes, write=chosen.write)
    if chosen.write and chosen.without:
        parser.error("--write notes runs of the product as it is: leave --without out")
    return run_seeds(chosen)


def run_seeds(chosen: argparse.Namespace) -> int:
    """Run the chosen seeds. An interrupt ends it, and the seeds up to then count."""
    from tests.faults import ledger

    commit = ledger.committed() if chosen.write else ""
    default = ledger.next_seed() if chosen.write and not chosen.focus else 0
    first = default if chosen.first is None else chosen.first
    began, total, last = time.monotonic(), Total(), first + chosen.seeds
    with _pool(chosen.processes) as pool:
        waiting = [
            pool.submit(runs, at, min(_AT_ONCE, last - at), chosen.without, chosen.focus)
            for at in range(first, last, _AT_ONCE)
        ]
        try:
            for future in waiting:
                total.add(future.result())
                if chosen.first_only and total.failed:
                    break
        except KeyboardInterrupt:
            print("interrupted: what has run counts", file=sys.stderr)
        pool.shutdown(cancel_futures=True)
    say(total, time.monotonic() - began)
    if chosen.write and total.runs:
        ledger.note_runs(commit, first, total.runs, len(total.failed), chosen.focus)
    return 1 if total.failed else 0


def _pool(processes: int) -> ProcessPoolExecutor:
    """Processes that leave an interrupt to this one."""
    return ProcessPoolExecutor(processes, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN))


def say(total: Total, seconds: float) -> None:
    """Print what the runs came to."""
    print(
        f"{total.runs} runs, {total.events} events, {total.calls} calls to the broker in {seconds:.1f} s"
        f" ({total.runs / max(seconds, 1e-9) * 60:.0f} runs a minute;"
        f" {1000 * total.seconds / max(1, total.runs):.1f} ms of one core a run); in {total.noticed} a loss"
        " was noticed"
    )
    print("faults:", ", ".join(f"{kind} {count}" for kind, count in total.struck.most_common()) or "none")
    for seed, what in sorted(total.failed.items()):
        print(f"FAILED seed {seed}: {what}")
    print(f"{len(total.failed)} failed" + ("; see one with --show SEED" if total.failed else ""))


def show_table(seeds: int, only: str | None, processes: int, *, write: bool) -> int:
    """Print which seeds show each mend, each taken out of so many runs of its focus. only: this mend
    alone.
    """
    from tests.faults import ledger
    from tests.faults.mutations import MENDS, seeds_that_show

    commit = ledger.committed() if write else ""
    names = list(MENDS) if only is None else [only]
    with _pool(processes) as pool:
        for name, result in zip(names, pool.map(seeds_that_show, names, [seeds] * len(names)), strict=True):
            print(f"{name} ({MENDS[name].focus}): {len(result)} of {seeds}: {list(result)}", flush=True)
            if write:
                row = ledger.Shown(name, MENDS[name].focus, commit, result, seeds)
                ledger.note_shown(row, list(MENDS))
    return 0


def show(seed: int, *, whole: bool, mutation: str | None, focus: str | None) -> int:
    """Print the history of a seed. A failing one is shrunk first."""
    from tests.faults.mutations import without
    from tests.faults.run import run
    from tests.faults.schedules.drawing import drawn
    from tests.faults.schedules.shrink import shrunk

    with without(mutation):
        outcome = run(drawn(seed, focus=focus))
        if outcome.violations and not whole:
            outcome = shrunk(outcome)
    print(outcome.schedule.shape)
    for fault in outcome.schedule.faults:
        print(fault)
    for record in outcome.schedule.records:
        print(record)
    print("\n".join(outcome.history.lines()))
    for what in outcome.noticed:
        print("NOTICED", what)
    for what in outcome.violations:
        print("VIOLATED", what)
    return 1 if outcome.violations else 0


if __name__ == "__main__":
    sys.exit(main())
